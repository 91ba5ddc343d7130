"""Scoring every placement of the proposed operations instead of trusting one free rewrite.

P(E|x) P(Y|x,E) is the paper's equation 1; greedy decoding of both stages ignores it. A hypothesis is a rewrite and the
operations that it supposes; no change supposes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from teo.dialogue import Dialogue
from teo.edits import Operation
from teo.layouts import Marker, operation_pieces, stage1_source, stage2_source
from teo.placement import placements
from teo.stages import Cast, Proposal, fit_dialogue


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One rewrite of a dialogue that might be the right one, and the operations that it supposes."""

    row: int
    kind: str
    """`free`: stage 2's own; `placement`: the operations executed somewhere; `unchanged`: the utterance."""
    operations: tuple[Operation, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A hypothesis with log P(E|x) and log P(Y|x,E); one decoder for both has their sum as the second."""

    hypothesis: Hypothesis
    operations: float
    rewrite: float

    @property
    def total(self) -> float:
        """The log-probability of operations and rewrite together."""
        return self.operations + self.rewrite


def list_hypotheses(row: int, utterance: str, proposal: Proposal, free: str) -> list[Hypothesis]:
    """Return a dialogue's candidates: the free rewrite, each placement that differs from it, and no change."""
    found = [Hypothesis(row, "free", proposal.operations, free)]
    for script in placements(proposal.operations, utterance):
        text = script.apply(utterance)
        if text != free:
            found.append(Hypothesis(row, "placement", proposal.operations, text))
    if proposal.operations or free != utterance:
        found.append(Hypothesis(row, "unchanged", (), utterance))
    return found


def score_hypotheses(cast: Cast, dialogues: Sequence[Dialogue], hypotheses: Sequence[Hypothesis]) -> list[Scored]:
    """Return every hypothesis with its log-probabilities, in order."""
    if not cast.has("stage2") or (cast.has("fused") and cast.has("stage1") and _writes_both(cast)):
        return _score_jointly(cast, dialogues, hypotheses)
    first, second = cast.player("stage1"), cast.player("stage2")
    pieces = [operation_pieces(one.operations, cast.order) for one in hypotheses]
    # The hypotheses of a row share their operations: these are scored once.
    asked = list(dict.fromkeys((one.row, its) for one, its in zip(hypotheses, pieces, strict=True)))
    sources = [stage1_source(fit_dialogue(first.generator, dialogues[row])[0]) for row, _ in asked]
    known = dict(zip(asked, first.score(sources, [its for _, its in asked]), strict=True))
    read = {
        (row, its): stage2_source(fit_dialogue(second.generator, dialogues[row], its)[0], its) for row, its in asked
    }
    keys = [(one.row, its) for one, its in zip(hypotheses, pieces, strict=True)]
    scores = second.score([read[key] for key in keys], [(one.text,) for one in hypotheses])
    return [Scored(one, known[key], score) for one, key, score in zip(hypotheses, keys, scores, strict=True)]


def most_probable(scored: Sequence[Scored]) -> dict[int, Scored]:
    """Return the best hypothesis of each row; of equals the first listed."""
    best: dict[int, Scored] = {}
    for one in scored:
        row = one.hypothesis.row
        if row not in best or one.total > best[row].total:
            best[row] = one
    return best


def _writes_both(cast: Cast) -> bool:
    """Tell whether stage 1's own text goes on with the rewrite, so that its end says nothing about operations."""
    return cast.player("stage1") == cast.player("fused")


def _score_jointly(cast: Cast, dialogues: Sequence[Dialogue], hypotheses: Sequence[Hypothesis]) -> list[Scored]:
    player = cast.player("fused")
    read = [stage1_source(fit_dialogue(player.generator, dialogue)[0]) for dialogue in dialogues]
    targets = [(*operation_pieces(one.operations, cast.order), Marker.SEP, one.text) for one in hypotheses]
    scores = player.score([read[one.row] for one in hypotheses], targets)
    return [Scored(one, 0.0, score) for one, score in zip(hypotheses, scores, strict=True)]
