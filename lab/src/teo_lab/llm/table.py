"""show_comparison(stored): a stored comparison with language models as a table of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from teo.evaluation.markdown import percent, plain, table
from teo_lab.llm.comparison import OURS

_VERDICTS = ("partly", "wrong", "missed", "kept")
_MEANING_HEAD = ("right %", "95% interval", *(f"{verdict} %" for verdict in _VERDICTS), "EM %")
_WORDS_HEAD = ("EM %", "ROUGE-L %", "F1 %", "MRR", "95% interval")


def show_comparison(stored: Mapping[str, Any]) -> str:
    """Return a line for each system: by meaning if the rows have keys, else by the words that were restored."""
    systems = stored["systems"]
    by_meaning = "meaning" in systems[OURS]
    usual = systems[OURS]["median_seconds"]
    rows = []
    for name, figures in systems.items():
        shown = f"**{plain(name)}**" if name == OURS else plain(name)
        quality = _by_meaning(figures) if by_meaning else _by_words(figures)
        rows.append([shown, *quality, *_times(figures, usual)])
    head = _MEANING_HEAD if by_meaning else _WORDS_HEAD
    columns = ["system", *head, "median, s", "95% within, s", "times ours"]
    return table(columns, rows, "l" + "r" * (len(columns) - 1))


def _by_meaning(figures: Mapping[str, Any]) -> list[str]:
    """Return the shares of verdicts, and exact match of the incomplete utterances with any accepted rewrite."""
    if "meaning" not in figures:
        return ["-"] * len(_MEANING_HEAD)
    rates, interval = figures["meaning"]["rates"], figures["meaning"]["intervals"]["right"]
    around = " to ".join(percent(end) for end in interval)
    return [
        percent(rates["right"]),
        around,
        *(percent(rates[name]) for name in _VERDICTS),
        percent(figures["em_incomplete"]),
    ]


def _by_words(figures: Mapping[str, Any]) -> list[str]:
    """Return exact match, ROUGE-L and the F1 of restored words, and what a search with the texts finds."""
    scored = [percent(figures.get(name)) for name in ("em", "rougeL_rouge_1_0_1", "run_f1")]
    if "mrr" not in figures:
        return [*scored, "-", "-"]
    return [*scored, f"{figures['mrr']:.3f}", " to ".join(f"{end:.3f}" for end in figures["mrr_interval"])]


def _times(figures: Mapping[str, Any], usual: float) -> list[str]:
    """Return the seconds of a call, and how many times ours they are; dashes if nothing was timed."""
    if "median_seconds" not in figures:
        return ["-"] * 3
    ratio = figures["median_seconds"] / usual
    return [f"{figures['median_seconds']:.2f}", f"{figures['p95_seconds']:.2f}", "1" if ratio == 1 else f"{ratio:.0f}"]
