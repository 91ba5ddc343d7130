"""The table of docs/own-data.md: what training on data of one's own brings, and what it costs elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teo.evaluation.markdown import percent, table
from teo.metrics.meaning import INCOMPLETE
from teo_lab.reproduce.stored import read_json

_LANGUAGES = {"en": "everyday English", "zh": "everyday Chinese"}


def make_own_data(results: Path) -> str:
    """Return the table of the stored figures."""
    return own_data_table(read_json(results / "own-data.json")["domains"])


def own_data_table(domains: Mapping[str, Any]) -> str:
    """Return two tables in percent: the domains' own test rows, and everyday dialogues before and after."""
    head = ("test rows", "prefer", "model", *INCOMPLETE, "right by exact match", "complete: unchanged")
    own = []
    for name, measured in domains.items():
        for prefer in measured["test"]["before"]:
            for model, when in (("embedded", "before"), ("trained", "after")):
                counts = measured["test"][when][prefer]
                rates = counts["meaning"]["rates"]
                shares = (percent(rates[verdict]) for verdict in INCOMPLETE)
                exact = percent(counts["exact"] / counts["incomplete"])
                own.append((f"`{name}`", prefer, model, *shares, exact, percent(rates["kept"])))
    first = next(iter(domains.values()))["everyday"]
    models = {"embedded": {language: pair["before"] for language, pair in first.items()}}
    for name, measured in domains.items():
        models[f"trained on `{name}`"] = {language: pair["after"] for language, pair in measured["everyday"].items()}
    parts = ("right", "wrong", "complete unchanged")
    titles = [f"{_LANGUAGES[language]}: {part}" for language in first for part in parts]
    general = []
    for model, languages in models.items():
        rates = [counts["meaning"]["rates"] for counts in languages.values()]
        general.append((model, *(percent(rate[part]) for rate in rates for part in ("right", "wrong", "kept"))))
    return f"{table(head, own)}\n\n{table(('model', *titles), general)}"
