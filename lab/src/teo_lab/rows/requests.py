"""Complete requests of users, and the follow-ups that are made from them by rule.

A folder holds `en.jsonl.xz` and `zh.jsonl.xz`, one request a line: `text, source, intent, slots` (name, start, end,
value). A follow-up leaves out what an earlier request said, and its reference is a complete request again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.errors import DataError
from teo.files import open_text
from teo_lab.rows.choices import Language


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A value that a request names, and where it stands in the text (code points)."""

    name: str
    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class Request:
    """A complete request or question of a user."""

    text: str
    source: str
    intent: str
    slots: tuple[SlotValue, ...] = ()

    def replaced(self, *changes: tuple[SlotValue, str]) -> str:
        """Return the text with other values in some of its slots."""
        text = self.text
        for slot, value in sorted(changes, key=lambda change: -change[0].start):
            text = text[: slot.start] + value + text[slot.end :]
        return text


@dataclass(frozen=True, slots=True)
class Draft:
    """A row without a name: the turns before, the follow-up, the complete request it stands for."""

    history: tuple[str, ...]
    utterance: str
    rewrite: str


_CONTEXT_EN = re.compile(
    r"\b(?:it|its|it's|this|that|that's|these|those|there|they|them|their|he|him|his|she|her|one|ones|same|here|instead|"
    r"again|also|too|another|other|others|else|both|either|previous|following|such|then|because|so|he's|she's|they're)\b",
    re.IGNORECASE,
)
_COMPLETE_EN = re.compile(
    r"\b(?:this (?:morning|afternoon|evening|week|weekend|month|year|summer|winter|spring|fall|friday|saturday|sunday|"
    r"monday|tuesday|wednesday|thursday)|(?:is|are|was|were|will|if) there|there (?:is|are)|what time is it|"
    r"(?:is|will|was|does|if) it (?:going to |be |get )*"
    r"(?:rain|snow|sunny|windy|cold|hot|warm|cloudy|storm|freez|hail)\w*)\b",
    re.IGNORECASE,
)
_CONTEXT_ZH = re.compile(
    r"[这那它他她其]|咱俩|上面|刚才|刚刚|还是|前者|后者|呢[?？]?$|^(?:还|也|就|再|又|不是|所以|但是|可是|而且|然后|因为|如果)"
)
_CHATTER_ZH = re.compile(
    r"[傻逼屄操蠢]|两性|色情|很黄|性爱|裸|遗精|臀|雅蠛蝶|妈的|(.)\1\1|[啊哦呃嗯呀哈嘿啦喂]|[a-z]。|[，,。.！!；;]\S"
)


def is_self_contained(text: str, language: Language) -> bool:
    """Tell whether a text points at nothing before it, as far as its words can tell."""
    if language == "en":
        return len(text.split()) >= 3 and not _CONTEXT_EN.search(_COMPLETE_EN.sub("", text))
    return len(text) >= 5 and not _CONTEXT_ZH.search(text) and not _CHATTER_ZH.search(text)


def read_requests(folder: Path, language: Language, sources: Collection[str] = ()) -> list[Request]:
    """Return the requests of a language that stand alone, without the marks that Chinese ones end in.

    With `sources`, only those of these sources are returned.
    """
    path = folder / f"{language}.jsonl.xz"
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected requests as JSON lines packed with xz")
    requests = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                request = parse_request(json.loads(line), language)
            except (json.JSONDecodeError, KeyError, TypeError):
                expected = "text, source, intent and slots (name, start, end, value)"
                raise DataError(f"{path}:{number}: expected {expected}, found {line.strip()[:60]!r}") from None
            if is_self_contained(request.text, language) and (not sources or request.source in sources):
                requests.append(request)
    return requests


def parse_request(value: Mapping[str, object], language: Language) -> Request:
    """Return the request of a JSON object; slots whose value is not where they say are left out."""
    text = str(value["text"]).rstrip()
    if language == "zh":
        text = text.rstrip("。！!.")
    slots = value["slots"]
    if not isinstance(slots, list):
        raise TypeError("slots")
    parsed = (SlotValue(slot["name"], slot["start"], slot["end"], text[slot["start"] : slot["end"]]) for slot in slots)
    return Request(
        text,
        str(value["source"]),
        str(value["intent"]),
        tuple(sorted((slot for slot in parsed if slot.value.strip()), key=lambda slot: slot.start)),
    )
