"""The Markdown report of an evaluation: numbers with their intervals and recipes, what went wrong, examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from teo.evaluation.analysis import ErrorAnalysis
from teo.evaluation.markdown import percent, plain, plain_table
from teo.evaluation.measures import Evaluation, Measures
from teo.evaluation.predict import PredictedRow
from teo.metrics import ScoreReport, StageFlow
from teo.metrics.base import Interval
from teo.metrics.meaning import COMPLETE, INCOMPLETE, SIGNATURE, MeaningReport

EXAMPLES = 20
"""How many wrong rows a report shows, evenly drawn from all of them."""
_SHOWN = {
    "em": "EM",
    "bleu1": "BLEU-1",
    "bleu2": "BLEU-2",
    "bleu3": "BLEU-3",
    "bleu4": "BLEU-4",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL_rouge_0_3_2": "ROUGE-L (rouge 0.3.2)",
    "rougeL_rouge_1_0_1": "ROUGE-L (rouge 1.0.1)",
    "run_f1": "Restoration F1 (RUN)",
    "run_f2": "Restoration F2 (RUN)",
    "run_f3": "Restoration F3 (RUN)",
    "pan_f1": "Restoration F1 (Pan)",
    "pan_f2": "Restoration F2 (Pan)",
    "pan_f3": "Restoration F3 (Pan)",
}


def format_report(evaluation: Evaluation, rows: Sequence[PredictedRow]) -> str:
    """Return the report as Markdown."""
    settings, measures = evaluation.settings, evaluation.measures
    signatures = dict.fromkeys(map(str, measures.scores.signatures.values()))
    parts = [
        f"# {settings.variant} on {settings.data} ({settings.split})",
        f"pipeline: {evaluation.pipeline}",
        f"{measures.scores.n} rows. Shares and scores in percent; intervals are 95%.",
        _scores(measures),
        *_meaning(measures.meaning),
        "## What the utterances needed",
        _needs(measures),
        *_flow(measures.flow),
        "## Errors",
        _errors(measures.errors),
        *_examples(rows),
        "## Settings",
        plain_table(("setting", "value"), _settings(evaluation)),
        "## Signatures",
        "\n".join(f"- `{signature}`" for signature in signatures),
    ]
    return "\n\n".join(parts) + "\n"


def _meaning(report: MeaningReport | None) -> list[str]:
    """Return the verdicts by meaning as a section; nothing if the rows have no keys."""
    if report is None:
        return []
    rows = [
        (verdict, report.counts.get(verdict, 0), percent(report.rate(verdict)), _ends(report.interval(verdict)))
        for verdict in (*INCOMPLETE, *COMPLETE)
    ]
    text = f"Of the incomplete utterances, and of the complete ones (kept, harmed). `{SIGNATURE}`"
    return ["## By meaning", plain_table(("verdict", "rows", "share", "95% interval"), rows), text]


def _ends(interval: Interval | None) -> str:
    return f"{percent(interval.low)} to {percent(interval.high)}" if interval else "-"


def summarise(evaluation: Evaluation, out: Path) -> str:
    """Return the numbers to look at first, and where the rest is."""
    settings, scores = evaluation.settings, evaluation.measures.scores
    lines = [
        f"{settings.variant} on {settings.data} ({settings.split}), {scores.n} rows, in percent",
        f"pipeline: {evaluation.pipeline}",
        f"EM {percent(scores['em'])} ({_interval(scores, 'em')})  "
        f"complete {percent(scores['em_complete'])}  incomplete {percent(scores['em_incomplete'])}",
        f"BLEU-4 {percent(scores['bleu4'])}  ROUGE-2 {percent(scores['rouge2'])}  F1 {percent(scores['run_f1'])}",
    ]
    if (meaning := evaluation.measures.meaning) is not None:
        shares = "  ".join(
            f"{verdict} {percent(meaning.rate(verdict))}" for verdict in ("right", "partly", "wrong", "missed")
        )
        lines.append(f"by meaning: {shares}  of the incomplete; kept {percent(meaning.rate('kept'))} of the complete")
    flow = evaluation.measures.flow
    if flow is not None:
        lines.append(f"stage-1 EM {percent(flow.stage1_em)}  E2C {percent(flow.e2c)}  C2E {percent(flow.c2e)}")
    return "\n".join([*lines, f"written to {out}"])


def format_variants(evaluations: Mapping[str, Evaluation]) -> str:
    """Return a Markdown table with a line for each variant, in percent."""
    head = ("variant", "EM", "95% interval", "complete", "incomplete", "BLEU-4", "F1", "stage-1 EM", "E2C", "C2E")
    rows = []
    for name, evaluation in evaluations.items():
        scores, flow = evaluation.measures.scores, evaluation.measures.flow
        shown = map(percent, (scores[key] for key in ("em_complete", "em_incomplete", "bleu4", "run_f1")))
        rates = map(percent, (flow.stage1_em, flow.e2c, flow.c2e) if flow else (None, None, None))
        rows.append((name, percent(scores["em"]), _interval(scores, "em"), *shown, *rates))
    return plain_table(head, rows) + "\n"


def _interval(scores: ScoreReport, name: str) -> str:
    low, high = scores.intervals.get(name, (None, None))
    return "-" if low is None else f"{percent(low)} to {percent(high)}"


def _scores(measures: Measures) -> str:
    rows = []
    for name, title in _SHOWN.items():
        parts = {key: None if part is None else part[name] for key, part in measures.groups.items()}
        if title.startswith("Restoration"):  # a complete utterance has nothing to restore: an F-score says nothing
            parts["complete"] = None
        apart = percent(parts["complete"]), percent(parts["incomplete"])
        rows.append((title, percent(measures.scores[name]), _interval(measures.scores, name), *apart))
    return plain_table(("metric", "all", "interval", "complete", "incomplete"), rows)


def _needs(measures: Measures) -> str:
    scores = measures.scores
    rows = [(name.replace("_", " "), count, percent(scores[f"em_{name}"])) for name, count in scores.groups.items()]
    rates = (
        f"Complete utterances changed: {percent(scores['over_rewrite_rate'])}%. "
        f"Incomplete utterances left unchanged: {percent(scores['under_rewrite_rate'])}%. "
        f"Rows that were read in part: {measures.truncated_rows}. "
        f"Rows with operations that could not be parsed or placed: {measures.not_well_formed_rows}."
    )
    if measures.chosen:
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(measures.chosen.items()))
        rates += f" Candidates chosen: {listed}."
    return f"{plain_table(('utterance', 'rows', 'EM'), rows)}\n\n{rates}"


def _flow(flow: StageFlow | None) -> list[str]:
    if flow is None:
        return []
    cells = plain_table(
        ("", "rewrite wrong", "rewrite right"),
        [
            ("operations wrong", flow.wrong_wrong, flow.wrong_right),
            ("operations right", flow.right_wrong, flow.right_right),
        ],
    )
    rates = (
        f"Stage-1 EM e = {percent(flow.stage1_em)}, E2C = {percent(flow.e2c)}, C2E = {percent(flow.c2e)}; "
        f"e (1 - C2E) + (1 - e) E2C is the final EM {percent(flow.final_em)}. Picture: `flow.png`."
    )
    return ["## From operations to rewrites", cells, rates]


def _errors(errors: ErrorAnalysis) -> str:
    if not errors.rows:
        return "None."

    def listed(counts: Mapping[str, int]) -> list[tuple[str, int, str]]:
        return [(name.replace("_", " "), count, percent(count / errors.rows)) for name, count in counts.items()]

    tables = [
        plain_table(("the utterance needed", "wrong rows", "share"), listed(errors.needed)),
        plain_table(("what is wrong", "wrong rows", "share"), listed(errors.faults)),
        plain_table(("operation at fault", "wrong rows", "share"), listed(errors.operations)),
    ]
    share = percent(errors.insertion_share)
    return "\n\n".join([f"{errors.rows} wrong rows; insertions make {share}% of the operations at fault.", *tables])


def _examples(rows: Sequence[PredictedRow]) -> list[str]:
    wrong = [row for row in rows if not row.is_right]
    if not wrong:
        return []
    chosen = wrong[:: max(1, len(wrong) // EXAMPLES)][:EXAMPLES]
    return [f"## {len(chosen)} of the wrong rows", *map(_example, chosen)]


def _example(row: PredictedRow) -> str:
    lines = [f"**{plain(row.id)}**", "", *(f"> {plain(turn)}  " for turn in row.history), ""]
    texts = {
        "utterance": row.current,
        "reference": row.reference,
        "prediction": row.prediction,
        "operations": row.operations,
        "gold operations": row.gold_operations,
    }
    return "\n".join(
        [*lines, *(f"- {name}: {plain(text) or '(none)'}" for name, text in texts.items() if text is not None)]
    )


def _settings(evaluation: Evaluation) -> Iterable[tuple[str, object]]:
    for name, value in {**asdict(evaluation.settings), **evaluation.run}.items():
        if isinstance(value, Mapping):
            yield name, ", ".join(f"{key} {item}" for key, item in value.items()) or "-"
        else:
            yield name.replace("_", " "), "-" if value is None else value
