"""Typos: people leave out capitals and marks and hit wrong keys; the rewrite keeps what they typed.

What the rewrite takes from the utterance is spelled as in the utterance, the rest as in the turn that it comes from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from teo.dialogue import Dialogue

LOWER_CASE = 0.18
"""Share of English users who write everything small and without final marks."""
LOWER_START = 0.07
"""Share of English users who write names with capitals, but no sentence starts and no final marks."""
NO_FINAL_MARK = {"en": 0.07, "zh": 0.5}
"""Share of users who only leave out the final mark."""
BOTH_LOWER_CASE = 0.15
"""Share of lower-case users whose partner writes short turns in the same way: friends chatting."""
TYPING_ERRORS = 0.06
SPACES_FOR_COMMAS = 0.06
PARTICLES = 0.05
_CHAT_TURN = 80
_CHINESE = "\u3400-\u9fff"
_TOKEN = re.compile(rf"[{_CHINESE}]|[^\W{_CHINESE}]+(?:['’][^\W{_CHINESE}]+)*|\s+|[^\w\s]")
_FINAL_MARKS = ".?!。？！"
_ABBREVIATION = re.compile(r"\b\w\.\w\.$")
_HOMOPHONES = {"的": "得地", "得": "的", "地": "的", "在": "再", "再": "在", "吗": "嘛", "做": "作"}
_QUESTION_WORDS = re.compile(r"谁|什么|哪|怎么|多少|几|多久|多长|为啥|咋")
_ENDINGS = "了啊呀呢吧吗嘛哦哈的"
STARTERS = frozenset(
    re.findall(
        r"\S+",
        """a about actually after all almost alright also am an and any anything are as at back be because before best
        book both buy by call can cancel cheap cheaper check compare cool could delete did do does don't find for
        from get give great hang has have he her here hey hi his hm how how's if in is it it's its just kind leave
        let let's like list look make maybe me might mine move my never nice no not now of oh ok okay on one only
        open or order our pay perhaps play please postpone print put read really remind remove rewrite right same
        save say send set she should show sign since skip so some someone start stop sure switch take tell text
        thanks that the their them then there there's these they this those to today tomorrow too transfer translate
        try turn two until use very was watch we well were what what's when when's where where's which who who'd
        who's whose why will with would write yeah yes you your""",
    )
)
"""Words that start sentences and are no names: they lose their capital, other first words keep it."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A dialogue with its rewrite, as typed."""

    turns: tuple[str, ...]
    speakers: str
    rewrite: str

    @classmethod
    def taking_turns(cls, dialogue: Dialogue, rewrite: str) -> Typed:
        """Return a dialogue in which the user, who speaks last, and another one take turns."""
        turns = (*dialogue.history, dialogue.utterance)
        speakers = "".join("UA"[place % 2] for place in reversed(range(len(turns))))
        return cls(turns, speakers, rewrite)

    @property
    def dialogue(self) -> Dialogue:
        """The turns as a dialogue."""
        return Dialogue(self.turns[:-1], self.turns[-1])

    @property
    def complete(self) -> bool:
        """Whether the utterance needs no rewrite."""
        return self.turns[-1] == self.rewrite


def add_typos(clean: Typed, language: str, rng: random.Random) -> Typed:
    """Return the dialogue as somebody in a hurry may type it; most stay unchanged."""
    typed = _add_particle(clean, rng) if language == "zh" and rng.random() < PARTICLES else clean
    draw = rng.random()
    if language == "en" and draw < LOWER_CASE:
        typed = drop_capitals(typed, rng)
    elif language == "en" and draw < LOWER_CASE + LOWER_START:
        typed = _on_user_turns(typed, lambda turn: _lower_start(_drop_mark(turn)))
    elif draw > 1 - NO_FINAL_MARK[language]:
        typed = drop_final_marks(typed)
    if language == "zh" and rng.random() < SPACES_FOR_COMMAS:
        typed = _on_user_turns(typed, lambda turn: turn.replace("，", " "))
    if rng.random() < TYPING_ERRORS:
        typed = mistype(typed, language, rng)
    return typed


def _on_user_turns(clean: Typed, change: Callable[[str], str]) -> Typed:
    """Return the dialogue with a change of style in the user's turns and in the rewrite."""
    speaker = clean.speakers[-1]
    turns = tuple(
        change(turn) if who == speaker else turn for turn, who in zip(clean.turns, clean.speakers, strict=True)
    )
    return Typed(turns, clean.speakers, turns[-1] if clean.complete else change(clean.rewrite))


def drop_final_marks(clean: Typed) -> Typed:
    """Return the dialogue without the final marks of the user's turns."""
    return _on_user_turns(clean, _drop_mark)


def _drop_mark(turn: str) -> str:
    """Return the turn without its final mark; the dot of an abbreviation such as p.m. stays."""
    return turn if _ABBREVIATION.search(turn) else turn.rstrip(_FINAL_MARKS) or turn


