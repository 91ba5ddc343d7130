"""evaluate(request): predictions, metrics, report and picture of one variant on one split, all in one folder.

Without a variant, the model is measured as `teo rewrite` runs it, with its rules and thresholds. A named variant is
measured without them, or with them on request.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from teo.data import load_rows
from teo.data.row import Row
from teo.errors import InputError, MissingExtraError, ModelError
from teo.evaluation.ablations import VARIANTS, Ablation, predict_rows
from teo.evaluation.measures import Evaluation, measure
from teo.evaluation.plots import draw_flow
from teo.evaluation.predict import (
    MEANING,
    THRESHOLD_SUFFIX,
    PredictedRow,
    Predictor,
    Settings,
    predict,
    rewrite_rows,
)
from teo.evaluation.report import format_report, format_variants
from teo.files import write_json, write_text
from teo.loading import Model, open_model
from teo.metrics.meaning import grade
from teo.pipelines import PIPELINES, Pipeline, find_variant, require_roles
from teo.provenance import git_commit, versions
from teo.rewriter import Rewriter
from teo.units import replace_surrogates

EVERY = "all"
"""The variant's name that means: each that the model can run."""
LIBRARIES = ("numpy", "onnxruntime", "tokenizers", "torch", "transformers")
"""The libraries whose versions are stored with every result."""
_IN_VARIANTS = ("n", "em", "bleu4", "run_f1", "breakdown", "stage_flow")


@dataclass(frozen=True, slots=True)
class Request:
    """What to evaluate, on what, and where the results go."""

    data: str
    path: Path
    out: Path
    split: str = "test"
    model: Path | None = None
    """The model's folder; None: the embedded model."""
    variant: str | None = None
    """A pipeline or an ablation by name; None: the model as `teo rewrite` runs it."""
    limit: int | None = None
    """Only the first rows; a later run with more of them resumes, one with fewer drops the predictions of the rest."""
    batch_size: int = 32
    device: str = "auto"
    bf16: bool = False
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    """The dataset's own options, such as TASK's history."""
    abstain: bool = False
    """Apply the model's rules and thresholds to the variant, as a rewriter does."""

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("batch-size", self.batch_size)):
            if value is not None and value < 1:
                raise InputError(f"{name}: expected a number of rows from 1 on, found {value}")


def evaluate(request: Request, progress: TextIO | None = None) -> Evaluation:
    """Return the metrics of a request, with predictions.jsonl, metrics.json, report.md and flow.png in its folder."""
    stream = progress or sys.stderr
    model = open_model(request.model, device=request.device, bf16=request.bf16, batch_size=request.batch_size)
    subject = _choose(request, model)
    rows = load_request_rows(request, stream)
    settings = _settings(request, model, subject, rows)
    run = {
        "device": model.device,
        "batch_size": request.batch_size,
        "limit": request.limit,
        "git_commit": git_commit(),
        "versions": versions(LIBRARIES),
    }
    predictor, chunk = _predictor(subject, model, request.seed), max(256, 4 * request.batch_size)
    if any(row.keys and row.keys.need for row in rows):
        predictor = _by_meaning(predictor)
    predicted = predict(predictor, rows[: request.limit], request.out, settings, chunk=chunk, run=run, progress=stream)
    evaluation = Evaluation(measure(predicted), settings, run, subject.description)
    write_json(request.out / "metrics.json", evaluation.to_dict())
    write_text(request.out / "report.md", replace_surrogates(format_report(evaluation, predicted)))
    if evaluation.measures.flow is not None:
        try:
            draw_flow(evaluation.measures.flow, request.out / "flow.png")
        except MissingExtraError as error:
            stream.write(f"flow.png is not drawn: {error}\n")
    return evaluation


