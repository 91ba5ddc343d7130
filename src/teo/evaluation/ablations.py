"""The ablations by name: what is measured beside the pipelines that users run. Some read gold rewrites.

`gold` gives stage 2 the gold operations (TEO-Gold). `stage1` applies stage 1's operations without stage 2
(TEO-Stage1). `rfis` replaces first and inserts second (TEO-RFIS). `rerank` scores every placement of the operations by
P(E | x) P(Y | x, E), equation 1 of the paper, which greedy decoding of both stages ignores. `copy` returns the
utterance: what a system that never rewrites would score.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import EditScript, Operation, format_operations
from teo.layouts import Marker, Pieces, dialogue_source, operation_pieces, stage2_source
from teo.pipelines import (
    PIPELINES,
    STAGE_1,
    STAGE_2,
    Pipeline,
    Prediction,
    Variant,
    edits_to,
    fit_and_run,
    join_stages,
    predict,
)
from teo.placement import Span, apply_replacements, make_script, placements, replacement_spans
from teo.stages import Proposal, Stages, fit_dialogue, propose, rewrite_given
from teo.units import unit_texts


@dataclass(frozen=True, slots=True)
class Ablation(Variant):
    """A variant that is measured and never served: it may read a row's gold rewrite and draw at random."""

    run: Callable[[Stages, Sequence[Row], int], list[Prediction]]


