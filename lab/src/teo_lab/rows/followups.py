"""Follow-ups that are made from complete requests by rule: every kind in its share, none twice."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo_lab.rows import followups_en, followups_zh, phrases_en, phrases_zh, pronouns_en
from teo_lab.rows.choices import Language
from teo_lab.rows.requests import Draft, Request

_TRIES = 20
"""Draws for one row: many of them fit together only by chance, so that a kind with few hits still has its share."""


class Maker(Protocol):
    """One kind of follow-up, with the requests it is made from."""

    def draw(self, rng: random.Random) -> Draft | None:
        """Return a follow-up; none if what was drawn does not fit together."""
        ...


def request_rows(requests: Sequence[Request], language: Language, count: int, seed: int) -> Iterator[Row]:
    """Yield follow-ups, none twice, every kind in its share; fewer than `count` if the requests give no more."""
    makers = _makers(requests, language)
    rng = random.Random(f"requests/{language}/{seed}")
    kinds = list(makers)
    bounds = list(itertools.accumulate(makers[kind][0] for kind in kinds))
    seen: set[Draft] = set()
    for _ in range(_TRIES * count):
        if len(seen) >= count:
            return
        kind = rng.choices(kinds, cum_weights=bounds)[0]
        draft = _draw_new(makers[kind][1], seen, rng)
        if draft is None:
            continue
        seen.add(draft)
        yield Row(f"request-{language}-{kind}-{len(seen)}", Dialogue(draft.history, draft.utterance), draft.rewrite)


def _draw_new(maker: Maker, seen: set[Draft], rng: random.Random) -> Draft | None:
    """Return a follow-up that was not there before; none if the requests of its kind are used up."""
    for _ in range(_TRIES):
        draft = maker.draw(rng)
        if draft is not None and draft not in seen and draft.utterance.strip() and draft.utterance != draft.rewrite:
            return draft
    return None


def _makers(requests: Sequence[Request], language: Language) -> Mapping[str, tuple[float, Maker]]:
    """Return the kinds of a language with their weights."""
    if language == "en":
        return {
            "substitution": (0.34, followups_en.EnglishSubstitution(requests)),
            "two-slots": (0.08, followups_en.TwoSlots(requests)),
            "pronoun": (0.26, pronouns_en.EnglishPronoun(requests)),
            "clarification": (0.10, followups_en.EnglishClarification(requests)),
            "shared-phrase": (0.10, phrases_en.EnglishSharedPhrase(requests)),
            "shared-head": (0.12, phrases_en.SharedHead(requests)),
        }
    return {
        "substitution": (0.20, followups_zh.ChineseSubstitution(requests)),
        "pronoun": (0.10, followups_zh.ChinesePronoun(requests)),
        "clarification": (0.10, followups_zh.ChineseClarification(requests)),
        "shared-phrase": (0.35, phrases_zh.ChineseSharedPhrase(requests)),
        "shared-tail": (0.25, phrases_zh.SharedTail(requests)),
    }