def evaluate_every(request: Request, progress: TextIO | None = None) -> dict[str, Evaluation]:
    """Return the evaluation of every variant that the model has the roles for, with variants.json and variants.md."""
    roles = open_model(request.model).folder.roles
    known = PIPELINES if request.abstain else VARIANTS
    able = [name for name, variant in known.items() if not variant.missing(roles)]
    if not any(known[name].needs for name in able):
        raise ModelError(f"{request.model}: expected at least one role, found none that any variant needs")
    evaluations = {name: evaluate(replace(request, variant=name, out=request.out / name), progress) for name in able}
    numbers = {name: evaluation.to_dict() for name, evaluation in evaluations.items()}
    stored = {name: {key: values[key] for key in _IN_VARIANTS} for name, values in numbers.items()}
    write_json(request.out / "variants.json", stored)
    write_text(request.out / "variants.md", format_variants(evaluations))
    return evaluations


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a request measures: a variant, alone or with rules and thresholds."""

    variant: Pipeline | Ablation
    as_rewriter: bool
    own: bool
    """Whether it is the model's own pipeline."""

    @property
    def name(self) -> str:
        """The name that results are stored under."""
        return self.variant.name + (THRESHOLD_SUFFIX if self.as_rewriter else "")

    @property
    def description(self) -> str:
        """What is measured, in a phrase."""
        name = self.variant.name
        if not self.as_rewriter:
            return f"{name} alone, without the rules and thresholds of `teo rewrite`"
        return f"{name} with rules and thresholds, as `teo rewrite{'' if self.own else f' --variant {name}'}`"


def _choose(request: Request, model: Model) -> _Subject:
    """Return what a request measures; raises if the model lacks a role or if the variant is for measuring only."""
    own = model.folder.variant
    as_rewriter = request.abstain or request.variant is None
    known = VARIANTS if request.variant else PIPELINES
    variant = find_variant(request.variant or own, known)
    if as_rewriter and not isinstance(variant, Pipeline):
        served = ", ".join(PIPELINES)
        raise InputError(f"abstain: expected a variant that `teo rewrite` runs ({served}), found '{variant.name}'")
    require_roles(variant, VARIANTS, model.folder.roles, str(model.path))
    return _Subject(variant, as_rewriter, variant.name == own)


def _by_meaning(predictor: Predictor) -> Predictor:
    """Return a predictor whose rows also have their verdicts by meaning keys."""

    def predict_and_grade(rows: Sequence[Row]) -> list[PredictedRow]:
        return [
            replace(predicted, detail={**predicted.detail, MEANING: grade(row, predicted.prediction)})
            for row, predicted in zip(rows, predictor(rows), strict=True)
        ]

    return predict_and_grade


def _predictor(subject: _Subject, model: Model, seed: int) -> Predictor:
    """Return what predicts rows; the weights are loaded now."""
    order, variant = model.folder.order, subject.variant
    if subject.as_rewriter:
        rewriter = Rewriter.of_model(model, variant.name)
        return lambda rows: [
            PredictedRow.of_record(row, record, order)
            for row, record in zip(rows, rewrite_rows(rewriter, rows), strict=True)
        ]
    stages = model.load(variant.roles(model.folder.roles))
    return lambda rows: [
        PredictedRow.of_prediction(row, prediction, order)
        for row, prediction in zip(rows, predict_rows(variant, stages, rows, seed), strict=True)
    ]


def load_request_rows(request: Request, stream: TextIO) -> tuple[Row, ...]:
    """Return the rows of a request's split; malformed ones are left out and counted on the stream."""
    options: dict[str, Any] = dict(request.options)
    loaded = load_rows(request.data, request.path, request.split, **options)
    if loaded.skipped:
        stream.write(f"{len(loaded.skipped)} malformed rows left out, the first: {loaded.skipped[0]}\n")
    return loaded.rows


def _settings(request: Request, model: Model, subject: _Subject, rows: Sequence[Row]) -> Settings:
    return Settings(
        data=request.data,
        split=request.split,
        options=dict(request.options),
        data_hash=hash_rows(rows),
        variant=subject.name,
        model=model.name,
        model_hash=model.fingerprint(role for group in subject.variant.needs for role in group),
        seed=request.seed,
        precision=model.precision,
    )


def hash_rows(rows: Iterable[Row]) -> str:
    """Return a hash of a dataset's rows, whichever files they came from."""
    digest = hashlib.blake2b(digest_size=16)
    for row in rows:
        digest.update(json.dumps(row.to_dict(), ensure_ascii=True, sort_keys=True).encode())
    return digest.hexdigest()
