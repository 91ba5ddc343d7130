"""Sections on use: confidence, speed, a language model beside ours, search, and what people preferred."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from teo.evaluation.curves import Bin, RiskPoint, area_under_risk, risk_coverage
from teo.evaluation.markdown import percent, plain, table
from teo.evaluation.plots import draw_reliability
from teo.metrics.base import Interval
from teo_lab.judging.agreement import Tally, VoteShare
from teo_lab.judging.bars import draw_bars
from teo_lab.llm.table import show_comparison
from teo_lab.report.figures import Point, draw_intervals, draw_latencies, draw_risks
from teo_lab.report.predictions import read_stored
from teo_lab.report.section import EMBEDDED, OWN_VARIANT, PAPER_DATASETS, MissingPartError, ReportSource, Section
from teo_lab.reproduce.stored import read_json

_RACE = {
    f"teo {OWN_VARIANT}, int8, 1 thread": ("default", OWN_VARIANT),
    "teo fused, int8, 1 thread": ("default", "fused"),
}
"""Systems of the race whose quality is stored, and where."""
_PAPER_SHAPE = "two-pass BART-base, transformers fp32, 1 thread"
_MRR = "mean reciprocal rank, with its 95% interval"
_COVERAGES = (0.25, 0.5, 0.75, 1.0)


def show_confidence(source: ReportSource) -> Section:
    """Return what confidence is worth: the reliability of the embedded model, and its risk at each coverage."""
    parts = []
    file = source.results / EMBEDDED / "calibration" / "calibration.json"
    if file.is_file():
        for part in read_json(file)["languages"]:
            bins = [Bin(**each) for each in part["reliability"]]
            name = f"reliability-{part['language']}"
            parts += [
                f"A confidence of 0.8 should mean right by meaning in 80 of 100 rows. In {part['language']} the two "
                f"differ by {100 * part['calibration_error']:.1f} points on average ({part['rows']:,} rewrites of "
                "development rows that were read, each with its confidence by a function fitted to the other half).",
                source.draw(name, "share of right rewrites by confidence", partial(draw_reliability, bins)),
            ]
    curves: dict[str, list[RiskPoint]] = {}
    for dataset, title in PAPER_DATASETS.items():
        for evaluation in source.tested(dataset, EMBEDDED, OWN_VARIANT):
            rows = read_stored(source.results, evaluation, None).rows
            curves[title] = risk_coverage([row.confidence or 0.0 for row in rows], [row.right for row in rows])
    if curves:
        rows_shown = [
            [title, *(percent(_risk_at(points, share)) for share in _COVERAGES), f"{area_under_risk(points):.3f}"]
            for title, points in curves.items()
        ]
        head = ["test set", *(f"{100 * share:.0f}% answered" for share in _COVERAGES), "area"]
        parts += [
            "Answer only the surest rows, and fewer are wrong: the share of wrong rewrites, in percent, when the model "
            f"answers a part of the test rows ({OWN_VARIANT}, by its own probability). The area is the mean over all "
            "parts.",
            source.draw("risk", "wrong rewrites by the share of rows answered", partial(draw_risks, curves)),
            table(head, rows_shown, "lrrrrr"),
        ]
    if not parts:
        raise MissingPartError(f"no confidences are stored; run teo calibrate and keep it in {EMBEDDED}/calibration")
    return Section("confidence", "Can its confidence be trusted?", "\n\n".join(parts))


def _risk_at(points: Sequence[RiskPoint], coverage: float) -> float:
    return next(point.risk for point in points if point.coverage >= coverage - 1e-9)


def show_latency(source: ReportSource) -> Section:
    """Return quality against the time of a rewrite."""
    parts = []
    for dataset, title in PAPER_DATASETS.items():
        file = source.results / "performance" / dataset / "bench.json"
        if not file.is_file():
            continue
        stored = read_json(file)
        points = _points(source, dataset, stored)
        if not points:
            continue
        rows = [[plain(point.name), f"{point.milliseconds:.1f}", f"{point.em:.1f}"] for point in points]
        parts += [
            f"### {title}",
            source.draw(f"latency-{dataset}", f"EM against latency on {title}", partial(draw_latencies, points)),
            table(["system", "ms for a rewrite", "EM, %"], rows, "lrr"),
            f"SeedResults on {plain(stored['facts']['machine'])}, one thread, a row at a time.",
        ]
    if not parts:
        raise MissingPartError("no latencies are stored; run benchmarks/race.py")
    text = (
        "Further left is faster, further up is more often right. The paper's system is measured as an untrained model "
        "of its shape, and takes its EM from the paper."
    )
    return Section("latency", "What does quality cost in time?", "\n\n".join([text, *parts]))


def _points(source: ReportSource, dataset: str, stored: Mapping[str, Any]) -> list[Point]:
    times = {speed["name"]: float(speed["latency_ms"]) for speed in stored["speeds"]}
    points = []
    for name, (model, variant) in _RACE.items():
        for evaluation in source.tested(dataset, model, variant)[:1]:
            if name in times:
                points.append(Point(name.removesuffix(", 1 thread"), times[name], 100 * evaluation.metrics.em))
    printed = [row.metrics.get("em") for row in source.published if (row.dataset, row.system) == (dataset, "TEO")]
    if _PAPER_SHAPE in times and printed and printed[0] is not None:
        points.append(Point("the paper's system (its EM, its shape's time)", times[_PAPER_SHAPE], printed[0]))
    return points


def show_language_model(source: ReportSource) -> Section:
    """Return language models beside ours on equal rows."""
    parts = []
    for file in sorted((source.results / "llm").glob("*.json")):
        stored = read_json(file)
        about = "; ".join(f"{plain(name)}: {plain(text)}" for name, text in stored["models"].items() if text)
        parts += [
            f"### {plain(file.stem)}",
            f"{about or 'The models'}; each beside the embedded model (default, as `teo rewrite` runs it) on the same "
            f"rows in the same run. {plain(stored['machine'])}: quote the ratio of the times, not the times. "
            f"Fields of each request: `{json.dumps(stored['body'])}`.",
            show_comparison(stored),
        ]
    if not parts:
        raise MissingPartError("no language model was compared; run benchmarks/language_model.py")
    return Section("language-model", "Would a language model do better?", "\n\n".join(parts))


def show_retrieval(source: ReportSource) -> Section:
    """Return what search finds with each kind of query."""
    parts = []
    for file in sorted((source.results / "retrieval").glob("*/retrieval.json")):
        stored = read_json(file)
        systems = stored["systems"]
        rows = []
        for name, found in systems.items():
            measured = [f"{found[key]:.3f}" for key in ("mrr", "recall@10", "ndcg@3")]
            effect = found.get("effect") or {}
            rows.append([plain(name), *measured, *(percent(effect.get(key)) for key in ("better", "worse"))])
        values = {name: (found["mrr"], Interval(*found["intervals"]["mrr"])) for name, found in systems.items()}
        place = f"retrieval-{file.parent.name}"
        said = "left out of" if stored["said"] else "kept in"
        parts += [
            f"### {plain(file.parent.name)}",
            f"{stored['questions']:,} questions, {stored['documents']:,} documents; documents of a question's own "
            f"history are {said} the ranking.",
            source.draw(place, "MRR of each kind of query", partial(draw_intervals, values, _MRR)),
            table(["query", "MRR", "recall@10", "NDCG@3", "better, %", "worse, %"], rows, "lrrrrr"),
        ]
    if not parts:
        raise MissingPartError("no retrieval study is stored; run teo-lab retrieval")
    text = (
        "Each question was asked as it is (raw), with the whole history, rewritten by the model (teo, and several "
        "rewrites fused), and rewritten by a person (gold). Higher is better."
    )
    return Section("retrieval", "Does it help search?", "\n\n".join([text, *parts]))


def show_judging(source: ReportSource) -> Section:
    """Return what people preferred."""
    parts = []
    for file in sorted((source.results / "judging").glob("**/report.json")):
        stored = read_json(file)
        plan, place = stored["study"], f"judging-{file.parent.name}"
        names = (str(plan["a"]), str(plan["b"]))
        tallies = {"votes": _tally(stored["votes"]), "items": _tally(stored["items"])}
        kappa = stored["kappa"]["value"]
        parts += [
            f"### {plain(names[0])} against {plain(names[1])}",
            f"{stored['drawn']} items, {plan['raters']} raters, blind. Agreement of the raters (Fleiss' kappa): "
            f"{'-' if kappa is None else f'{kappa:.2f}'}. Sign test over items: p = {stored['sign_test']['p']:.3f}.",
            source.draw(place, "wins, ties and losses", partial(draw_bars, tallies, names)),
        ]
    if not parts:
        raise MissingPartError(
            "no judging is stored; run teo-lab judge --out lab/results/judging/NAME, then the same with --report"
        )
    return Section("judging", "Which rewrites do people prefer?", "\n\n".join(parts))


def _tally(stored: Mapping[str, Any]) -> Tally:
    return Tally(*(_outcome(stored[name]) for name in ("win", "tie", "loss")))


def _outcome(stored: Mapping[str, Any]) -> VoteShare:
    around = stored["interval"]
    return VoteShare(stored["count"], stored["share"], Interval(**around) if around else None)
