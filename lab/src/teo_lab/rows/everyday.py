"""Everyday dialogues made from templates, with the complete form of their last utterance.

Kinds have their shares, templates of a kind are drawn by how many wordings they have, and slots, choices and typos
follow from the seed alone. Some dialogues begin with unrelated turns, some end with an unrelated complete
question that stays unchanged.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice, zip_longest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo_lab.paths import ROWS
from teo_lab.rows.choices import Language
from teo_lab.rows.patterns import Filling, Pattern, count_wordings, every_fill, fill
from teo_lab.rows.template_files import ANSWER, Template, read_templates
from teo_lab.rows.typos import Typed, add_typos
from teo_lab.rows.words import WordList, read_words

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
class _Filled:
    """The dialogue of a template, before typos."""

    turns: list[str]
    speakers: str
    rewrite: str


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A template with its patterns."""

    template: Template
    turns: tuple[Pattern | None, ...]
    rewrite: Pattern | None
    weight: float


class _Pool:
    """The templates and words of one language, less those that are held out (or only those)."""

    def __init__(self, language: Language, held_out: bool | None, answers: Mapping[str, str] | None) -> None:
        templates, self.words = _read(language)
        self.language = language
        self.answers = answers or {}
        chosen = [parsed for parsed in templates if held_out is None or parsed.template.held_out == held_out]
        self.questions = {
            parsed.template.where: found for parsed in chosen if (found := self._answered(parsed)) or not answers
        }
        usable = [
            parsed
            for parsed in chosen
            if ANSWER not in parsed.template.turns or self.questions.get(parsed.template.where)
        ]
        self.by_kind: dict[str, list[_Parsed]] = {}
        for parsed in usable:
            self.by_kind.setdefault(parsed.template.kind, []).append(parsed)
        self.kinds = [kind for kind in KIND_WEIGHTS if kind in self.by_kind]
        self.kind_weights = list(accumulate(KIND_WEIGHTS[kind] for kind in self.kinds))
        self.template_weights = {
            kind: list(accumulate(parsed.weight for parsed in same)) for kind, same in self.by_kind.items()
        }
        self.openings = [parsed for parsed in usable if parsed.template.speakers.startswith("UA") and parsed.turns[1]]

    def _answered(self, parsed: _Parsed) -> list[tuple[str, Filling]]:
        """Return the fills of an answered question that have an answer."""
        if ANSWER not in parsed.template.turns or not self.answers:
            return []
        question = parsed.turns[parsed.template.turns.index(ANSWER) - 1] or ()
        fills = every_fill(question, self.words, Filling())
        return [(text, drawn) for raw, drawn in fills if (text := tidy(raw, self.language)) in self.answers]

    def draw(self, rng: random.Random) -> _Parsed:
        """Return a template: first a kind by its share, then a template by its number of wordings."""
        kind = rng.choices(self.kinds, cum_weights=self.kind_weights)[0]
        return rng.choices(self.by_kind[kind], cum_weights=self.template_weights[kind])[0]

    def fill(self, parsed: _Parsed, rng: random.Random) -> _Filled:
        """Return the template filled in."""
        answer, filling = "", Filling()
        if ANSWER in parsed.template.turns:
            question, drawn = rng.choice(self.questions[parsed.template.where])
            answer, filling = self.answers[question], drawn.copy()
        turns = [answer if pattern is None else self._text(pattern, filling, rng) for pattern in parsed.turns]
        rewrite = turns[-1] if parsed.rewrite is None else self._text(parsed.rewrite, filling, rng)
        return _Filled(turns, parsed.template.speakers, rewrite)

    def _text(self, pattern: Pattern, filling: Filling, rng: random.Random) -> str:
        return tidy(fill(pattern, filling, self.words, rng), self.language)

    def opening(self, rng: random.Random) -> list[str] | None:
        """Return a complete question or statement and its short answer, or None if the answer came out long."""
        parsed = rng.choice(self.openings)
        filling = Filling()
        turns = [self._text(pattern or (), filling, rng) for pattern in parsed.turns[:2]]
        return turns if len(turns[1]) <= _SHORT_TURN else None


