"""What the noise of pretraining must know of a tokenizer's tokens."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from teo.layouts import Marker
from teo.models.tokenizer import EOS, MASK, SPECIAL_TOKENS
from teo.units import is_cjk

_ID = {token: index for index, token in enumerate(SPECIAL_TOKENS)}
CLS_ID, SEP_ID, EOS_ID, MASK_ID = _ID[Marker.CLS], _ID[Marker.SEP], _ID[EOS], _ID[MASK]
INSERT_ID, DELETE_ID, REPLACE_ID, PLACE_ID = (
    _ID[marker] for marker in (Marker.INSERT, Marker.DELETE, Marker.REPLACE, Marker.PLACE)
)
OPERATIONS_ID, REWRITE_ID, PLACED_ID, BLANK_ID = (
    _ID[marker] for marker in (Marker.WRITE_OPERATIONS, Marker.WRITE_REWRITE, Marker.WRITE_PLACED, Marker.BLANK)
)
_PRONOUNS = {
    True: tuple("他 她 它 他们 她们 它们 这个 那个 这 那 这里 那里 这样 这些 那些 这种 那儿 人家".split()),  # noqa: SIM905
    False: tuple("it it he she they them him her that this there one those these its".split()),  # noqa: SIM905
}
"""What a left-out span gives way to, by script: True for Chinese."""

_DETERMINERS = "the a an my your our their this that these those"
_PREPOSITIONS = "of in at to from for about with on by"
_PLACE_PREPOSITIONS = "in at to from"
_POSSESSIVES = "his her its their its his"
"""English words that go with a noun phrase: people leave out "of Paris", not "Paris", and say "it" for "the tower"."""

_CLITICS = {"'s", "'t", "'r", "'v", "'m", "'l", "'d"}

Ids = list[int]


def cjk_tokens(tokenizer: Tokenizer) -> list[bool]:
    """Return for each token id whether it is Chinese script."""
    return [is_cjk(str(tokenizer.id_to_token(index))[0]) for index in range(tokenizer.get_vocab_size())]


class Vocabulary:
    """What the noise must know of each token id."""

    def __init__(self, tokenizer: Tokenizer, frequent: Sequence[bool]) -> None:
        size = tokenizer.get_vocab_size()
        tokens = [str(tokenizer.id_to_token(index)) for index in range(size)]
        self.size = size
        self.first_word = len(SPECIAL_TOKENS) + 256
        self.cjk = cjk_tokens(tokenizer)
        self.starts_unit = [
            token.startswith("▁") or is_cjk(token[0]) or not (token[0].isalnum() or token[:2] in _CLITICS)
            for token in tokens
        ]
        self.punctuation = [not token.lstrip("▁")[:1].isalnum() and not is_cjk(token[0]) for token in tokens]
        self.capital = [token[:1] == "▁" and token[1:2].isupper() and len(token) > 3 for token in tokens]
        self.frequent = [bool(flag) for flag in frequent]
        encode = lambda word: tokenizer.encode(word, add_special_tokens=False).ids  # noqa: E731
        self.pronouns = {script: [encode(word) for word in words] for script, words in _PRONOUNS.items()}
        self.capital_pronouns = [encode(word.capitalize()) for word in _PRONOUNS[False]]
        single = lambda words: {encode(form)[0] for word in words for form in (word, word.capitalize())}  # noqa: E731
        self.determiners, self.prepositions = single(_DETERMINERS.split()), single(_PREPOSITIONS.split())
        self.place_prepositions = single(_PLACE_PREPOSITIONS.split())
        self.possessives = [encode(word) for word in _POSSESSIVES.split()]
        self.there = encode("there")
        self.possessive_ends = [index for index, token in enumerate(tokens) if token == "'s"]
        self.all_pronouns = [*self.pronouns[True], *self.pronouns[False], *self.capital_pronouns]
