"""Openings: greetings and offers of help at the start of a dialogue, of which nothing can be restored.

Most chats begin with one ("Hello! How can I help you today?", 在吗, 您好，请问有什么可以帮您), and few of the dialogues
that models learn from do. So the model reads a dialogue without them. What says more ("Welcome to Acme!") is read,
unless an assistant begins with it and offers help.
"""

from __future__ import annotations

import re
from dataclasses import replace

from teo.dialogue import Dialogue
from teo.rules import GREETINGS
from teo.wrappers import any_of

_LONGEST = 120
"""Characters of an opening, at most."""
_OTHER_GREETINGS = """
is anyone there; anyone there; are you there; i'm here; i am here; 亲; 亲亲; 亲爱的; 亲爱的用户; 在; 在的;
我在; 在不在; 尊敬的客户; 有人; 有人在; 很高兴认识你; 很高兴认识您; 欢迎; 欢迎光临
"""
_OFFERS = [
    r"(?:so )?(?:how|what) (?:can|may|could) (?:i|we)"
    r" (?:(?:help|assist)(?: you)?(?: out)?|do for you|be of (?:help|assistance|service))"
    r"(?: with)?(?: today| this morning| this afternoon| this evening)?",
    r"(?:is there )?(?:anything|something) (?:that )?(?:i|we) can (?:(?:help|assist) you with|do for you)(?: today)?",
    r"(?:i'm|i am|we're|we are) (?:always )?(?:here|happy|glad) to (?:help|assist)(?: you)?(?: out)?",
    r"(?:i'm|i am) (?:your|the|an?) (?:(?:virtual|digital|ai|online|personal|smart) )*(?:assistant|chatbot|bot)",
    r"thank(?:s| you) for (?:reaching out|contacting us|getting in touch|your message)",
    r"(?:请问)?[您你]?有(?:什么|啥|哪些)(?:问题|事情?)?(?:是?我)?(?:可以|能够?|需要)我?(?:帮助?|帮忙|帮到|为|给)[您你]?"
    r"(?:服务|效劳|做|解答|解决|帮忙|处理)?的?",
    r"请问[您你]?有(?:什么|啥)(?:问题|事情?|需要)|(?:请问)?[您你]?需要(?:什么|啥)(?:帮助|服务)",
    r"(?:请问)?[您你]?(?:需要|要|想|想要)我?(?:咨询|了解|问|帮[您你]做?)[点些]?(?:什么|啥)(?:问题)?",
    r"(?:请问)?(?:我|小的)?(?:能|可以)[为帮][您你]?做[点些]?什么",
    r"(?:很|非常)?(?:高兴|荣幸|乐意)能?[为帮]到?[您你](?:服务|解答)?",
    r"我是(?:[您你]的)?(?:智能|在线|人工|ai|语音|虚拟|专属)*(?:客服|助手|助理|机器人)",
]
_GREETING = any_of(f"{GREETINGS}; {_OTHER_GREETINGS}")
_PARTICLE = "[吗么呢呀啊哦哈噢哟]*"
_OFFER = rf"(?:{'|'.join(_OFFERS)}){_PARTICLE}"
_CLAUSE = re.compile(rf"(?:(?:{_GREETING}){_PARTICLE}(?![a-z])\s*)*(?:{_OFFER})?", re.IGNORECASE)
_LAST_WORDS = re.compile(_OFFER, re.IGNORECASE)
_FIRST_WORDS = re.compile(
    rf"\W*(?:(?:{_GREETING}){_PARTICLE}(?![a-z])|welcome|thank(?:s| you) for (?:calling|contacting|choosing)|欢迎)",
    re.IGNORECASE,
)
_MARKS = re.compile(r"\s*[,.!?;:，。！？；：、…~～]+\s*|\n+")


def skip_openings(dialogue: Dialogue) -> Dialogue:
    """Return a dialogue without the openings at its start.

    An even number of turns is left, or none: models are used to dialogues that the user begins. So the greeting of an
    assistant that begins may name a company or itself ("Welcome to Acme! How can I help?"), if something follows it.
    """
    history, count = dialogue.history, 0
    while count < len(history) and is_opening(history[count]):
        count += 1
    if count:
        count -= (len(history) - count) % 2
    elif len(history) % 2 and len(history) > 1 and _is_welcome(history[0], dialogue.speakers):
        count = 1
    if not count:
        return dialogue
    return replace(dialogue, history=history[count:], speakers=dialogue.speakers and dialogue.speakers[count:])


def is_opening(turn: str) -> bool:
    """Tell whether a turn is nothing but greetings and offers of help."""
    clauses = _split(turn) if len(turn) <= _LONGEST else []
    return bool(clauses) and all(map(_CLAUSE.fullmatch, clauses))


def _is_welcome(turn: str, speakers: tuple[str, ...] | None) -> bool:
    """Tell whether a turn begins with a greeting and ends with an offer of help, or an assistant's with a question."""
    if len(turn) > _LONGEST or not _FIRST_WORDS.match(turn) or (speakers and speakers[0] != "assistant"):
        return False
    asks = speakers is not None and turn.rstrip().endswith(("?", "？"))
    return asks or _LAST_WORDS.fullmatch(_split(turn)[-1]) is not None


def _split(turn: str) -> list[str]:
    """Return the clauses of a turn."""
    return [clause for clause in _MARKS.split(turn.strip()) if clause]
