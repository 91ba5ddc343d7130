"""Rows that a teacher labelled: those it is sure of and the dialogue bears out.

A sure teacher still makes faults of a few kinds, and each has its test here: it loses what the user said, answers with
a turn of the history, changes who speaks (`your sister` becomes `my sister`), repeats a name that the utterance has
already, drops the final mark, or spells a name in its own way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo.files import open_text
from teo.units import unit_texts
from teo_lab.rows.choices import reactions, word_set

_ANAPHORS = word_set(
    """
    it its itself that this these those there here then he him his himself she her hers herself they them their
    theirs themselves one ones so such which who do does did not both either neither 's 're 'd 'll 've is are
    was were have has had 'm else n't same , any some either all
    """
)
"""Words of an utterance that its rewrite may do without: they are replaced, or agree with what is replaced."""
_POINTED_AT = word_set(
    """
    movie song album band book show place restaurant team guy film game series hotel event time day year date
    city track artist singer player property apartment establishment venue house room flight train bus class
    """
)
"""Nouns that may go with the word that points: `this movie` becomes a title."""
_POINTERS = re.compile(r"\b(?:this|that|these|those|the same|the) (?:\w+ )?(\w+)", re.IGNORECASE)
_FUNCTION = word_set(
    """
    a an the of in on at to for from with by about as than and or is are was were be been do does did has have
    had will would can could should that which who whose it its 's 're ' s going
    """
)
_PERSONS = word_set("i me my mine myself we us our ours you your yours 'm")
_IDIOMS = re.compile(
    r"\b(?:sound of that|is that so|is that it|that's it|about that|how about it|that's (?:right|all|true|okay|fine)|"
    r"what about it|that is correct|makes sense|believe it|got it|do it|you know it|it's (?:ok|okay|fine))\b",
    re.IGNORECASE,
)
"""Phrases whose pronoun stands for nothing that could be named."""
_PRONOUN = re.compile(r"\b(?:he|she|they|him|her|them|his|their)(?:['’]\w+)?\b", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(?i:my|our|your|the|an?|every\w*|some\w*|any\w*|people|nobody|no one|who\w*)\b|(?<!^)\b[A-Z][a-z]+"
)
"""What a pronoun behind it may stand for."""
_POINTING = re.compile(
    r"\b(?:the|this|that|which|another|last|first|next|other) ones?\b(?! (?:of|who|that|with|in|thing|day|time)\b)"
    r"|\bone\W*$|^(?:mine|yours|theirs|hers|ours|his)\b|\bthe others?\W*$"
    r"|\b(?:up|down|over|out|in|from) there\b"
    r"|\b(?:these|those) [a-z]+|\bthis (?!morning|evening|afternoon|time|way|one|is|was|and|or|week|month|year)[a-z]+"
    r"|^it (?:was|is|were|will|does|did)\b"
    r"|\b(?:use|like|want|need|take|do|for|with|about|of|buy|see|read|try|send|have|had) it\b(?! (?:that|to)\b)"
    r"|\b(?:told|tells?|asked|warned) (?:me|you|us|him|her|them)\W*$",
    re.IGNORECASE,
)
"""What leaves open which one, whose, where, or what: rather too much of it than too little."""
_SHORT = 8
_MARKS = frozenset(".?!…")
_TEXTS = frozenset({"history", "utterance", "rewrite"})
_FIELDS = _TEXTS | {"logprob", "lowest"}


@dataclass(frozen=True, slots=True)
class LabelLimits:
    """What a label must reach to be taken."""

    logprob: float = -0.95
    """Sum of the log probabilities of a changed rewrite, at least; the least sure ones are wrong half of the time."""
    lowest: float = -0.75
    """Log probability of the least likely token of a changed rewrite, at least."""
    unchanged: float = -0.35
    """Sum of the log probabilities of a rewrite that is the utterance, at least."""
    longer: int = 16
    """Words that a rewrite may have more than its utterance."""


def read_labels(path: Path, limits: LabelLimits | None = None) -> Iterator[Row]:
    """Yield the labelled rows to train on, in the file's order: no more unchanged utterances than changed ones."""
    limits = limits or LabelLimits()
    room = 0
    for number, label in enumerate(_read(path), 1):
        utterance, rewrite = label["utterance"], label["rewrite"]
        if utterance == rewrite:
            if room > 0 and label["logprob"] > limits.unchanged:
                room -= 1
                yield _row(number, label)
        elif label["logprob"] > limits.logprob and label["lowest"] > limits.lowest:
            dialogue = Dialogue(tuple(label["history"]), utterance)
            if find_fault(dialogue, rewrite, limits.longer) is None:
                room += 1
                yield _row(number, label)


