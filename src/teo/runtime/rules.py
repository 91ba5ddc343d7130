"""When not to ask the model at all: texts that no history can complete.

The rules, in order; each keeps the utterance as it is:

1. nothing was said before it: no history, or only blank turns;
2. it is blank;
3. it has no letter and no digit: emoji, punctuation;
4. it is only links or addresses;
5. it is only code: a fenced block, or one quoted in back ticks;
6. it is only a greeting, thanks or a goodbye.

A word that answers or agrees ("yes", "ok", "是的") is not among them: what it agrees to can be filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from teo.dialogue import Dialogue

_LONGEST_RULED = 4096
"""Longer utterances are not matched against patterns; nothing that long is a greeting or a link."""
_LINK = re.compile(r"[a-z][a-z0-9+.-]*://\S+|www\.\S+|mailto:\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_CODE = re.compile(r"```.*```|`[^`]+`", re.DOTALL)
# Longer forms first: the groups do not go back, so that no text takes long to refuse.
_GREETING_WORDS = (
    r"hiya|hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|night|day)|bye(?:[ -]?bye)?|good ?bye"
    r"|see you(?: later| soon)?|thanks?(?: you)?(?: so much| very much| a lot)?|many thanks|cheers"
    r"|(?:you(?:'re| are) )?welcome"
    r"|你好|您好|大家好|嗨|哈喽|哈罗|早上好|早安|早|上午好|中午好|下午好|晚上好|晚安|谢谢[你您了]?|多谢|感谢|再见|拜拜|不客气"
)
_GREETINGS = re.compile(rf"(?>(?:{_GREETING_WORDS})(?: there| all| everyone)?[\s,，.。!！~～、…]*)++", re.IGNORECASE)
_OUTSIDE = re.compile(r"^[\W_]+|[\W_]+$")


def reason_to_keep(dialogue: Dialogue) -> str | None:
    """Return why an utterance stays as it is without a model, in a phrase; None where the model is to be asked."""
    stripped = dialogue.utterance.strip()
    if not stripped:
        return "blank"
    if not any(turn.strip() for turn in dialogue.history):
        return "no history"
    if len(stripped) > _LONGEST_RULED:
        return None
    return next((reason for reason, holds in _RULES.items() if holds(stripped)), None)


_RULES: dict[str, Callable[[str], object]] = {
    "no words": lambda text: not any(sign.isalnum() for sign in text),
    "only links": lambda text: all(_LINK.fullmatch(part) for part in text.split()),
    "only code": _CODE.fullmatch,
    "a greeting": lambda text: _GREETINGS.fullmatch(_OUTSIDE.sub("", text)),
}
