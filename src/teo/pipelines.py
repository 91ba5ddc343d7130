"""The pipelines that a rewriter runs: dialogues in, predictions with their edits out.

`two_stage` is figure 1 of the paper. The others generate one text per dialogue: `fast` operations that carry their
places, `fused` operations and the rewrite, `direct` the rewrite alone. All take dialogues that fit into a source;
`predict` takes any and fits them first.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from teo.alignment import derive_edits
from teo.arguments import describe
from teo.dialogue import Dialogue
from teo.edits import EditScript, Order, format_operations
from teo.errors import InputError, ModelError
from teo.layouts import Marker, Pieces, Truncation, dialogue_source, read_operation_pieces, split_at_separator, text_of
from teo.placement import execute_pieces, format_placed
from teo.runtime.generator import Generated
from teo.stages import Proposal, Stages, StageTwoRewrite, fit_dialogue, propose, rewrite_given


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a pipeline makes of one dialogue."""

    rewrite: str
    """The text as the pipeline gives it."""
    edits: EditScript
    """Edits of the utterance that the pipeline read; empty where it gives no text."""
    operations: str | None = None
    """What was proposed, in the paper's notation; None where a pipeline has no operations."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Log-probabilities by name: `operations`, `rewrite`, or `joint` for both in one."""
    truncation: Truncation = field(default_factory=Truncation)
    well_formed: bool = True
    """False where a part of the operations could not be parsed or placed."""
    detail: Mapping[str, str | int] = field(default_factory=dict)
    """What only some pipelines have: the placed operations, which kind of candidate won."""
    token_scores: tuple[float, ...] = ()
    """Log-probability of each generated token, the end token included."""

    @property
    def score(self) -> float:
        """The log-probability of what was generated."""
        return sum(self.scores.values())


Interpret = Callable[[Dialogue, Generated, Order], Prediction]
"""How one generated text becomes the prediction of a dialogue."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What can be run under a name: its roles (any one of each group), and what it does in a phrase."""

    name: str
    needs: tuple[tuple[str, ...], ...]
    summary: str

    def missing(self, roles: Container[str]) -> tuple[str, ...]:
        """Return the first group of roles of which a model has none; nothing where it can run this."""
        return next((group for group in self.needs if not any(role in roles for role in group)), ())

    def roles(self, roles: Container[str]) -> list[str]:
        """Return the roles that this uses of those that a model has, the one that reads the dialogue first in front."""
        return list(dict.fromkeys(role for group in self.needs for role in group if role in roles))


@dataclass(frozen=True, slots=True)
class Pipeline(Variant):
    """A variant that needs nothing but the dialogue, so that a rewriter can run it."""

    interpret: Interpret | None = None
    """How the one text is interpreted that the role of its name generates; None: the paper's two stages."""

    def run(self, stages: Stages, dialogues: Sequence[Dialogue]) -> list[Prediction]:
        """Return the predictions of dialogues that fit into a source."""
        if self.interpret is None:
            return two_stage(stages, dialogues)
        texts = stages[self.name].generate([dialogue_source(dialogue, stages.layout) for dialogue in dialogues])
        pairs = zip(dialogues, texts, strict=True)
        return [self.interpret(dialogue, generated, stages.order) for dialogue, generated in pairs]


def two_stage(stages: Stages, dialogues: Sequence[Dialogue]) -> list[Prediction]:
    """Return the paper's rewrites: stage 1 proposes operations, stage 2 rewrites given them (section 3, figure 1)."""
    proposals = propose(stages, dialogues)
    rewrites = rewrite_given(stages, dialogues, proposals)
    return join_stages(stages, dialogues, proposals, rewrites)


def fast(dialogue: Dialogue, generated: Generated, order: Order) -> Prediction:
    """Return the prediction of placed operations: the utterance with them executed, no second stage."""
    executed = execute_pieces(generated.pieces, dialogue.utterance)
    return Prediction(
        executed.text,
        executed.edits,
        format_operations(executed.edits.operations, order),
        {"operations": generated.score},
        well_formed=executed.well_formed,
        detail={"placed": format_placed(generated.pieces)},
        token_scores=generated.token_scores,
    )


def fused(dialogue: Dialogue, generated: Generated, order: Order) -> Prediction:
    """Return the prediction of a text `operations [SEP] rewrite`: one decoder goes on after its own operations."""
    before, after = split_at_separator(generated.pieces)
    parsed = read_operation_pieces(before)
    # A decoder that never came to its rewrite proposes nothing: the utterance stays as it is.
    finished = len(before) < len(generated.pieces)
    text = text_of(after).strip() if finished else dialogue.utterance
    return Prediction(
        text,
        edits_to(dialogue.utterance, text),
        format_operations(parsed.operations, order),
        {"joint": generated.score},
        well_formed=parsed.well_formed and finished,
        token_scores=generated.token_scores,
    )


def direct(dialogue: Dialogue, generated: Generated, order: Order) -> Prediction:
    """Return the prediction of a text that is the rewrite (the paper's BART and T5 rows)."""
    text = text_of(generated.pieces).strip()
    edits = edits_to(dialogue.utterance, text)
    return Prediction(text, edits, scores={"rewrite": generated.score}, token_scores=generated.token_scores)


def edits_to(utterance: str, text: str) -> EditScript:
    """Return the edits that turn an utterance into a generated text, white space around it left alone.

    No text at all is no edit.
    """
    stripped = utterance.strip()
    if not text.strip():
        return EditScript()
    start = utterance.index(stripped)
    return derive_edits(utterance, utterance[:start] + text.strip() + utterance[start + len(stripped) :])


