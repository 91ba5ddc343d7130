"""How much of a long turn its head should get: what rows with turns that do not fit lose, by share and mark.

`reachable`: rows in which all that their reference takes from the history is in what the model reads, whatever the
model makes of it. `right`: rows that come out as their reference, with `--ask`. A small `--source-limit` makes rows of
any dataset too long. One JSON line per setting.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

from teo.data import load_rows
from teo.data.row import Row
from teo.loading import open_model
from teo.rewriter import Rewriter
from teo.units import is_exact_match, scoring_units

SHARES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MARKS = (" … ", " ")


def main() -> None:
    """Print what is reachable, and right, for each share of the head and each mark of omission."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--data", required=True, help="dataset name")
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--source-limit", type=int, help="tokens of a source; the model's own without it")
    parser.add_argument("--limit", type=int, default=2000, help="rows that are too long, at most")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--ask", action="store_true", help="ask the model too")
    options = parser.parse_args()
    model = open_model(options.model)
    if options.source_limit:
        model = replace(model, folder=replace(model.folder, source_limit=options.source_limit))
    rewriter = Rewriter.of_model(model)
    rows = load_rows(options.data, options.path, options.split).rows
    long = [row for row in rows if _needed(row) and rewriter.fit(row.dialogue)[1]][: options.limit]
    for share in options.shares:
        for mark in MARKS if options.ask else MARKS[:1]:
            with mock.patch.multiple("teo.excerpts", HEAD_SHARE=share, OMISSION=mark):
                found = {"rows": len(long), **dict(_measure(rewriter, long, ask=options.ask))}
            print(json.dumps({"head_share": share, "mark": mark, **found}), flush=True)


def _needed(row: Row) -> set[str]:
    """Return the units of the reference that the utterance lacks and the history has."""
    said = {unit for turn in row.dialogue.history for unit in scoring_units(turn)}
    return (set(scoring_units(row.rewrite)) & said) - set(scoring_units(row.dialogue.utterance))


def _measure(rewriter: Rewriter, rows: Sequence[Row], *, ask: bool) -> Iterator[tuple[str, float]]:
    """Yield the shares of rows that are reachable and, where the model is asked, right."""
    fitted = [rewriter.fit(row.dialogue)[0] for row in rows]
    read = [{unit for turn in dialogue.history for unit in scoring_units(turn)} for dialogue in fitted]
    yield "reachable", _share(_needed(row) <= units for row, units in zip(rows, read, strict=True))
    if ask:
        results = rewriter.rewrite_many([row.dialogue for row in rows], min_confidence=0)
        yield (
            "right",
            _share(is_exact_match(result.rewrite, row.rewrite) for result, row in zip(results, rows, strict=True)),
        )


def _share(hits: Iterator[bool]) -> float:
    listed = list(hits)
    return round(sum(listed) / max(1, len(listed)), 4)


if __name__ == "__main__":
    main()
