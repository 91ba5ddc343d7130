"""The pipelines by name, one small function each: which stage reads what, and how operations become a rewrite."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from teo.alignment import derive_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.errors import InputError, ModelError
from teo.evaluation.rerank import Hypothesis, list_hypotheses, most_probable, score_hypotheses
from teo.evaluation.stage_one import apply_replacements, place_randomly
from teo.layouts import Truncation, read_operation_pieces, split_at_separator, stage1_source, text_of
from teo.placement import execute_pieces, format_placed
from teo.runtime.generator import Generated
from teo.stages import Cast, Proposal, Written, fit_dialogue, propose, rewrite_given


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a variant made of one dialogue."""

    rewrite: str
    operations: str | None = None
    """What was proposed, in the paper's notation; None where the variant has no operations."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Log-probabilities by name: `operations`, `rewrite`, or `joint` for both in one."""
    truncation: Truncation = field(default_factory=Truncation)
    well_formed: bool = True
    """False where a part of the operations could not be read or placed."""
    detail: Mapping[str, str | int] = field(default_factory=dict)
    """What only some variants have to say: the placed operations, which kind of candidate won."""
    first: float | None = None
    """Log-probability of the first token, where that token says whether anything is to be changed at all."""

    def evidence(self, rest_weight: float = 1.0) -> float:
        """Return the log-probability of all that was written, the tokens after such a first one counted in part."""
        whole = sum(self.scores.values())
        return whole if self.first is None else self.first + rest_weight * (whole - self.first)


Run = Callable[[Cast, Sequence[Row], int], list[Prediction]]
Read = Callable[[Cast, Row, Generated, Truncation], Prediction]
"""What one text of a model, written after reading what was left of a row's dialogue, says about that row."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A pipeline by name, the roles that it needs (any one of each group), and what it does in a phrase."""

    name: str
    run: Run
    needs: tuple[tuple[str, ...], ...]
    summary: str
    read: Read | None = None
    """How one text of the model becomes a prediction, where one text is all that it takes."""


