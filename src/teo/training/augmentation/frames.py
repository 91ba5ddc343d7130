"""Everyday dialogues made from frames, with the complete form of their last utterance.

Kinds have their shares, frames of a kind are drawn by how many wordings they have, and slots, choices and typing
noise follow from the seed alone. Some dialogues begin with unrelated turns, some end with an unrelated complete
question that stays as it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice, zip_longest
from pathlib import Path
from typing import Literal

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.training.augmentation.frame_files import ANSWER, Frame, read_frames
from teo.training.augmentation.templates import Filling, Template, count_wordings, every_fill, fill
from teo.training.augmentation.typing import Typed, add_noise
from teo.training.augmentation.words import WordList, read_words

__all__ = ["Frame", "list_questions", "make_rows", "read_frames", "read_words"]

Language = Literal["en", "zh"]
FOLDER = Path(__file__).parent

KIND_WEIGHTS = {
    "substitution": 12,
    "bare-question": 9,
    "pronoun": 11,
    "possessive": 5,
    "there-then-one": 6,
    "nth": 6,
    "two-candidates": 6,
    "own-turn": 5,
    "far-back": 4,
    "long-answer": 10,
    "statement": 4,
    "request": 6,
    "answered-question": 12,
    "keep": 24,
}
PADDED = 0.12
"""Share of dialogues with unrelated turns before them."""
SWITCHED = 0.08
"""Share of dialogues that end with an unrelated complete question."""
MAX_TURNS = 10
_SHORT_TURN = 160
_REPLY_LIST = "reply"
_LONE_I = re.compile(r"(?<![\w.'’-])i(?=[\s,?!']|$)")
_PLURAL_GENITIVE = re.compile(r"\b([Tt]he [A-Z]\w*(?: [A-Z]\w*)*s|[Mm]y (?:[\w-]+ )?\w*[^\Ws]s)'s\b")
_SENTENCE_START = re.compile(r"(^|(?<=\n)(?:\d+[.)] |[-*•] )?|(?<=[\w'’)\"]{2}[.?!])\s+|(?<=\n\n))([a-z])(?![A-Z])")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A frame filled in, before anything is mistyped."""

    turns: list[str]
    speakers: str
    rewrite: str


@dataclass(frozen=True, slots=True)
class _Known:
    """A frame with its templates."""

    frame: Frame
    turns: tuple[Template | None, ...]
    rewrite: Template | None
    weight: float


class _Source:
    """The frames and words of one language, less those that are held out (or only those)."""

    def __init__(self, language: Language, held_out: bool | None, answers: Mapping[str, str] | None) -> None:
        frames, self.words = _read(language)
        self.language = language
        self.answers = answers or {}
        chosen = [known for known in frames if held_out is None or known.frame.held_out == held_out]
        self.questions = {
            known.frame.where: found for known in chosen if (found := self._answered(known)) or not answers
        }
        usable = [known for known in chosen if ANSWER not in known.frame.turns or self.questions.get(known.frame.where)]
        self.by_kind: dict[str, list[_Known]] = {}
        for known in usable:
            self.by_kind.setdefault(known.frame.kind, []).append(known)
        self.kinds = [kind for kind in KIND_WEIGHTS if kind in self.by_kind]
        self.kind_weights = list(accumulate(KIND_WEIGHTS[kind] for kind in self.kinds))
        self.frame_weights = {
            kind: list(accumulate(known.weight for known in frames)) for kind, frames in self.by_kind.items()
        }
        self.openings = [known for known in usable if known.frame.speakers.startswith("UA") and known.turns[1]]

    def _answered(self, known: _Known) -> list[tuple[str, Filling]]:
        """Return the fills of an answered question that have an answer."""
        if ANSWER not in known.frame.turns or not self.answers:
            return []
        question = known.turns[known.frame.turns.index(ANSWER) - 1] or ()
        fills = every_fill(question, self.words, Filling())
        return [(text, drawn) for raw, drawn in fills if (text := tidy(raw, self.language)) in self.answers]

    def draw(self, rng: random.Random) -> _Known:
        """Return a frame: first a kind by its share, then a frame by its number of wordings."""
        kind = rng.choices(self.kinds, cum_weights=self.kind_weights)[0]
        return rng.choices(self.by_kind[kind], cum_weights=self.frame_weights[kind])[0]

    def draft(self, known: _Known, rng: random.Random) -> _Draft:
        """Return the frame filled in."""
        answer, filling = "", Filling()
        if ANSWER in known.frame.turns:
            question, drawn = rng.choice(self.questions[known.frame.where])
            answer, filling = self.answers[question], drawn.copy()
        turns = [answer if template is None else self._text(template, filling, rng) for template in known.turns]
        rewrite = turns[-1] if known.rewrite is None else self._text(known.rewrite, filling, rng)
        return _Draft(turns, known.frame.speakers, rewrite)

    def _text(self, template: Template, filling: Filling, rng: random.Random) -> str:
        return tidy(fill(template, filling, self.words, rng), self.language)

    def opening(self, rng: random.Random) -> list[str] | None:
        """Return a complete question or statement and its short answer, or None where the answer came out long."""
        known = rng.choice(self.openings)
        filling = Filling()
        turns = [self._text(template or (), filling, rng) for template in known.turns[:2]]
        return turns if len(turns[1]) <= _SHORT_TURN else None


