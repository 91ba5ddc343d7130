"""Self-supervised examples from plain dialogues, on token ids: text infilling and rewriting.

*Rewriting*: spans of a turn that the turns before it also have are left out or give way to a pronoun; the model
learns to bring them back: at once, as editing operations and then the rewrite, from perturbed operations, and as
operations that carry their place. One source serves all of these: their targets are written one behind the other.
*Infilling*: spans of a run of turns become one blank each, which the decoder fills; single tokens are masked, which
the encoder fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tokenizers import Tokenizer

from teo.layouts import Marker
from teo.models.tokenizer import EOS, MASK, SPECIAL_TOKENS
from teo.training.perturbation import perturb
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


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """How examples are made; the defaults are the shipped recipe."""

    infilling: float = 0.4
    """Share of examples that are infilling; the rest are rewriting."""
    blanked: float = 0.2
    """Share of an infilling source's tokens that become blanks."""
    blank_length: float = 3.0
    """Mean length of a blanked span (Poisson)."""
    masked: float = 0.12
    """Share of an infilling source's other tokens that the encoder must fill."""
    pronoun: float = 0.35
    """Chance that a left-out span gives way to a pronoun."""
    unchanged: float = 0.15
    """Share of rewriting examples whose turn stays as it is, so that the model learns to leave complete ones alone;
    turns with a pronoun are not taken for these."""
    phrase: float = 0.75
    """Chance that an English span leaves with the words that belong to it: its article, its preposition, its 's."""
    joined: float = 0.12
    """Share of examples in which several turns of the history stand as one long turn, as an assistant's answer."""
    perturbation: float = 0.3
    """prob_p of Algorithm 1 for the targets that start from perturbed operations."""
    replacement: float = 0.5
    """prob_r of Algorithm 1."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One decoder text: its tokens, of which the first `free` are given and carry no loss."""

    ids: Ids
    free: int


@dataclass(frozen=True, slots=True)
class NoisedExample:
    """A source, the decoder's texts for it, and what the encoder must fill (position, token)."""

    source: Ids
    segments: list[Segment]
    masked: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int  # in the incomplete utterance
    old: Ids
    new: Ids


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


