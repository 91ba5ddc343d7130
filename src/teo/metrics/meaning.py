"""Right by meaning: whether a rewrite says what the user meant, whatever its wording.

A row's keys (`teo.data.row.MeaningKeys`) name the parts that a right rewrite has (`need`: one alternative of every
group) and what makes it unresolved or false (`forbid`). They were written by hand, without any model's output. The
verdict on an incomplete utterance:

- `right`: it equals an accepted rewrite, or has all needed parts and nothing forbidden;
- `partly`: it restores some of what is needed, and says nothing false;
- `wrong`: it is changed otherwise;
- `missed`: it came back unchanged.

On a complete one: `kept` if it came back unchanged, else `harmed`. What a reader said of a rewrite (`judged`) goes
before what the keys say of it. A forbidden pattern that the utterance itself has stands for something unresolved, any
other one for something false.

Patterns match without regard to case, width and punctuation. In text without CJK characters they match whole words:
`open*` is any word that begins so. In text with CJK characters they match anywhere. ` .. ` stands for any words between
its sides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

from teo.data.row import MeaningKeys, Row
from teo.metrics.base import Interval, Signature
from teo.units import holds_cjk

Verdict = Literal["right", "partly", "wrong", "missed", "kept", "harmed"]
INCOMPLETE: tuple[Verdict, ...] = ("right", "partly", "wrong", "missed")
COMPLETE: tuple[Verdict, ...] = ("kept", "harmed")
SIGNATURE = Signature(
    "meaning", (("keys", "need+forbid"), ("accepted", "any"), ("case", "lower"), ("intervals", "wilson"))
)

_GAP = ".."
_WORD = re.compile(r"[^\W_]+(?:'(?!s\b)[^\W_]+)?\*?|'s\b")
_Z = 1.959964


def grade(row: Row, prediction: str) -> Verdict:
    """Return the verdict on a prediction for a row with keys; without keys only accepted rewrites are right."""
    utterance, accepted = row.dialogue.utterance, (row.rewrite, *row.references)
    matcher = _Matcher(cjk=any(map(holds_cjk, accepted)))
    same = any(matcher.same(prediction, text) for text in accepted)
    if any(matcher.same(utterance, text) for text in accepted):
        return "kept" if same or matcher.same(prediction, utterance) else "harmed"
    if matcher.same(prediction, utterance):
        return "missed"
    keys = row.keys or MeaningKeys()
    judged = keys.judgement(prediction)
    if same or judged:
        return "right"
    verdict = _grade_by_keys(matcher, keys, utterance, prediction)
    return "wrong" if judged is False and verdict == "right" else verdict


def _grade_by_keys(matcher: _Matcher, keys: MeaningKeys, utterance: str, prediction: str) -> Verdict:
    """Return the verdict on a changed utterance that equals no accepted rewrite."""
    forbidden = [pattern for pattern in keys.forbid if matcher.has(prediction, pattern)]
    if any(not matcher.has(utterance, pattern) for pattern in forbidden):
        return "wrong"
    met = [group for group in keys.need if any(matcher.has(prediction, pattern) for pattern in group)]
    if keys.need and len(met) == len(keys.need) and not forbidden:
        return "right"
    restored = any(not any(matcher.has(utterance, pattern) for pattern in group) for group in met)
    return "partly" if restored else "wrong"


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Finds patterns in the texts of one row."""

    cjk: bool

    def same(self, text: str, other: str) -> bool:
        """Tell whether two texts have the same words, or the same characters."""
        return self._units(text) == self._units(other)

    def has(self, text: str, pattern: str) -> bool:
        """Tell whether a text has the parts of a pattern, in their order."""
        units, reached = self._units(text), 0
        for part in pattern.split(_GAP):
            reached = _find(units, self._units(part), reached)
            if reached < 0:
                return False
        return True

    def _units(self, text: str) -> Sequence[str]:
        plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
        if self.cjk:
            return "".join(character for character in plain if character.isalnum() or character in "+%")
        return _WORD.findall(plain)


def _find(units: Sequence[str], part: Sequence[str], start: int) -> int:
    """Return where a part ends that begins at `start` or later; -1 if it is not there."""
    for first in range(start, len(units) - len(part) + 1):
        pairs = zip(units[first : first + len(part)], part, strict=True)
        if all(unit.startswith(wanted[:-1]) if wanted.endswith("*") else unit == wanted for unit, wanted in pairs):
            return first + len(part)
    return -1


@dataclass(frozen=True, slots=True)
class MeaningReport:
    """How many rows got each verdict; rates are shares of the incomplete or of the complete rows."""

    counts: Mapping[Verdict, int]

    def rate(self, verdict: Verdict) -> float | None:
        """Return the share of a verdict among the rows that could get it; None if there are none."""
        total = self._total(verdict)
        return self.counts.get(verdict, 0) / total if total else None

    def interval(self, verdict: Verdict) -> Interval | None:
        """Return the 95% interval of a rate (Wilson's)."""
        total = self._total(verdict)
        if not total:
            return None
        rate = self.counts.get(verdict, 0) / total
        centre = (rate + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
        half = _Z * sqrt(rate * (1 - rate) / total + _Z**2 / (4 * total**2)) / (1 + _Z**2 / total)
        return Interval(max(0.0, centre - half), min(1.0, centre + half))

    def to_dict(self) -> dict[str, Any]:
        """Return counts, rates, intervals and the signature, ready for JSON."""
        verdicts = (*INCOMPLETE, *COMPLETE)
        intervals = {verdict: self.interval(verdict) for verdict in verdicts}
        return {
            "counts": {verdict: self.counts.get(verdict, 0) for verdict in verdicts},
            "rates": {verdict: self.rate(verdict) for verdict in verdicts},
            "intervals": {verdict: [ends.low, ends.high] for verdict, ends in intervals.items() if ends},
            "signature": str(SIGNATURE),
        }

    def _total(self, verdict: Verdict) -> int:
        group = INCOMPLETE if verdict in INCOMPLETE else COMPLETE
        return sum(self.counts.get(each, 0) for each in group)


def report_meaning(verdicts: Iterable[Verdict]) -> MeaningReport:
    """Return the counts of some verdicts."""
    return MeaningReport(Counter(verdicts))