def predict_direct(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return the rewrites of a model that writes them at once (the paper's BART and T5 rows)."""
    return _best(_write_and_read(cast, rows, "direct", read_direct))


def read_direct(cast: Cast, row: Row, one: Generated, truncation: Truncation) -> Prediction:
    """Return the prediction of a text that is the rewrite."""
    return Prediction(text_of(one.pieces).strip(), scores={"rewrite": one.score}, truncation=truncation)


def predict_teo(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return the two-stage rewrites: stage 1 proposes operations, stage 2 rewrites with them (paper, section 3)."""
    dialogues = [row.dialogue for row in rows]
    proposals = propose(cast, dialogues)
    return _join(cast, proposals, rewrite_given(cast, dialogues, [one.operations for one in proposals]))


def predict_gold(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return what stage 2 makes of the gold operations (TEO-Gold): the ceiling of a better stage 1."""
    gold = [derive_edits(row.dialogue.utterance, row.rewrite).operations for row in rows]
    written = rewrite_given(cast, [row.dialogue for row in rows], gold)
    return [
        Prediction(one.text, format_operations(operations, cast.order), {"rewrite": one.score}, one.truncation)
        for operations, one in zip(gold, written, strict=True)
    ]


def predict_stage1(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return stage 1 alone (TEO-Stage1): replacements applied, insertions at random places, the same for a seed."""
    predictions = []
    for row, one in zip(rows, propose(cast, [row.dialogue for row in rows]), strict=True):
        script = place_randomly(one.operations, row.dialogue.utterance, f"{seed}:{row.id}")
        text = script.apply(row.dialogue.utterance)
        operations = format_operations(one.operations, cast.order)
        predictions.append(Prediction(text, operations, {"operations": one.score}, one.truncation, one.well_formed))
    return predictions


def predict_rfis(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return TEO-RFIS: replacements applied first, insertions left to stage 2, which reads the changed utterance."""
    proposals = propose(cast, [row.dialogue for row in rows])
    dialogues, insertions = [], []
    for row, proposal in zip(rows, proposals, strict=True):
        utterance = row.dialogue.utterance
        replaced = apply_replacements(proposal.operations, utterance).apply(utterance)
        dialogues.append(Dialogue(row.dialogue.history, replaced))
        insertions.append([one for one in proposal.operations if one.is_insertion])
    role = "rfis" if cast.has("rfis") else "stage2"
    return _join(cast, proposals, rewrite_given(cast, dialogues, insertions, role))


def predict_fast(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return the utterances with operations executed that carry their place: one pass, no second stage."""
    return _best(_write_and_read(cast, rows, "fast", read_fast))


def read_fast(cast: Cast, row: Row, one: Generated, truncation: Truncation) -> Prediction:
    """Return the prediction of a text of placed operations: the utterance with them executed."""
    executed = execute_pieces(one.pieces, row.dialogue.utterance)
    operations = format_operations(executed.edits.operations, cast.order)
    scores, detail = {"operations": one.score}, {"placed": format_placed(one.pieces)}
    return Prediction(executed.text, operations, scores, truncation, executed.well_formed, detail, _first(one))


def predict_fused(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return what one decoder writes after its own operations: `operations [SEP] rewrite`, the dialogue read once."""
    return _best(_write_and_read(cast, rows, "fused", read_fused))


def read_fused(cast: Cast, row: Row, one: Generated, truncation: Truncation) -> Prediction:
    """Return the prediction of a text `operations [SEP] rewrite`."""
    before, after = split_at_separator(one.pieces)
    parsed = read_operation_pieces(before)
    # A decoder that never came to its rewrite has said nothing: the utterance stays as it is.
    finished = len(before) < len(one.pieces)
    text = text_of(after).strip() if finished else row.dialogue.utterance
    operations = format_operations(parsed.operations, cast.order)
    well_formed = parsed.well_formed and finished
    return Prediction(text, operations, {"joint": one.score}, truncation, well_formed, first=_first(one))


def predict_rerank(cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction]:
    """Return the most probable of every placement of the proposed operations, the free rewrite, and no change."""
    dialogues = [row.dialogue for row in rows]
    proposals = propose(cast, dialogues)
    written = rewrite_given(cast, dialogues, [one.operations for one in proposals])
    hypotheses: list[Hypothesis] = []
    for number, (dialogue, proposal, free) in enumerate(zip(dialogues, proposals, written, strict=True)):
        hypotheses += list_hypotheses(number, dialogue.utterance, proposal, free.text)
    best = most_probable(score_hypotheses(cast, dialogues, hypotheses))
    counts = Counter(one.row for one in hypotheses)
    predictions = []
    for number, (proposal, free) in enumerate(zip(proposals, written, strict=True)):
        chosen = best[number]
        operations = format_operations(proposal.operations, cast.order)
        scores = {"operations": chosen.operations, "rewrite": chosen.rewrite}
        detail: dict[str, str | int] = {"chosen": chosen.hypothesis.kind, "candidates": counts[number]}
        truncation = _larger(proposal.truncation, free.truncation)
        predictions.append(
            Prediction(chosen.hypothesis.text, operations, scores, truncation, proposal.well_formed, detail)
        )
    return predictions


_FIRST, _SECOND = ("stage1", "fused"), ("stage2", "fused")
VARIANTS: Mapping[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("teo", predict_teo, (_FIRST, _SECOND), "stage 1 proposes operations, stage 2 rewrites with them"),
        Variant("direct", predict_direct, (("direct",),), "the rewrite at once, without operations", read_direct),
        Variant("gold", predict_gold, (_SECOND,), "stage 2 on the gold operations"),
        Variant("stage1", predict_stage1, (_FIRST,), "stage 1 alone: insertions at random places"),
        Variant("rfis", predict_rfis, (_FIRST, ("rfis", *_SECOND)), "replacements first, insertions in stage 2"),
        Variant("fast", predict_fast, (("fast",),), "operations that carry their place, executed at once", read_fast),
        Variant("fused", predict_fused, (("fused",),), "one decoder: operations, then the rewrite", read_fused),
        Variant("rerank", predict_rerank, (_FIRST, _SECOND), "the most probable placement of the operations"),
    )
}


def predict_several(variant: Variant, cast: Cast, rows: Sequence[Row], count: int) -> list[list[Prediction]]:
    """Return what each of a row's `count` most probable texts predicts, the most probable first."""
    return _write_and_read(cast, rows, variant.name, require_read(variant), count)


def require_read(variant: Variant) -> Read:
    """Return how a variant reads one text; raise where one text is not all that it takes."""
    if variant.read is None:
        able = ", ".join(one.name for one in VARIANTS.values() if one.read)
        raise InputError(f"n_best: expected a variant that writes one text ({able}), found '{variant.name}'")
    return variant.read


def find_variant(name: str) -> Variant:
    """Return a variant by its name; an unknown name is answered with the nearest known one."""
    if name in VARIANTS:
        return VARIANTS[name]
    near = difflib.get_close_matches(name.lower(), VARIANTS, n=1, cutoff=0.0)
    raise InputError(f"variant: expected one of {', '.join(VARIANTS)}; found '{name}'; did you mean '{near[0]}'?")


def require_roles(variant: Variant, cast: Cast, roles: Sequence[str], model: str) -> None:
    """Raise where a model lacks a role that a variant needs, naming the variants it can play."""
    for group in variant.needs:
        if not any(cast.has(role) for role in group):
            able = [one.name for one in VARIANTS.values() if all(any(map(cast.has, need)) for need in one.needs)]
            raise ModelError(
                f"{model}: the variant '{variant.name}' needs the role {' or '.join(group)}, "
                f"found {', '.join(roles) or 'none'}; this model can play {', '.join(able) or 'no variant'}"
            )


def _write_and_read(cast: Cast, rows: Sequence[Row], role: str, read: Read, count: int = 1) -> list[list[Prediction]]:
    """Return the predictions of what a player writes for each row: one text, or the `count` most probable ones."""
    player = cast.player(role)
    fitted = [fit_dialogue(player.generator, row.dialogue) for row in rows]
    sources = [stage1_source(dialogue) for dialogue, _ in fitted]
    written = player.write_several(sources, count) if count > 1 else [[one] for one in player.write(sources)]
    return [
        [read(cast, row, one, truncation) for one in texts]
        for row, texts, (_, truncation) in zip(rows, written, fitted, strict=True)
    ]


def _first(one: Generated) -> float | None:
    """Return the log-probability of a text's first token: an operation's marker, or that there is none."""
    return one.token_scores[0] if one.token_scores else None


def _best(predictions: Sequence[Sequence[Prediction]]) -> list[Prediction]:
    return [one for one, *_ in predictions]


def _join(cast: Cast, proposals: Sequence[Proposal], written: Sequence[Written]) -> list[Prediction]:
    """Return what both stages said of each row."""
    return [
        Prediction(
            second.text,
            format_operations(first.operations, cast.order),
            {"operations": first.score, "rewrite": second.score},
            _larger(first.truncation, second.truncation),
            first.well_formed,
        )
        for first, second in zip(proposals, written, strict=True)
    ]


def _larger(first: Truncation, second: Truncation) -> Truncation:
    return max(first, second, key=lambda one: (one.turns, one.characters))