class Noise:
    """Makes examples from turns of token ids; equal random states give equal examples."""

    def __init__(self, vocabulary: Vocabulary, settings: NoiseSettings) -> None:
        self.vocabulary = vocabulary
        self.settings = settings

    def rewriting(
        self, history: list[Ids], turn: Ids, rng: Random, room: int, *, unchanged: bool
    ) -> NoisedExample | None:
        """Return a rewriting example, or None where something must change but the turn repeats nothing."""
        edits: list[_Edit] = []
        if unchanged:
            if any(_find(turn, pronoun, 0) >= 0 for pronoun in self.vocabulary.all_pronouns):
                return None
        else:
            spans = self.shared_spans(history[-4:], turn)
            phrases = [span for span in spans if self._looks_nominal(turn, *span)]
            if phrases and rng.random() < self.settings.phrase:
                spans = phrases
            edits = self._leave_out(turn, spans, rng) if spans else []
            if not edits:
                return None
        incomplete = _undo(turn, edits)
        source = [CLS_ID]
        for each in (*history, incomplete):
            source += each
            source.append(SEP_ID)
        segments = [Segment([CLS_ID, REWRITE_ID, *turn, EOS_ID], 2)]
        operations = _operations(edits)
        segments.append(Segment([CLS_ID, OPERATIONS_ID, *operations, SEP_ID, *turn, EOS_ID], 2))
        segments.append(Segment([CLS_ID, PLACED_ID, *self._placed(edits, incomplete), EOS_ID], 2))
        perturbed = _operations(self._perturb(edits, history, incomplete, rng))
        if perturbed != operations:
            prompt = [CLS_ID, OPERATIONS_ID, *perturbed, SEP_ID]
            segments.append(Segment([*prompt, *turn, EOS_ID], len(prompt)))
        kept, used = [], 0
        for segment in segments:
            used += len(segment.ids) - 1
            if used > room:
                break
            kept.append(segment)
        return NoisedExample(source, kept) if kept else None

    def shared_spans(self, history: list[Ids], turn: Ids) -> list[tuple[int, int]]:
        """Return the longest spans of a turn, left to right, that the history also has and that say something."""
        flat: Ids = []
        for each in history:
            flat += each
            flat.append(SEP_ID)
        places: dict[int, list[int]] = {}
        wanted = set(turn)
        for place, token in enumerate(flat):
            if token in wanted:
                places.setdefault(token, []).append(place)
        spans: list[tuple[int, int]] = []
        at, end = 0, len(turn)
        starts = self.vocabulary.starts_unit
        while at < end:
            best = 0
            if starts[turn[at]]:
                for place in places.get(turn[at], ())[-8:]:
                    length = 1
                    while at + length < end and turn[at + length] == flat[place + length]:
                        length += 1
                    best = max(best, length)
            while best and at + best < end and not starts[turn[at + best]]:
                best -= 1  # never cut a word
            if best and self._says_something(turn[at : at + best]):
                spans.append((at, at + best))
                at += best
            else:
                at += 1
        return spans

    def _says_something(self, span: Ids) -> bool:
        vocabulary = self.vocabulary
        telling = [token for token in span if not vocabulary.frequent[token] and not vocabulary.punctuation[token]]
        if not telling:
            return False
        return len(span) > 1 or not vocabulary.cjk[span[0]]

    def _leave_out(self, turn: Ids, spans: list[tuple[int, int]], rng: Random) -> list[_Edit]:
        """Return the edits that bring back one to three spans; the turn must keep something of its own."""
        wanted = min(len(spans), rng.choices((1, 2, 3), (60, 28, 12))[0])
        chosen = sorted(rng.sample(spans, wanted))
        edits: list[_Edit] = []
        left = len(turn)
        shift, last_end = 0, -1
        for first, last in chosen:
            if first < last_end:  # the phrase before it took its first words along
                continue
            start, end = self._trim(turn, first, last, rng)
            start, end, old = self._stand_in(turn, start, end, max(last_end, 0), rng)
            new = turn[start:end]
            left -= len(new) - len(old)
            if left < 1:
                return edits
            if edits and start == last_end:  # two that touch are one
                before = edits.pop()
                edits.append(_Edit(before.start, before.old + old, before.new + new))
            else:
                edits.append(_Edit(start - shift, old, new))
            shift += len(new) - len(old)
            last_end = end
        return [edit for edit in edits if edit.old != edit.new]

    def _trim(self, turn: Ids, start: int, end: int, rng: Random) -> tuple[int, int]:
        """Return the span, half of the time without the frequent words and punctuation at its ends."""
        if rng.random() < 0.5:
            return start, end
        vocabulary = self.vocabulary
        first, last = start, end
        while last - first > 1 and (vocabulary.frequent[turn[last - 1]] or vocabulary.punctuation[turn[last - 1]]):
            last -= 1
        while last - first > 1 and (vocabulary.frequent[turn[first]] or vocabulary.punctuation[turn[first]]):
            first += 1
        whole = vocabulary.starts_unit[turn[first]] and (last == len(turn) or vocabulary.starts_unit[turn[last]])
        return (first, last) if whole and self._says_something(turn[first:last]) else (start, end)

    def _stand_in(self, turn: Ids, start: int, end: int, floor: int, rng: Random) -> tuple[int, int, Ids]:
        """Return the span that leaves, widened to the phrase people leave out, and what comes in its place."""
        vocabulary = self.vocabulary
        pronoun = rng.random() < self.settings.pronoun and self._looks_nominal(turn, start, end)
        if vocabulary.cjk[turn[start]] or rng.random() >= self.settings.phrase:
            return start, end, self._pronoun(turn[start:end], start == 0, rng) if pronoun else []
        if pronoun and end < len(turn) and turn[end] in vocabulary.possessive_ends:
            first = start - (start > floor and turn[start - 1] in vocabulary.determiners)
            return first, end + 1, list(rng.choice(vocabulary.possessives))
        if start > floor and turn[start - 1] in vocabulary.determiners:
            start -= 1
        before = turn[start - 1] if start > floor else -1
        if pronoun and before in vocabulary.place_prepositions and rng.random() < 0.5:
            return start - 1, end, list(vocabulary.there)
        if not pronoun and before in vocabulary.prepositions:
            start -= 1
        return start, end, self._pronoun(turn[start:end], start == 0, rng) if pronoun else []

    def _looks_nominal(self, turn: Ids, start: int, end: int) -> bool:
        """Tell whether a span may be a noun phrase: Chinese, a name, or English behind an article or a preposition."""
        vocabulary = self.vocabulary
        if vocabulary.cjk[turn[start]] or turn[start] in vocabulary.determiners:
            return True
        if end < len(turn) and turn[end] in vocabulary.possessive_ends:
            return True
        before = turn[start - 1] if start else -1
        return before in vocabulary.determiners or before in vocabulary.prepositions or vocabulary.capital[turn[start]]

    def join(self, history: list[Ids], rng: Random) -> list[Ids]:
        """Return the history, now and then with several neighbouring turns as one."""
        if len(history) < 3 or rng.random() >= self.settings.joined:
            return history
        count = rng.randint(2, min(len(history) - 1, 8))
        first = rng.randint(1, len(history) - count)
        return [
            *history[:first],
            [token for turn in history[first : first + count] for token in turn],
            *history[first + count :],
        ]

    def _pronoun(self, span: Ids, at_start: bool, rng: Random) -> Ids:
        vocabulary = self.vocabulary
        script = vocabulary.cjk[span[0]]
        words = vocabulary.capital_pronouns if at_start and not script else vocabulary.pronouns[script]
        return list(rng.choice(words))

    def _placed(self, edits: list[_Edit], utterance: Ids) -> Ids:
        """Return the operations with their places, as teo.placement writes them."""
        ids: Ids = []
        reached = 0
        for edit in edits:
            if edit.old and _find(utterance, edit.old, reached) == edit.start:
                ids += [DELETE_ID, *edit.old, REPLACE_ID, *edit.new]
            else:
                ids += [PLACE_ID, *self._left(utterance, edit, reached)]
                ids += [DELETE_ID, *edit.old, REPLACE_ID, *edit.new] if edit.old else [INSERT_ID, *edit.new]
            reached = edit.start + len(edit.old)
        return ids

    def _left(self, utterance: Ids, edit: _Edit, reached: int) -> Ids:
        starts = self.vocabulary.starts_unit
        for first in range(edit.start - 1, reached - 1, -1):
            if starts[utterance[first]]:
                left = utterance[first : edit.start]
                if _find(utterance, left + edit.old, reached) == first:
                    return left
        return utterance[reached : edit.start]

    def _perturb(self, edits: list[_Edit], history: list[Ids], utterance: Ids, rng: Random) -> list[_Edit]:
        """Return the edits after the paper's Algorithm 1."""

        def draw_edit() -> _Edit:
            old = _random_span([utterance], rng) if rng.random() < 0.5 else []
            return _Edit(0, old, _random_span(history, rng))

        return perturb(
            edits,
            rng,
            self.settings.perturbation,
            self.settings.replacement,
            lambda edit: _Edit(edit.start, edit.old, _random_span(history, rng)),
            draw_edit,
        )

    def infilling(self, turns: list[Ids], rng: Random, room: int) -> NoisedExample | None:
        """Return an infilling example of a run of turns."""
        settings = self.settings
        text = [CLS_ID]
        for turn in turns:
            text += turn
            text.append(SEP_ID)
        blanks = self._blanks(text, rng)
        if not blanks:
            return None
        source: Ids = []
        target: Ids = [CLS_ID]
        masked: list[tuple[int, int]] = []
        at = 0
        for start, end in [*blanks, (len(text), len(text))]:
            for token in text[at:start]:
                if token not in (CLS_ID, SEP_ID) and rng.random() < settings.masked:
                    masked.append((len(source), token))
                    source.append(self._hidden(token, rng))
                else:
                    source.append(token)
            if start < end:
                source.append(BLANK_ID)
                target += [BLANK_ID, *text[start:end]]
            at = end
        target.append(EOS_ID)
        if len(target) - 1 > room:
            target = target[: room + 1]
        return NoisedExample(source, [Segment(target, 2)], masked)

    def _hidden(self, token: int, rng: Random) -> int:
        """Return what stands for a masked token: mostly the mask, now and then another token or the token itself."""
        draw = rng.random()
        if draw < 0.8:
            return MASK_ID
        return rng.randrange(self.vocabulary.first_word, self.vocabulary.size) if draw < 0.9 else token

    def _blanks(self, text: Ids, rng: Random) -> list[tuple[int, int]]:
        """Return spans to blank, in order, apart from each other, inside turns."""
        settings = self.settings
        wanted = max(1, round(len(text) * settings.blanked))
        taken = [token in (CLS_ID, SEP_ID) for token in text]
        spans: list[tuple[int, int]] = []
        for _ in range(4 * wanted):
            if wanted <= 0:
                break
            length = min(max(1, _poisson(settings.blank_length, rng)), 10, wanted + 1)
            start = rng.randrange(1, len(text))
            end = min(start + length, len(text))
            if any(taken[start:end]) or BLANK_ID in text[start:end]:
                continue
            for place in range(max(0, start - 1), min(len(text), end + 1)):
                taken[place] = True
            spans.append((start, end))
            wanted -= end - start
        return sorted(spans)


def _undo(turn: Ids, edits: list[_Edit]) -> Ids:
    """Return the incomplete utterance that the edits turn into `turn`."""
    ids: Ids = []
    at = 0
    for edit in edits:
        kept = edit.start - len(ids)
        ids += turn[at : at + kept]
        ids += edit.old
        at += kept + len(edit.new)
    return ids + turn[at:]


def _operations(edits: list[_Edit]) -> Ids:
    ids: Ids = []
    for edit in edits:
        ids += [DELETE_ID, *edit.old, REPLACE_ID, *edit.new] if edit.old else [INSERT_ID, *edit.new]
    return ids


def _find(ids: Ids, part: Ids, start: int) -> int:
    for at in range(start, len(ids) - len(part) + 1):
        if ids[at : at + len(part)] == part:
            return at
    return -1


def _random_span(turns: list[Ids], rng: Random) -> Ids:
    turn = rng.choice(turns)
    start = rng.randrange(len(turn))
    return turn[start : start + rng.choice((1, 2, 2, 3, 3, 4, 5))]


def _poisson(mean: float, rng: Random) -> int:
    limit, product, count = 2.718281828**-mean, rng.random(), 0
    while product > limit:
        product *= rng.random()
        count += 1
    return count
