"""Self-supervised examples from plain dialogues, on token ids: text infilling and rewriting.

*Rewriting*: spans of a turn that the turns before it also have are left out or give way to a pronoun; the model
learns to bring them back: at once, as editing operations and then the rewrite, from perturbed operations, and as
operations that carry their position. One source serves all of these: their targets are written one behind the other.
*Infilling* is in a module of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from teo.training.packing import PackedExample, Segment
from teo.training.perturbation import perturb
from teo_lab.pretraining.infilling import infill
from teo_lab.pretraining.settings import NoiseSettings
from teo_lab.pretraining.vocabulary import (
    CLS_ID,
    DELETE_ID,
    EOS_ID,
    INSERT_ID,
    OPERATIONS_ID,
    PLACE_ID,
    PLACED_ID,
    REPLACE_ID,
    REWRITE_ID,
    SEP_ID,
    Ids,
    Vocabulary,
)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int  # in the incomplete utterance
    old: Ids
    new: Ids


class Noise:
    """Makes examples from turns of token ids; equal random states give equal examples."""

    def __init__(self, vocabulary: Vocabulary, settings: NoiseSettings) -> None:
        self.vocabulary = vocabulary
        self.settings = settings

    def rewriting(
        self, history: list[Ids], turn: Ids, rng: Random, room: int, *, unchanged: bool
    ) -> PackedExample | None:
        """Return a rewriting example, or None if something must change but the turn repeats nothing."""
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
        return PackedExample(source, kept) if kept else None

    def shared_spans(self, history: list[Ids], turn: Ids) -> list[tuple[int, int]]:
        """Return the longest spans of a turn, left to right, that the history also has and that say something."""
        flat: Ids = []
        for each in history:
            flat += each
            flat.append(SEP_ID)
        positions: dict[int, list[int]] = {}
        wanted = set(turn)
        for position, token in enumerate(flat):
            if token in wanted:
                positions.setdefault(token, []).append(position)
        spans: list[tuple[int, int]] = []
        at, end = 0, len(turn)
        starts = self.vocabulary.starts_unit
        while at < end:
            best = 0
            if starts[turn[at]]:
                for position in positions.get(turn[at], ())[-8:]:
                    length = 1
                    while at + length < end and turn[at + length] == flat[position + length]:
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
        """Return the operations with their positions, as teo.placement writes them."""
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

    def infilling(self, turns: list[Ids], rng: Random, room: int) -> PackedExample | None:
        """Return an infilling example of a run of turns; None if nothing could be blanked."""
        return infill(turns, self.vocabulary, self.settings, rng, room)


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
