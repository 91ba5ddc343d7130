"""evaluate(request): predictions, metrics, report and picture of one variant on one split, all in one folder."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from teo.data import load_rows
from teo.errors import InputError, MissingExtraError, TeoError
from teo.evaluation.abstain import abstaining
from teo.evaluation.analysis import analyse_errors, operations_match, rewrite_matches
from teo.evaluation.predict import Record, Settings, predict
from teo.evaluation.records import hash_rows
from teo.evaluation.report import format_report
from teo.files import write_json, write_text
from teo.loading import System
from teo.metrics import StageFlow, final_em_from_rates, score_rows, stage_flow
from teo.pipelines import find_variant, require_roles
from teo.provenance import git_commit, versions
from teo.runtime.locate import is_exported, locate_model
from teo.units import scoring_units

_LIBRARIES = ("numpy", "onnxruntime", "tokenizers", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Request:
    """What to evaluate, on what, and where the results go."""

    data: str
    path: Path
    out: Path
    split: str = "test"
    model: Path | None = None
    """The model's folder; None: the embedded model."""
    variant: str = "teo"
    limit: int | None = None
    """Only the first rows; a later run with more of them goes on."""
    batch_size: int = 32
    device: str = "auto"
    bf16: bool = False
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    """The dataset's own options, such as TASK's history."""
    abstain: bool = False
    """Keep what the model's rules and thresholds keep, as a rewriter does."""


def evaluate(request: Request, progress: TextIO | None = None) -> dict[str, Any]:
    """Return the metrics of a request, with predictions.jsonl, metrics.json, report.md and flow.png in its folder."""
    stream = progress or sys.stderr
    records, stored = predict_request(request, stream)
    metrics = {**measure(records), **stored}
    write_json(request.out / "metrics.json", metrics)
    write_text(request.out / "report.md", format_report(metrics, records))
    if metrics["stage_flow"] is not None:
        _draw(flow_of(records), request.out / "flow.png", stream)
    return metrics


def predict_request(request: Request, stream: TextIO) -> tuple[list[Record], dict[str, Any]]:
    """Return the predictions of a request, and the settings and circumstances that they were made under."""
    variant = find_variant(request.variant)
    _check_numbers(request)
    model = locate_model(request.model)
    device = _choose_device(request, model)
    system = System.load(model, device=device, bf16=request.bf16, batch_size=request.batch_size)
    require_roles(variant, system, tuple(system.folder.roles), str(model))
    if request.abstain:
        variant = abstaining(variant, system.folder)
    options: dict[str, Any] = dict(request.options)
    loaded = load_rows(request.data, request.path, request.split, **options)
    if loaded.skipped:
        stream.write(f"{len(loaded.skipped)} malformed rows left out, the first: {loaded.skipped[0]}\n")
    settings = Settings(
        data=request.data,
        split=request.split,
        options=options,
        data_hash=hash_rows(loaded.rows),
        variant=variant.name,
        model=model.resolve().name,
        model_hash=system.fingerprint(role for group in variant.needs for role in group),
        seed=request.seed,
        precision=_precision(request, system),
    )
    run = {
        "device": device,
        "batch_size": request.batch_size,
        "limit": request.limit,
        "git_commit": git_commit(),
        "versions": versions(_LIBRARIES),
    }
    rows = loaded.rows[: request.limit]
    chunk = max(256, 4 * request.batch_size)
    records = predict(system, variant, rows, request.out, settings, chunk=chunk, run=run, progress=stream)
    return records, {"settings": asdict(settings), "run": run}


def measure(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return every number for predicted rows: the field's metrics, complete and incomplete apart, flow and errors."""
    result = score_rows(records, intervals=True).to_dict()
    result["groups"] = {name: _group(rows) for name, rows in _by_completeness(records).items()}
    proposed = all(record["operations"] is not None for record in records)
    result["stage_flow"] = check_flow(flow_of(records)) if proposed else None
    result["errors"] = analyse_errors(records)
    result["truncated_rows"] = sum(any(record["truncated"].values()) for record in records)
    result["not_well_formed_rows"] = sum(not record["well_formed"] for record in records)
    chosen = Counter(record["chosen"] for record in records if "chosen" in record)
    if chosen:
        result["chosen"] = dict(chosen)
    return result


def flow_of(records: Sequence[Mapping[str, Any]]) -> StageFlow:
    """Return operations right or wrong against rewrites right or wrong."""
    return stage_flow(
        [operations_match(record["operations"], record["gold_operations"]) for record in records],
        [rewrite_matches(record) for record in records],
    )


def check_flow(flow: StageFlow) -> dict[str, Any]:
    """Return the flow with its identity to the final EM checked: e (1 - C2E) + (1 - e) E2C."""
    implied = final_em_from_rates(flow.stage1_em or 0.0, flow.e2c or 0.0, flow.c2e or 0.0)
    if abs(implied - (flow.final_em or 0.0)) > 1e-9:
        raise TeoError(f"stage flow: its rates give EM {implied}, the rows {flow.final_em}; please report this")
    return {**flow.to_dict(), "implied_em": implied}


def _group(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not records:
        return {"n": 0}
    scores = score_rows(records).to_dict()
    return {name: value for name, value in scores.items() if name not in ("breakdown", "signatures")}


def _by_completeness(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    parts: dict[str, list[Mapping[str, Any]]] = {"complete": [], "incomplete": []}
    for record in records:
        same = scoring_units(record["current"]) == scoring_units(record["reference"])
        parts["complete" if same else "incomplete"].append(record)
    return parts


def _draw(flow: StageFlow, path: Path, stream: TextIO) -> None:
    from teo.evaluation.plots import draw_flow

    try:
        draw_flow(flow, path)
    except MissingExtraError as error:
        stream.write(f"{path.name} is not drawn: {error}\n")


def _choose_device(request: Request, model: Path) -> str:
    """Return the device that a model runs on; an exported one needs no torch to tell."""
    if is_exported(model):
        if request.device not in ("auto", "cpu") or request.bf16:
            asked = "bf16" if request.bf16 else request.device
            raise InputError(f"device: an exported model runs on the CPU as it is, found {asked}; leave it out")
        return "cpu"
    from teo.runtime.torch_generator import choose_device  # torch is only needed from here on

    return choose_device(request.device)


def _precision(request: Request, system: System) -> str:
    """Return what the weights are computed in: an exported model says so itself."""
    exported = system.folder.extra.get("export", {}).get("form", "none")
    if exported != "none":
        return str(exported)
    return "bf16" if request.bf16 else "fp32"


def _check_numbers(request: Request) -> None:
    for name, value in (("limit", request.limit), ("batch-size", request.batch_size)):
        if value is not None and value < 1:
            raise InputError(f"{name}: expected a number of rows from 1 on, found {value}")