@cache
def _read(language: Language) -> tuple[list[_Known], dict[str, WordList]]:
    words = read_words(FOLDER / "words" / f"{language}.txt")
    known = []
    for frame in read_frames(FOLDER / "frames" / language):
        *turns, rewrite = frame.templates()
        texts = tuple(template for template in (*turns, rewrite) if template)
        known.append(_Known(frame, tuple(turns), rewrite, 1 + count_wordings(texts)))
    return known, words


def tidy(text: str, language: Language) -> str:
    """Return the text with the spaces and capitals that its choices and slots may have left wrong.

    A text that starts with `~` keeps its small first letter: search queries, reactions.
    """
    small = text.startswith("~")
    text = text.replace("~", "")
    text = re.sub(r" {2,}", " ", text)
    text = re.sub(r" +(?=[,.?!;:\n]|$)", "", text).strip()
    if language == "zh":
        return text
    text = _PLURAL_GENITIVE.sub(r"\1'", text).replace("'s's", "'s")
    text = _LONE_I.sub("I", re.sub(r"(?<!\.)\.\.(?!\.)", ".", text))
    first = text[:1]
    text = _SENTENCE_START.sub(lambda match: match[1] + match[2].upper(), text)
    return first + text[1:] if small else text


def make_rows(
    language: Language,
    count: int,
    seed: int,
    *,
    held_out: bool = False,
    answers: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """Yield that many rows, all distinct dialogues; equal arguments give equal rows.

    `held_out` takes only the frames that training never sees, for development. `answers` maps questions of
    `list_questions` to answers; without it the frames that need an answer are left out.
    """
    source = _Source(language, held_out, answers)
    rng = random.Random(f"everyday/{language}/{seed}/{held_out}")
    seen: set[Dialogue] = set()
    repeated = 0
    while len(seen) < count and repeated < 20 * count + 1000:
        draft = source.draft(source.draw(rng), rng)
        draft = _switch(draft, source, rng) if rng.random() < SWITCHED else draft
        draft = _pad(draft, source, rng) if rng.random() < PADDED else draft
        typed = add_noise(Typed(tuple(draft.turns), draft.speakers, draft.rewrite), language, rng)
        dialogue = Dialogue(typed.turns[:-1], typed.turns[-1])
        if dialogue in seen:
            repeated += 1
            continue
        yield Row(f"everyday-{language}-{len(seen)}", dialogue, typed.rewrite)
        seen.add(dialogue)


def _pad(draft: _Draft, source: _Source, rng: random.Random) -> _Draft:
    """Return the draft after two to six unrelated turns."""
    pairs = [pair for _ in range(rng.randint(1, 3)) if (pair := source.opening(rng))]
    turns = [turn for pair in pairs for turn in pair][: max(0, MAX_TURNS + 1 - len(draft.turns)) // 2 * 2]
    return _Draft(turns + draft.turns, "UA" * (len(turns) // 2) + draft.speakers, draft.rewrite)


def _switch(draft: _Draft, source: _Source, rng: random.Random) -> _Draft:
    """Return the draft with a reply and then a complete utterance of another frame, which stays as it is."""
    opening = source.opening(rng)
    if draft.speakers[-1] != "U" or opening is None:
        return draft
    keeps = source.by_kind.get("keep")
    utterance = source.draft(rng.choice(keeps), rng).turns[-1] if keeps and rng.random() < 0.5 else opening[0]
    turns, speakers = list(draft.turns), draft.speakers
    if _REPLY_LIST in source.words and rng.random() < 0.7:
        turns.append(rng.choice(source.words[_REPLY_LIST].entries).value)
        speakers += "A"
    return _Draft([*turns, utterance], speakers + "U", utterance)


def list_questions(language: Language, count: int, seed: int) -> list[str]:
    """Return that many distinct questions of the frames whose answer the caller gives, fewer where there are fewer.

    The frames take turns, so that each has its share.
    """
    rng = random.Random(f"questions/{language}/{seed}")
    known, words = _read(language)
    texts = dict.fromkeys(
        known.turns[known.frame.turns.index(ANSWER) - 1] or () for known in known if ANSWER in known.frame.turns
    )
    columns = []
    for template in texts:
        fills = [tidy(text, language) for text, _ in every_fill(template, words, Filling())]
        columns.append(rng.sample(fills, len(fills)))
    return list(islice(_take_turns(columns), count))


def _take_turns(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    seen: set[str] = set()
    for layer in zip_longest(*columns):
        for question in layer:
            if question is not None and question not in seen:
                seen.add(question)
                yield question
