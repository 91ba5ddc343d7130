"""Drafts: what they guess of a text that goes on; each row says what the model has written and what should come."""

from __future__ import annotations

import pytest

from teo.layouts import Marker, Pieces
from teo.runtime.drafts import Drafts, Marks

HISTORY = ("I think Batman is handsome", "the poster looks like Ben Affleck")
UTTERANCE = "it is he who acted"
DIALOGUE: Pieces = (Marker.CLS, HISTORY[0], Marker.SEP, HISTORY[1], Marker.SEP, UTTERANCE, Marker.SEP)
DIRECT, FUSED, FAST = ((marker,) for marker in (Marker.WRITE_REWRITE, Marker.WRITE_OPERATIONS, Marker.WRITE_PLACED))


class Words:
    """A codec whose tokens are words."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def number(self, word: str) -> int:
        if word not in self.known:
            self.known.append(word)
        return self.known.index(word)

    def encode_text(self, text: str) -> tuple[int, ...]:
        return tuple(self.number(word) for word in text.split())

    def encode_target(self, pieces: Pieces) -> list[int]:
        ids = [
            number
            for piece in pieces
            for number in ((self.number(piece.value),) if isinstance(piece, Marker) else self.encode_text(piece))
        ]
        return [*ids, self.number("END")]


def draft(source: Pieces, prompt: Pieces, text: str) -> str:
    codec = Words()
    found = Drafts.of(codec, Marks(codec), source, prompt)(codec.encode_text(text))
    return " ".join(codec.known[number] for number in found)


@pytest.mark.parametrize(
    ("prompt", "text", "expected", "why"),
    [
        (DIRECT, "", UTTERANCE, "a rewrite starts as the utterance does"),
        (DIRECT, "it is Ben", "Affleck", "after a word of the history comes what followed it there"),
        (DIRECT, "it is Ben Affleck who", "acted", "then the utterance resumes behind what was replaced"),
        (DIRECT, "he", "who acted", "words of the utterance may be left out"),
        (DIRECT, "yes", UTTERANCE, "an unknown word is taken for an insertion"),
        (DIRECT, "it is he who acted", "", "and then the end, which is no guess"),
        (FUSED, "", f"[SEP] {UTTERANCE}", "no operations are the likeliest"),
        (FUSED, "[D]", "", "which word is replaced cannot be known"),
        (FUSED, "[D] he", "[R]", "most of what is replaced is one word"),
        (FUSED, "[D] he [R] Ben", "Affleck", "what it is replaced by is of the history"),
        (FUSED, "[D] he [R] Ben Affleck [SEP]", "it is Ben Affleck who acted", "the operations are carried out"),
        (FUSED, "[I] as Batman [SEP]", UTTERANCE, "where an insertion goes is not known"),
        (FUSED, "[I] as Batman [SEP] it is he who acted as", "Batman", "until its first word comes"),
        (FUSED, "[I] as Batman [SEP] it as", "Batman is he who acted", "and the utterance resumes behind it"),
        (FUSED, "[D] she [R] Ben [SEP]", UTTERANCE, "what cannot be carried out is not"),
        (FAST, "", "", "no operations are no text at all"),
        (FAST, "[P] it is", "he who acted", "places are of the utterance"),
        (FAST, "[P] it is [I] the", "poster looks like Ben Affleck", "what is inserted is of the history"),
        ((), "[D] it", "[R]", "separate weights have no prompt: the text itself tells"),
        ((), "it is Ben", "Affleck", "and so it does for a rewrite"),
    ],
)
def test_drafts_follow_the_text(prompt: Pieces, text: str, expected: str, why: str) -> None:
    assert draft(DIALOGUE, prompt, text) == expected, why


def test_the_second_stage_follows_the_operations_that_it_reads() -> None:
    operations: Pieces = (Marker.DELETE, "he", Marker.REPLACE, "Ben Affleck", Marker.SEP)
    assert draft((*DIALOGUE, *operations), (), "") == "it is Ben Affleck who acted"
    assert draft((*DIALOGUE, Marker.SEP), (), "") == UTTERANCE, "no operations"
    assert draft(DIALOGUE, (*FUSED, *operations), "it") == "is Ben Affleck who acted", "given as the text's start"


def test_the_longest_match_wins_and_the_latest_of_equals() -> None:
    source: Pieces = (Marker.CLS, "a b c", Marker.SEP, "x b d", Marker.SEP, "b e", Marker.SEP, "u", Marker.SEP)
    assert draft(source, DIRECT, "b") == "e"
    assert draft(source, DIRECT, "x b") == "d"
    assert draft(source, DIRECT, "q a b") == "c"


@pytest.mark.parametrize("source", [(), (Marker.SEP,), (Marker.CLS, "", Marker.SEP), ("one", "two")])
def test_any_source_has_drafts(source: Pieces) -> None:
    for prompt in (DIRECT, FUSED, FAST, ()):
        for text in ("", "one", "[SEP]", "[R]", "[D] [R] [SEP] one", "[P]"):
            assert isinstance(draft(source, prompt, text), str)
