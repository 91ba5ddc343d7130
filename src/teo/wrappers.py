"""Polite words around an utterance ("Thanks. ...", "..., please?", 请问 ...), which say nothing of what is asked.

The model reads the utterance without them, so that "OK, and in Leeds?" gets the rewrite of "And in Leeds?"; they stay
in the rewrite as the user typed them. Words that answer something (yes, no, sure, 对, 不) are no wrappers. If nothing
but reactions would be left, nothing is taken away.
"""

from __future__ import annotations

import re

from teo.rules import is_reaction
from teo.units import CJK

_FRONT_PHRASES = """
hi; hello; hey; hi there; hello there; hey there; hi again; hello again; good morning; good afternoon; good evening;
thanks; thank you; thx; thanks a lot; thanks so much; thank you so much; thank you very much; many thanks;
thanks again; oh; ah; aha; hm; hmm; well; wow; ok; okay; ok then; okay then; ok thanks; okay thanks;
ok great; okay great; ok cool; okay cool; alright; all right; alright then; great; great thanks; cool; nice; awesome;
perfect; excellent; wonderful; lovely; interesting; got it; gotcha; i see; i understand; understood; makes sense;
that makes sense; good to know; fair enough; noted; sounds good; sorry; excuse me; pardon; pardon me;
sorry to bother you; sorry to bother you again; sorry to ask; sorry one more question; one more question;
one more thing; another question; one last question; one last thing; last question; quick question;
just a quick question; just wondering; just curious; out of curiosity; by the way; btw; please; pls; plz;
你好; 您好; 嗨; 哈喽; 早上好; 下午好; 晚上好; 谢谢; 谢谢你; 谢谢您; 谢谢了; 谢谢啦; 谢了; 多谢; 感谢; 辛苦了; 嗯;
嗯嗯; 恩; 哦; 噢; 喔; 哦哦; 唉; 哎; 哎呀; 哇; 诶; 好; 好的; 好吧; 好嘞; 好滴; 行; 行吧; 明白; 明白了;
知道了; 我知道了; 了解; 了解了; 懂了; 收到; 原来如此; 原来是这样; 这样啊; 太好了; 不好意思; 抱歉; 打扰了; 打扰一下;
麻烦了; 麻烦你了; 劳驾; 那个; 对了; 话说; 请问; 请问一下; 请问下; 想问下; 想问一下; 我想问; 我想问下; 我想问一下;
问一下; 问下; 麻烦问下; 麻烦问一下; 再问一句; 再问一下; 再问个问题; 顺便问一下; 顺便问下; 顺便问一句; 最后一个问题;
还有个问题; 我想知道; 想知道
"""
_END_PHRASES = """
please; pls; plz; thanks; thank you; thx; by the way; btw; if i may ask; if you know; if you don't mind;
just out of interest; just curious; just wondering; out of curiosity;
谢谢; 谢谢你; 谢谢您; 谢谢了; 谢谢啦; 谢了; 多谢; 感谢; 麻烦了; 麻烦你了; 拜托; 拜托了; 辛苦了
"""
# Phrases that need no mark between them and what follows.
_JOINED_WORDS = "ok; okay; please; pls; plz"
_JOINED_CHARACTERS = """
请问一下; 请问下; 请问; 想问一下; 想问下; 我想问一下; 我想问下; 麻烦问一下; 麻烦问下; 顺便问一下; 顺便问下
"""
_TAIL = 64
"""Characters of an utterance in which its last words are looked for."""


def any_of(phrases: str) -> str:
    """Return a pattern of the phrases of a list, the longest first."""
    listed = {" ".join(phrase.split()) for phrase in phrases.split(";")}
    longest_first = sorted(listed, key=lambda phrase: (-len(phrase), phrase))
    return "|".join(re.escape(phrase).replace(r"\ ", r"\s+").replace("'", "['’]") for phrase in longest_first)


_MARKS = r"\s*(?:[,.!?;:，。！？；：、…~～]\s*)+"
_FRONT = re.compile(
    rf"\s*(?:(?:{any_of(_FRONT_PHRASES)}){_MARKS}"
    rf"|(?:{any_of(_JOINED_WORDS)})\s+(?=\w)"
    rf"|(?:{any_of(_JOINED_CHARACTERS)})(?=[{CJK}]))",
    re.IGNORECASE,
)
_END = re.compile(rf"(?:{_MARKS}(?:{any_of(_END_PHRASES)})|\s+(?:please|pls|plz))(?:{_MARKS})?\s*$", re.IGNORECASE)


def find_core(utterance: str) -> tuple[int, int]:
    """Return where an utterance without the polite words and the white space around it starts and ends."""
    start, end = outer = _trim(utterance, 0, len(utterance))
    while (front := _FRONT.match(utterance, start)) and front.end() < end:
        start = front.end()
    if found := _END.search(utterance, max(start, end - _TAIL)):
        end = found.start()
    start, end = _trim(utterance, start, end)
    return outer if start == end or is_reaction(utterance[start:end]) else (start, end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where a part of a text starts and ends without the white space around it."""
    part = text[start:end]
    return (end, end) if not part.strip() else (end - len(part.lstrip()), start + len(part.rstrip()))