@cache
def _read(language: Language) -> tuple[list[_Parsed], dict[str, WordList]]:
    words = read_words(ROWS / "words" / f"{language}.txt")
    templates = []
    for template in read_templates(ROWS / "templates" / language):
        *turns, rewrite = template.patterns()
        texts = tuple(pattern for pattern in (*turns, rewrite) if pattern)
        templates.append(_Parsed(template, tuple(turns), rewrite, 1 + count_wordings(texts)))
    return templates, words


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


def everyday_rows(
    language: Language,
    count: int,
    seed: int,
    *,
    held_out: bool = False,
    answers: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """Yield `count` rows, all distinct dialogues; equal arguments give equal rows.

    `held_out` takes only the templates that training never sees, for development. `answers` maps questions of
    `list_questions` to answers; without it the templates that need an answer are left out.
    """
    pool = _Pool(language, held_out, answers)
    rng = random.Random(f"everyday/{language}/{seed}/{held_out}")
    seen: set[Dialogue] = set()
    repeated = 0
    while len(seen) < count and repeated < 20 * count + 1000:
        filled = pool.fill(pool.draw(rng), rng)
        filled = _switch(filled, pool, rng) if rng.random() < SWITCHED else filled
        filled = _pad(filled, pool, rng) if rng.random() < PADDED else filled
        typed = add_typos(Typed(tuple(filled.turns), filled.speakers, filled.rewrite), language, rng)
        if typed.dialogue in seen:
            repeated += 1
            continue
        yield Row(f"everyday-{language}-{len(seen)}", typed.dialogue, typed.rewrite)
        seen.add(typed.dialogue)


def _pad(filled: _Filled, pool: _Pool, rng: random.Random) -> _Filled:
    """Return the dialogue after two to six unrelated turns."""
    pairs = [pair for _ in range(rng.randint(1, 3)) if (pair := pool.opening(rng))]
    turns = [turn for pair in pairs for turn in pair][: max(0, MAX_TURNS + 1 - len(filled.turns)) // 2 * 2]
    return _Filled(turns + filled.turns, "UA" * (len(turns) // 2) + filled.speakers, filled.rewrite)


def _switch(filled: _Filled, pool: _Pool, rng: random.Random) -> _Filled:
    """Return the dialogue with a reply and then a complete utterance of another template."""
    opening = pool.opening(rng)
    if filled.speakers[-1] != "U" or opening is None:
        return filled
    complete = pool.by_kind.get("keep")
    utterance = pool.fill(rng.choice(complete), rng).turns[-1] if complete and rng.random() < 0.5 else opening[0]
    turns, speakers = list(filled.turns), filled.speakers
    if _REPLY_LIST in pool.words and rng.random() < 0.7:
        turns.append(rng.choice(pool.words[_REPLY_LIST].entries).value)
        speakers += "A"
    return _Filled([*turns, utterance], speakers + "U", utterance)


def list_questions(language: Language, count: int, seed: int) -> list[str]:
    """Return `count` distinct questions of the templates whose answer the caller gives, fewer if there are fewer.

    The templates take turns, so that each has its share.
    """
    rng = random.Random(f"questions/{language}/{seed}")
    templates, words = _read(language)
    texts = dict.fromkeys(
        parsed.turns[parsed.template.turns.index(ANSWER) - 1] or ()
        for parsed in templates
        if ANSWER in parsed.template.turns
    )
    columns = []
    for pattern in texts:
        fills = [tidy(text, language) for text, _ in every_fill(pattern, words, Filling())]
        columns.append(rng.sample(fills, len(fills)))
    return list(islice(_take_turns(columns), count))


def _take_turns(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    seen: set[str] = set()
    for layer in zip_longest(*columns):
        for question in layer:
            if question is not None and question not in seen:
                seen.add(question)
                yield question