def read_sampled(path: Path, openings: Collection[str] = (), least: float = -inf) -> Iterator[Row]:
    """Yield the rows that a teacher sampled, which were screened when they were written: all, or of some openings.

    Left out are unchanged utterances that are not complete, and changed ones whose log-probability is below `least`.
    """
    fields = _TEXTS | ({"opening"} if openings else set()) | ({"logprob"} if least > -inf else set())
    for number, label in enumerate(_read(path, fields), 1):
        if openings and label["opening"] not in openings:
            continue
        unchanged = label["utterance"] == label["rewrite"]
        if not points_outside(label["utterance"]) if unchanged else label.get("logprob", 0.0) >= least:
            yield _row(number, label, "sampled")


def points_outside(utterance: str) -> bool:
    """Tell whether an English utterance has a word for a person or thing that it does not name before."""
    if _POINTING.search(utterance):
        return True
    pronoun = _PRONOUN.search(utterance)
    return pronoun is not None and _NAMED.search(utterance, 0, pronoun.start()) is None


def _row(number: int, label: Mapping[str, Any], kind: str = "label") -> Row:
    return Row(f"{kind}-{number}", Dialogue(tuple(label["history"]), label["utterance"]), label["rewrite"])


def _read(path: Path, fields: frozenset[str] = _FIELDS) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected labels as JSON lines, packed with xz or not")
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                label = json.loads(line)
                missing = fields - label.keys()
            except (json.JSONDecodeError, AttributeError):
                raise DataError(f"{path}:{number}: expected a JSON object, found {line.strip()[:60]!r}") from None
            if missing:
                raise DataError(f"{path}:{number}: expected the field {sorted(missing)[0]}, found none")
            yield label


def find_fault(dialogue: Dialogue, rewrite: str, longer: int = 16) -> str | None:
    """Return what is wrong with a changed rewrite; none if it may be learned."""
    utterance = dialogue.utterance
    cased = unit_texts(rewrite)
    before, after = unit_texts(utterance.lower()), unit_texts(rewrite.lower())
    faults = {
        "only marks or case": _words(before) == _words(after),
        "reaction": " ".join(utterance.lower().split()).strip(" .!?") in _lower_reactions(),
        "idiom": _IDIOMS.search(utterance) is not None and len(before) < _SHORT,
        "copy of a turn": _is_turn(after, dialogue),
        "too long": len(after) - len(before) > longer,
        "marks": _sentence_marks(before) != _sentence_marks(after),
        "lost words": _lost(utterance, before, after),
    }
    for fault, found in faults.items():
        if found:
            return fault
    new = [unit for unit in cased if unit.lower() not in before]
    return _fault_of_new(new, before, after, dialogue)


@cache
def _lower_reactions() -> frozenset[str]:
    return frozenset(reaction.lower() for reaction in reactions("en"))


def _fault_of_new(new: list[str], before: list[str], after: list[str], dialogue: Dialogue) -> str | None:
    """Return what is wrong with the units that a rewrite has and its utterance has not."""
    content = [unit for unit in new if unit.lower() not in _FUNCTION and unit[:1].isalnum()]
    if any(unit.lower() in _PERSONS for unit in new):
        return "speaker"
    if not content:
        return "nothing new"
    units = {unit for turn in dialogue.history for unit in unit_texts(turn)}
    lowered = {unit.lower() for unit in units}
    if any(unit.lower() not in lowered for unit in content):
        return "word from nowhere"
    # The first word of a turn has a capital that it loses elsewhere, so a small first letter is no fault.
    if any(unit not in units and unit[:1].upper() + unit[1:] not in units for unit in content):
        return "spelled otherwise"
    counts = {unit: after.count(unit) for unit in set(after)}
    if any(
        count > before.count(unit) and before.count(unit) > 0 and unit not in _FUNCTION and unit.isalpha()
        for unit, count in counts.items()
    ):
        return "said twice"
    return None


def _lost(utterance: str, before: list[str], after: list[str]) -> bool:
    """Tell whether words of the utterance are gone that nothing stands for."""
    lost = [unit for unit in before if unit not in after and unit not in _ANAPHORS and unit.isalnum()]
    if not lost:
        return False
    pointed_at = {match.group(1).lower() for match in _POINTERS.finditer(utterance)} & _POINTED_AT
    return any(unit not in pointed_at for unit in lost)


def _is_turn(units: list[str], dialogue: Dialogue) -> bool:
    words = _words(units)
    return any(words == _words(unit_texts(turn.lower())) for turn in dialogue.history)


def _words(units: list[str]) -> list[str]:
    return [unit for unit in units if unit[:1].isalnum() or unit.startswith(("'", "’"))]


def _sentence_marks(units: list[str]) -> list[str]:
    """Return the final mark and the question marks; other marks may belong to a name."""
    final = units[-1] if units and units[-1] in _MARKS else ""
    return [final, *(unit for unit in units if unit == "?")]
