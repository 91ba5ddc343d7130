"""Rules that leave an utterance unchanged without calling the model, and a user's own list of utterances to keep.

The rules, in order:

1. it is blank (`empty`);
2. nothing was said before it: no history, or only blank turns (`no-history`);
3. it is on the user's own list (`keep-list`);
4. it has no letter and no digit: emoji, punctuation (`reaction`);
5. it is only links or addresses, or only code: a fenced block, or one quoted in back ticks (`code`);
6. it only reacts: greetings, thanks, laughter, hesitation, agreement, good-byes (`reaction`).

A reaction is one phrase of the lists below, or several after each other ("haha ok, thanks!"), whatever marks, emoji
and emoticons stand around them. Letters may be repeated for emphasis ("okaaay", "hmmmm"). What takes a complement
("可以", "yes please") or says something of a thing ("不错") is not among them: the history may complete it. Matching
takes time in proportion to the text: the longest phrase is taken and never reconsidered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.noise import as_read
from teo.units import CJK

Reason = Literal["no-history", "empty", "reaction", "code", "keep-list", "too-long", "complete", "unsure", "runaway"]
"""Why an utterance is unchanged: by a rule, because it does not fit, or by what the model proposed."""

_LONGEST_RULED = 4096
"""Longer utterances are not matched against patterns; nothing that long is a greeting or a link."""
_ADDRESS = rf"[^\s{CJK}，。？！；：、（）《》“”]+"
_LINK = re.compile(
    rf"[a-z][a-z0-9+.-]*://{_ADDRESS}|www\.{_ADDRESS}|mailto:{_ADDRESS}|[a-z0-9_.+-]+@[a-z0-9_-]+(?:\.[a-z0-9_-]+)+",
    re.IGNORECASE,
)
"""A link or an address, which ends where Chinese text begins."""
_CODE = re.compile(r"```.*```|`[^`]+`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeepList:
    """Utterances that a user wants unchanged: whole ones in lower case, without marks around them, and patterns."""

    words: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> KeepList:
        """Return the list of some entries: a plain one is a whole utterance, `/.../` is a regular expression.

        Case does not matter in either, nor do marks around a whole utterance. An expression may match anywhere; it is
        searched for in the utterance without white space around it.
        """
        if isinstance(entries, str) or not isinstance(entries, Iterable):
            raise InputError("keep: expected a list of words and /patterns/, found something else; pass keep=['...']")
        words, patterns = set(), []
        for entry in entries:
            if not isinstance(entry, str) or not entry.strip():
                raise InputError(f"keep: expected words and /patterns/, found {entry!r}")
            text = entry.strip()
            if len(text) > 2 and text[0] == text[-1] == "/":
                patterns.append(_compile(text))
            else:
                words.add(_plain(text))
        return cls(frozenset(words), tuple(patterns))

    def __bool__(self) -> bool:
        return bool(self.words or self.patterns)

    def __contains__(self, utterance: str) -> bool:
        text = utterance.strip()
        return _plain(text) in self.words or any(pattern.search(text) for pattern in self.patterns)


NOTHING = KeepList()
"""The list of a user who has no words to keep."""


def read_keep_file(path: str | Path) -> list[str]:
    """Return the entries of a file for `keep`: one on a line; blank lines and lines that begin with # do not count."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; give a file of words and /patterns/") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected text in UTF-8, found something else") from None
    entries = []
    for number, line in enumerate(lines, start=1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            try:
                KeepList.of([entry])
            except InputError as error:
                raise InputError(f"{path}:{number}: {error}") from None
            entries.append(entry)
    return entries


def reason_unchanged(dialogue: Dialogue, keep: KeepList = NOTHING) -> Reason | None:
    """Return the rule that leaves an utterance unchanged; None if the model is to be called."""
    text = as_read(dialogue.utterance).strip()
    if not text:
        return "empty"
    if not any(turn.strip() for turn in dialogue.history):
        return "no-history"
    if len(text) > _LONGEST_RULED:
        return None
    if keep and (text in keep or dialogue.utterance in keep):
        return "keep-list"
    if _CODE.fullmatch(text) or all(map(_LINK.fullmatch, text.split())):
        return "code"
    return "reaction" if not any(map(str.isalnum, text)) or is_reaction(text) else None


def _plain(text: str) -> str:
    """Return a text in lower case without marks around it; marks alone are the text."""
    inside = [position for position, character in enumerate(text) if character.isalnum()]
    return (text[inside[0] : inside[-1] + 1] if inside else text).casefold()


def _compile(entry: str) -> re.Pattern[str]:
    try:
        return re.compile(entry[1:-1], re.IGNORECASE)
    except re.error as error:
        raise InputError(f"keep: {entry} is not a regular expression ({error})") from None


GREETINGS = """
hi; hiya; hello; hey; howdy; yo; greetings; good morning; good afternoon; good evening; good day; welcome; hi there;
hello there; hey there; hi all; hello all; hey all; hi everyone; hello everyone; hey everyone; hi again; hello again;
nice to meet you; 你好; 您好; 大家好; 你好啊; 你好呀; 嗨; 哈喽; 哈罗; 哈啰; 早上好; 早安; 上午好; 中午好; 下午好;
晚上好
"""
_FAREWELLS = """
bye; bye bye; bye-bye; byebye; goodbye; good bye; good-bye; good night; see you; see ya; cya; see you later;
see you soon; see you then; see you around; see you tomorrow; take care; farewell; ttyl; talk to you later;
have a nice day; have a good day; have a great day; have a good one; have a nice weekend; have a good weekend; 再见;
拜拜; 拜; 晚安; 回见; 回头见; 明天见; 下次见; 再会; 先这样; 就这样吧
"""
_THANKS = """
thanks; thank you; thx; ty; thank u; thanks a lot; thanks so much; thanks very much; thanks a million; many thanks;
thank you so much; thank you very much; thanks again; thank you again; thanks anyway; thanks for the help;
thanks for your help; thank you for your help; thank you for the help; much appreciated; i appreciate it; cheers;
you're welcome; you are welcome; no problem; no worries; my pleasure; don't mention it; no thanks; no thank you; 谢谢;
谢谢你; 谢谢您; 谢谢你们; 谢谢了; 谢谢啦; 谢了; 谢啦; 多谢; 多谢了; 感谢; 非常感谢; 太感谢了; 辛苦了; 不客气; 不用谢;
没关系; 没事; 没事的; 客气了
"""
_LAUGHTER = "lol; lmao; rofl; lmfao; xd; 哈; 呵; 嘿; 嘻; 笑死; 笑死我了; 笑死了; 嘻嘻; 嘿嘿; 呵呵; 哈哈"
_HESITATION = """
hm; hmm; mm; mhm; um; umm; uh; uhm; er; erm; ah; aha; oh; ooh; eh; huh; uh huh; uh-huh; well; oh well; let me think;
let me see; hold on; hang on; one moment; just a moment; just a second; wow; whoa; oops; ouch; ugh; yay; aww; omg;
oh my god; 嗯; 恩; 额; 呃; 唔; 哦; 噢; 喔; 啊; 唉; 哎; 哎呀; 哎哟; 哇; 诶; 欸; 呀; 哟; 啦; 让我想想; 我想想; 等等;
等一下; 稍等; 天哪; 天啊
"""
_AGREEMENT = """
yes; yeah; yep; yup; yea; ya; ok; okay; okey; okie; k; kk; sure; sure thing; of course; right; exactly; agreed;
i agree; indeed; absolutely; definitely; certainly; totally; true; that's right; that is right; that's true;
you're right; you are right; got it; gotcha; i see; i understand; understood; makes sense; that makes sense;
sounds good; sounds great; fine; that's fine; alright; all right; great; cool; nice; awesome; perfect; excellent;
wonderful; amazing; good; very good; well done; good job; great job; good to know; fair enough; noted; will do; 好;
好的; 好吧; 好啊; 好呀; 好嘞; 好滴; 好哒; 好的呢; 行; 行吧; 行啊; 是; 是的; 是啊; 是呀; 是哦; 对; 对的; 对啊; 对呀;
对哦; 没错; 当然; 当然了; 的确; 确实; 同意; 我同意; 赞同; 明白; 明白了; 我明白了; 知道了; 我知道了; 了解; 了解了;
懂了; 我懂了; 收到; 原来如此; 原来是这样; 这样啊; 太好了; 太棒了
"""
_DISMISSAL = """
never mind; nevermind; nvm; forget it; forget about it; it's ok; it's okay; that's ok; that's okay; that's all; sorry;
i'm sorry; my bad; excuse me; pardon; 算了; 算了吧; 没什么; 不用了; 没事了; 抱歉; 对不起; 不好意思
"""

_ALONE = "早; 早啊; 早呀"
"""Phrases that mean something else beside others."""

_CJK = f"[{CJK}]"
_LETTER = rf"(?:(?!{_CJK})[^\W\d_])"
_WORD = re.compile(rf"{_CJK}|{_LETTER}+(?:['-]{_LETTER}+)*|\w")
_EMOTICON = re.compile(r"[:;=]['’^-]?[dpo3/\\)(|*]+(?!\w)|\bxd+\b|\^_+\^", re.IGNORECASE)
_LAUGH = re.compile(r"[bm]?[uw]?a?(?:h+[aeio]+){2,}h*|he|ha|(?:lo)+l")
_EMPHASIS = re.compile(r"([^\W\d_])\1\1")
_REPEATED = re.compile(r"(.)\1+")


def _reaction_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; a Chinese character and a digit are words of their own."""
    return tuple(_WORD.findall(text.lower().replace("’", "'")))


def _squeeze(word: str) -> str:
    """Return a word with one letter for every run of it."""
    return _REPEATED.sub(r"\1", word)


def _phrases(*lists: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_reaction_words(phrase) for listed in lists for phrase in listed.split(";"))


_LISTS = (GREETINGS, _FAREWELLS, _THANKS, _LAUGHTER, _HESITATION, _AGREEMENT, _DISMISSAL)
PHRASES = tuple(" ".join(phrase.split()) for listed in _LISTS for phrase in listed.split(";"))
"""Every phrase as text, both languages."""
_WHOLE = _phrases(_ALONE)
_PHRASES = _phrases(*_LISTS)
_SQUEEZED = frozenset(tuple(map(_squeeze, phrase)) for phrase in _PHRASES)
_LONGEST = max(map(len, _PHRASES))


def is_reaction(text: str) -> bool:
    """Tell whether a text is nothing but reactions; one without any word is not."""
    words = _reaction_words(_EMOTICON.sub(" ", text))
    place = 0
    while place < len(words) and (length := _phrase_length(words[place : place + _LONGEST])):
        place += length
    return bool(words) and (place == len(words) or words in _WHOLE)


def _phrase_length(words: tuple[str, ...]) -> int:
    """Return how many of the words the longest phrase takes that they begin with; 0 where there is none."""
    for length in range(len(words), 0, -1):
        phrase = words[:length]
        if phrase in _PHRASES:
            return length
        if any(map(_EMPHASIS.search, phrase)) and tuple(map(_squeeze, phrase)) in _SQUEEZED:
            return length
    return int(bool(words) and _LAUGH.fullmatch(words[0]) is not None)