def join_stages(
    stages: Stages,
    dialogues: Sequence[Dialogue],
    proposals: Sequence[Proposal],
    rewrites: Sequence[StageTwoRewrite],
) -> list[Prediction]:
    """Return the predictions of both stages' results; equation 1 is the sum of their two log-probabilities."""
    return [
        Prediction(
            rewrite.text,
            edits_to(dialogue.utterance, rewrite.text),
            format_operations(proposal.operations, stages.order),
            {"operations": proposal.score, "rewrite": rewrite.score},
            rewrite.truncation,
            proposal.well_formed,
            token_scores=(*proposal.token_scores, *rewrite.token_scores),
        )
        for dialogue, proposal, rewrite in zip(dialogues, proposals, rewrites, strict=True)
    ]


STAGE_1, STAGE_2 = ("stage1", "fused"), ("stage2", "fused")
"""The roles that can serve as either stage."""

PIPELINES: Mapping[str, Pipeline] = {
    pipeline.name: pipeline
    for pipeline in (
        Pipeline("teo", (STAGE_1, STAGE_2), "stage 1 proposes operations, stage 2 rewrites given them"),
        Pipeline("direct", (("direct",),), "the rewrite at once, without operations", direct),
        Pipeline("fast", (("fast",),), "operations that carry their position, executed at once", fast),
        Pipeline("fused", (("fused",),), "one decoder: operations, then the rewrite", fused),
    )
}


def predict(pipeline: Pipeline, stages: Stages, dialogues: Sequence[Dialogue]) -> list[Prediction]:
    """Return a pipeline's predictions of dialogues of any length: turns that do not fit are dropped and counted."""
    return fit_and_run(pipeline, stages, dialogues, lambda fitted: pipeline.run(stages, fitted))


def fit_and_run(
    variant: Variant,
    stages: Stages,
    dialogues: Sequence[Dialogue],
    run: Callable[[list[Dialogue]], list[Prediction]],
) -> list[Prediction]:
    """Return what `run` predicts of the dialogues once they fit; what was dropped counts in each prediction."""
    generator = stages[variant.roles(stages.by_role)[0]].generator
    fitted = [fit_dialogue(generator, dialogue, layout=stages.layout) for dialogue in dialogues]
    return [
        replace(prediction, truncation=truncation + prediction.truncation)
        for prediction, (_, truncation) in zip(run([dialogue for dialogue, _ in fitted]), fitted, strict=True)
    ]


def predict_several(
    pipeline: Pipeline, stages: Stages, dialogues: Sequence[Dialogue], count: int
) -> list[list[Prediction]]:
    """Return the predictions of the `count` most probable texts of each dialogue, the most probable first."""
    interpret = require_one_text(pipeline)
    sources = [dialogue_source(dialogue, stages.layout) for dialogue in dialogues]
    texts = stages[pipeline.name].generate_several(sources, count)
    return [
        [interpret(dialogue, generated, stages.order) for generated in several]
        for dialogue, several in zip(dialogues, texts, strict=True)
    ]


def predict_unchanged(pipeline: Pipeline, stages: Stages, dialogues: Sequence[Dialogue]) -> list[Prediction]:
    """Return for each dialogue the prediction that its utterance stays unchanged, with its log-probability."""
    require_one_text(pipeline)
    sources = [dialogue_source(dialogue, stages.layout) for dialogue in dialogues]
    targets = [_UNCHANGED[pipeline.name](dialogue.utterance.strip()) for dialogue in dialogues]
    scores = stages[pipeline.name].score(sources, targets)
    return [
        Prediction(dialogue.utterance, EditScript(), "", {"rewrite": score})
        for dialogue, score in zip(dialogues, scores, strict=True)
    ]


_UNCHANGED: Mapping[str, Callable[[str], Pieces]] = {
    "direct": lambda utterance: (utterance,),
    "fast": lambda utterance: (),
    "fused": lambda utterance: (Marker.SEP, utterance),
}
"""What a decoder generates, by pipeline, if nothing is to be changed."""


def require_one_text(pipeline: Pipeline) -> Interpret:
    """Return how a pipeline interprets a text; raise where it generates more than one per dialogue."""
    if pipeline.interpret is None:
        able = ", ".join(other.name for other in PIPELINES.values() if other.interpret)
        raise InputError(f"n_best: expected a variant that writes one text ({able}), found '{pipeline.name}'")
    return pipeline.interpret


def choose_pipeline(variant: str | Pipeline, roles: Collection[str], model: str) -> Pipeline:
    """Return the pipeline of a name if a model has the roles for it; a pipeline itself was chosen before."""
    if isinstance(variant, Pipeline):
        return variant
    pipeline = find_variant(variant, PIPELINES)
    require_roles(pipeline, PIPELINES, roles, model)
    return pipeline


V = TypeVar("V", bound=Variant)


def find_variant(name: str, known: Mapping[str, V]) -> V:
    """Return a variant by its name; raises where there is none, and names one that is spelled like it."""
    if not isinstance(name, str):
        raise InputError(f"variant: expected one of {', '.join(known)}; found {describe(name)}")
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise InputError(f"variant: expected one of {', '.join(known)}; found '{name}'{hint}")


def require_roles(variant: Variant, known: Mapping[str, Variant], roles: Collection[str], model: str) -> None:
    """Raise where a model lacks a role that a variant needs, naming the variants that it can run."""
    if missing := variant.missing(roles):
        able = [name for name, other in known.items() if other.needs and not other.missing(roles)]
        raise ModelError(
            f"{model}: the variant '{variant.name}' needs the role {' or '.join(missing)}, "
            f"found {', '.join(roles) or 'none'}; this model can run {', '.join(able) or 'no variant'}"
        )
