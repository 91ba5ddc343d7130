"""The Markdown report of an evaluation: numbers with their intervals and recipes, what went wrong, examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from teo.evaluation.analysis import rewrite_matches

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
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def format_report(metrics: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """Return the report as Markdown."""
    settings = metrics["settings"]
    parts = [
        f"# {settings['variant']} on {settings['data']} ({settings['split']})",
        f"{metrics['n']} rows. Shares and scores in percent; intervals are 95%.",
        _scores(metrics),
        "## What the utterances needed",
        _needs(metrics),
        *_flow(metrics["stage_flow"]),
        "## Errors",
        _errors(metrics["errors"]),
        *_examples(records),
        "## Settings",
        format_table(("setting", "value"), _settings(metrics)),
        "## Signatures",
        "\n".join(f"- `{signature}`" for signature in dict.fromkeys(metrics["signatures"].values())),
    ]
    return "\n\n".join(parts) + "\n"


def percent(value: float | None) -> str:
    """Return a fraction as a percentage with one decimal; a dash where it is undefined."""
    return "-" if value is None else f"{100 * value:.1f}"


def _scores(metrics: Mapping[str, Any]) -> str:
    groups = metrics["groups"]
    rows = []
    for name, title in _SHOWN.items():
        low, high = metrics["intervals"].get(name, (None, None))
        interval = "-" if low is None else f"{percent(low)} to {percent(high)}"
        # A complete utterance has nothing to restore: an F-score of it says nothing.
        complete = None if title.startswith("Restoration") else groups["complete"].get(name)
        apart = percent(complete), percent(groups["incomplete"].get(name))
        rows.append((title, percent(metrics[name]), interval, *apart))
    return format_table(("metric", "all", "interval", "complete", "incomplete"), rows)


def _needs(metrics: Mapping[str, Any]) -> str:
    broken = metrics["breakdown"]
    rows = [
        (name.replace("_", " "), one["n"], percent(one["em"])) for name, one in broken.items() if isinstance(one, dict)
    ]
    rates = (
        f"Complete utterances changed: {percent(broken['over_rewrite_rate'])}%. "
        f"Incomplete utterances left unchanged: {percent(broken['under_rewrite_rate'])}%. "
        f"Rows whose oldest turns were dropped: {metrics['truncated_rows']}. "
        f"Rows with operations that could not be read or placed: {metrics['not_well_formed_rows']}."
    )
    if "chosen" in metrics:
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(metrics["chosen"].items()))
        rates += f" Candidates chosen: {listed}."
    return f"{format_table(('utterance', 'rows', 'EM'), rows)}\n\n{rates}"


def _flow(flow: Mapping[str, Any] | None) -> list[str]:
    if flow is None:
        return []
    cells = format_table(
        ("", "rewrite wrong", "rewrite right"),
        [
            ("operations wrong", flow["wrong_wrong"], flow["wrong_right"]),
            ("operations right", flow["right_wrong"], flow["right_right"]),
        ],
    )
    rates = (
        f"Stage-1 EM e = {percent(flow['stage1_em'])}, E2C = {percent(flow['e2c'])}, C2E = {percent(flow['c2e'])}; "
        f"e (1 - C2E) + (1 - e) E2C = {percent(flow['implied_em'])} is the final EM {percent(flow['final_em'])}. "
        "Picture: `flow.png`."
    )
    return ["## From operations to rewrites", cells, rates]


def _errors(errors: Mapping[str, Any]) -> str:
    if not errors["rows"]:
        return "None."
    wrong = errors["rows"]

    def listed(counts: Mapping[str, int]) -> list[tuple[str, int, str]]:
        return [(name.replace("_", " "), count, percent(count / wrong)) for name, count in counts.items()]

    tables = [
        format_table(("the utterance needed", "wrong rows", "share"), listed(errors["needed"])),
        format_table(("what is wrong", "wrong rows", "share"), listed(errors["faults"])),
        format_table(("operation at fault", "wrong rows", "share"), listed(errors["operations"])),
    ]
    share = percent(errors["insertion_share"])
    return "\n\n".join([f"{wrong} wrong rows; insertions make {share}% of the operations at fault.", *tables])


def _examples(records: Sequence[Mapping[str, Any]]) -> list[str]:
    wrong = [record for record in records if not rewrite_matches(record)]
    if not wrong:
        return []
    step = max(1, len(wrong) // EXAMPLES)
    chosen = wrong[::step][:EXAMPLES]
    return [f"## {len(chosen)} of the wrong rows", *(_example(record) for record in chosen)]


def _example(record: Mapping[str, Any]) -> str:
    lines = [f"**{_plain(record['id'])}**", ""]
    lines += [f"> {_plain(turn)}  " for turn in record.get("history", ())]
    named = [("utterance", "current"), ("reference", "reference"), ("prediction", "prediction")]
    named += [("operations", "operations"), ("gold operations", "gold_operations")]
    lines += ["", *(f"- {title}: {_plain(record[key]) or '(none)'}" for title, key in named if record[key] is not None)]
    return "\n".join(lines)


def _settings(metrics: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    for part in ("settings", "run"):
        for name, value in metrics[part].items():
            if isinstance(value, Mapping):
                yield name, ", ".join(f"{key} {one}" for key, one in value.items()) or "-"
            else:
                yield name.replace("_", " "), "-" if value is None else value


def format_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; what its cells hold is shown as it is."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _plain(value: object) -> str:
    """Return a value as text that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))