def _lower_start(turn: str) -> str:
    first = _TOKEN.match(turn)
    return turn[:1].lower() + turn[1:] if first and first[0].lower() in STARTERS else turn


def drop_capitals(clean: Typed, rng: random.Random) -> Typed:
    """Return the dialogue without the user's capitals and final marks; names from the assistant keep theirs."""
    speaker, chat = clean.speakers[-1], rng.random() < BOTH_LOWER_CASE
    turns = tuple(
        _drop_mark(turn).lower() if who == speaker or (chat and len(turn) <= _CHAT_TURN) else turn
        for turn, who in zip(clean.turns, clean.speakers, strict=True)
    )
    if clean.complete:
        return Typed(turns, clean.speakers, turns[-1])
    before = _TOKEN.findall(_drop_mark(clean.rewrite))
    kept = {new for _, new in _common_words(_TOKEN.findall(clean.turns[-1]), before)}
    after = [token.lower() if token.lower() in STARTERS or k in kept else token for k, token in enumerate(before)]
    for run in _runs(after, kept):
        spelling = _spelling_of([after[k] for k in run], turns[:-1])
        for k in run:
            after[k] = spelling.get(after[k].lower(), after[k].lower())
    return Typed(turns, clean.speakers, "".join(after))


def _runs(tokens: Sequence[str], kept: set[int]) -> Iterator[list[int]]:
    """Yield the stretches of a rewrite that are not in the utterance: the positions of its capitalised words."""
    run: list[int] = []
    for position, token in enumerate(tokens):
        if position in kept:
            if run:
                yield run
            run = []
        elif token != token.lower():
            run.append(position)
    if run:
        yield run


def _spelling_of(words: Sequence[str], turns: Sequence[str]) -> Mapping[str, str]:
    """Return how the turn that has most of the words, the latest of several, spells them, by lower-case word."""
    wanted = {word.lower() for word in words}
    best: dict[str, str] = {}
    for turn in turns:
        found = {token.lower(): token for token in _TOKEN.findall(turn) if token.lower() in wanted}
        if len(found) >= len(best):
            best = found
    return best


def _common_words(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of the tokens that two texts share, in order, capitals and spaces aside."""
    positions = [[k for k, token in enumerate(tokens) if not token.isspace()] for tokens in (first, second)]
    words = [[tokens[k].lower() for k in kept] for tokens, kept in zip((first, second), positions, strict=True)]
    blocks = SequenceMatcher(None, words[0], words[1], autojunk=False).get_matching_blocks()
    return [(positions[0][b.a + k], positions[1][b.b + k]) for b in blocks for k in range(b.size)]


def mistype(clean: Typed, language: str, rng: random.Random) -> Typed:
    """Return the dialogue with one or two typing errors in the utterance and in what the rewrite takes from it."""
    tokens, rewrite = _TOKEN.findall(clean.turns[-1]), _TOKEN.findall(clean.rewrite)
    mistype_token = _mistype_chinese if language == "zh" else _mistype_english
    options = [k for k, token in enumerate(tokens) if mistype_token(token, random.Random(0)) != token]
    common = dict(_common_words(tokens, rewrite))
    for position in rng.sample(options, min(len(options), rng.choice((1, 1, 2)))):
        wrong = mistype_token(tokens[position], rng)
        if position in common:
            rewrite[common[position]] = wrong
        tokens[position] = wrong
    utterance = "".join(tokens)
    return replace(
        clean, turns=(*clean.turns[:-1], utterance), rewrite=utterance if clean.complete else "".join(rewrite)
    )


def _mistype_english(word: str, rng: random.Random) -> str:
    """Return the word with two letters swapped, one dropped or doubled, or without its apostrophe."""
    if "'" in word:
        return word.replace("'", "")
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    position = rng.randrange(1, len(word) - 1)
    swapped = word[:position] + word[position + 1] + word[position] + word[position + 2 :]
    dropped = word[:position] + word[position + 1 :]
    doubled = word[:position] + word[position] + word[position:]
    return rng.choice((swapped if swapped != word else dropped, dropped, doubled))


def _mistype_chinese(character: str, rng: random.Random) -> str:
    """Return a homophone that people choose by mistake, or the character if there is none."""
    return rng.choice(_HOMOPHONES.get(character, character))


def _add_particle(clean: Typed, rng: random.Random) -> Typed:
    """Return the dialogue with a particle after a question whose rewrite ends in the same words."""
    utterance, rewrite = (text.rstrip(_FINAL_MARKS) for text in (clean.turns[-1], clean.rewrite))
    mark = clean.turns[-1][len(utterance) :]
    same_end = utterance[-2:] == rewrite[-2:] and mark == clean.rewrite[len(rewrite) :]
    if not same_end or utterance[-1:] in _ENDINGS or not _QUESTION_WORDS.search(utterance[-4:]):
        return clean
    ending = rng.choice("啊呀呢") + mark
    return replace(clean, turns=(*clean.turns[:-1], utterance + ending), rewrite=rewrite + ending)