def predict_rows(variant: Pipeline | Ablation, stages: Stages, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return the predictions of a pipeline or an ablation for each row, as they come: no rules, no thresholds."""
    dialogues = [row.dialogue for row in rows]
    if isinstance(variant, Pipeline):
        return predict(variant, stages, dialogues)
    if not variant.needs:  # no model reads the dialogues, so any length is fine
        return variant.run(stages, rows, seed)

    def run(fitted: list[Dialogue]) -> list[Prediction]:
        pairs = zip(rows, fitted, strict=True)
        return variant.run(stages, [replace(row, dialogue=dialogue) for row, dialogue in pairs], seed)

    return fit_and_run(variant, stages, dialogues, run)


def gold(stages: Stages, rows: Sequence[Row], seed: int) -> list[Prediction]:
    """Return what stage 2 writes given the gold operations (TEO-Gold): the ceiling of a better stage 1."""
    dialogues = [row.dialogue for row in rows]
    proposals = [Proposal(derive_edits(row.dialogue.utterance, row.rewrite).operations) for row in rows]
    predictions = join_stages(stages, dialogues, proposals, rewrite_given(stages, dialogues, proposals))
    return [
        replace(prediction, scores={"rewrite": prediction.scores["rewrite"]}) for prediction in predictions
    ]  # nobody proposed the operations: they have no score


def stage1(stages: Stages, rows: Sequence[Row], seed: int) -> list[Prediction]:
    """Return stage 1 alone (TEO-Stage1): replacements applied, insertions at random positions, the same for a seed."""
    predictions = []
    for row, proposal in zip(rows, propose(stages, [row.dialogue for row in rows]), strict=True):
        script = place_randomly(proposal.operations, row.dialogue.utterance, f"{seed}:{row.id}")
        predictions.append(
            Prediction(
                script.apply(row.dialogue.utterance),
                script,
                format_operations(proposal.operations, stages.order),
                {"operations": proposal.score},
                well_formed=proposal.well_formed,
            )
        )
    return predictions


def rfis(stages: Stages, rows: Sequence[Row], seed: int) -> list[Prediction]:
    """Return TEO-RFIS, replace first and insert second: a stage 2 of its own reads the utterance after replacements."""
    proposals = propose(stages, [row.dialogue for row in rows])
    replaced, insertions = [], []
    for row, proposal in zip(rows, proposals, strict=True):
        utterance = row.dialogue.utterance
        text = apply_replacements(proposal.operations, utterance).apply(utterance)
        replaced.append(replace(row.dialogue, utterance=text))
        left = tuple(operation for operation in proposal.operations if operation.is_insertion)
        insertions.append(replace(proposal, operations=left))
    rewrites = rewrite_given(stages, replaced, insertions, rfis=True)
    return join_stages(stages, [row.dialogue for row in rows], proposals, rewrites)


def rerank(stages: Stages, rows: Sequence[Row], seed: int) -> list[Prediction]:
    """Return the most probable of every placement of the proposed operations, the free rewrite, and no change."""
    dialogues = [row.dialogue for row in rows]
    proposals = propose(stages, dialogues)
    rewrites = rewrite_given(stages, dialogues, proposals)
    hypotheses: list[Hypothesis] = []
    for number, (dialogue, proposal, free) in enumerate(zip(dialogues, proposals, rewrites, strict=True)):
        hypotheses += list_hypotheses(number, dialogue.utterance, proposal, free.text)
    best = most_probable(score_hypotheses(stages, dialogues, hypotheses))
    counts = Counter(hypothesis.row for hypothesis in hypotheses)
    predictions = []
    for number, prediction in enumerate(join_stages(stages, dialogues, proposals, rewrites)):
        chosen = best[number]
        predictions.append(
            replace(
                prediction,
                rewrite=chosen.hypothesis.text,
                edits=edits_to(dialogues[number].utterance, chosen.hypothesis.text),
                scores={"operations": chosen.operations, "rewrite": chosen.rewrite},
                detail={"chosen": chosen.hypothesis.kind, "candidates": counts[number]},
            )
        )
    return predictions


def copy(stages: Stages, rows: Sequence[Row], seed: int) -> list[Prediction]:
    """Return every utterance as it is: the baseline that needs no model."""
    return [
        Prediction(row.dialogue.utterance, edits_to(row.dialogue.utterance, row.dialogue.utterance)) for row in rows
    ]


ABLATIONS: Mapping[str, Ablation] = {
    ablation.name: ablation
    for ablation in (
        Ablation("gold", (STAGE_2,), "stage 2 on the gold operations", gold),
        Ablation("stage1", (STAGE_1,), "stage 1 alone: insertions at random positions", stage1),
        Ablation("rfis", (STAGE_1, ("rfis",)), "replacements first, insertions in stage 2", rfis),
        Ablation("rerank", (STAGE_1, STAGE_2), "the most probable placement of the operations", rerank),
        Ablation("copy", (), "the utterance as it is", copy),
    )
}
VARIANTS: Mapping[str, Pipeline | Ablation] = {
    name: PIPELINES[name] if name in PIPELINES else ABLATIONS[name]
    for name in ("teo", "direct", "gold", "stage1", "rfis", "fast", "fused", "rerank", "copy")
}
"""All that `teo evaluate` measures by name, the paper's first, as tables list them."""


def place_randomly(operations: Sequence[Operation], utterance: str, seed: str) -> EditScript:
    """Return replacements applied and insertions between any two units, drawn anew for each seed."""
    texts = unit_texts(utterance)
    spans = replacement_spans(operations, texts)
    free = [k for k in range(len(texts) + 1) if not any(span.first < k < span.last for span in spans)]
    draw = random.Random(seed)
    for operation in operations:
        if operation.is_insertion and operation.new.strip():
            boundary = draw.choice(free)
            spans.append(Span(boundary, boundary, operation.new))
    return make_script(sorted(spans, key=lambda span: (span.first, span.last)), utterance)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A rewrite of a dialogue that might be the right one, and the operations that it supposes; no change has none."""

    row: int
    kind: str
    """`free`: stage 2's own; `placement`: the operations executed somewhere; `unchanged`: the utterance."""
    operations: tuple[Operation, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ScoredHypothesis:
    """A hypothesis with log P(E|x) and log P(Y|x,E); a decoder of both has their sum as the second."""

    hypothesis: Hypothesis
    operations: float
    rewrite: float

    @property
    def total(self) -> float:
        """The log-probability of operations and rewrite together."""
        return self.operations + self.rewrite


def list_hypotheses(row: int, utterance: str, proposal: Proposal, free: str) -> list[Hypothesis]:
    """Return a dialogue's candidates: the free rewrite, each placement that differs from it, and no change."""
    listed = [Hypothesis(row, "free", proposal.operations, free)]
    for script in placements(proposal.operations, utterance):
        text = script.apply(utterance)
        if text != free:
            listed.append(Hypothesis(row, "placement", proposal.operations, text))
    if proposal.operations or free != utterance:
        listed.append(Hypothesis(row, "unchanged", (), utterance))
    return listed


def score_hypotheses(
    stages: Stages, dialogues: Sequence[Dialogue], hypotheses: Sequence[Hypothesis]
) -> list[ScoredHypothesis]:
    """Return every hypothesis with its log-probabilities, in order."""
    # If stage 1 itself continues with the rewrite, the end of its text says nothing about the operations.
    if "stage2" not in stages or ("fused" in stages and stages.first == stages["fused"]):
        return _score_jointly(stages, dialogues, hypotheses)
    first, second = stages["stage1"], stages["stage2"]
    keys = [(item.row, operation_pieces(item.operations, stages.order)) for item in hypotheses]
    distinct = list(dict.fromkeys(keys))  # the hypotheses of a row share their operations: these are scored once
    sources = [dialogue_source(dialogues[row], stages.layout) for row, _ in distinct]
    scores = dict(zip(distinct, first.score(sources, [pieces for _, pieces in distinct]), strict=True))
    stage2_sources: dict[tuple[int, Pieces], Pieces] = {}
    for row, pieces in distinct:
        fitted, _ = fit_dialogue(second.generator, dialogues[row], pieces, stages.layout)
        stage2_sources[row, pieces] = stage2_source(fitted, pieces, stages.layout)
    rewrites = second.score([stage2_sources[key] for key in keys], [(item.text,) for item in hypotheses])
    rows = zip(hypotheses, keys, rewrites, strict=True)
    return [ScoredHypothesis(hypothesis, scores[key], rewrite) for hypothesis, key, rewrite in rows]


def most_probable(scored: Sequence[ScoredHypothesis]) -> dict[int, ScoredHypothesis]:
    """Return the best hypothesis of each row; of equals the first listed."""
    best: dict[int, ScoredHypothesis] = {}
    for candidate in scored:
        row = candidate.hypothesis.row
        if row not in best or candidate.total > best[row].total:
            best[row] = candidate
    return best


def _score_jointly(
    stages: Stages, dialogues: Sequence[Dialogue], hypotheses: Sequence[Hypothesis]
) -> list[ScoredHypothesis]:
    sources = [dialogue_source(dialogues[hypothesis.row], stages.layout) for hypothesis in hypotheses]
    targets = [(*operation_pieces(item.operations, stages.order), Marker.SEP, item.text) for item in hypotheses]
    scores = stages["fused"].score(sources, targets)
    return [ScoredHypothesis(item, 0.0, score) for item, score in zip(hypotheses, scores, strict=True)]
