"""How much of a long turn its head should get: exact matches on rows with turns that do not fit, by share and mark.

Prints one JSON line per setting. A small `--source-limit` makes rows of any dataset too long.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

from teo.data import load_rows
from teo.data.row import Row
from teo.loading import open_model
from teo.rewriter import Rewriter
from teo.units import is_exact_match

SHARES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MARKS = (" … ", " ")


def main() -> None:
    """Print the share of right rewrites for each share of the head and each mark of omission."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--data", required=True, help="dataset name")
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--source-limit", type=int, help="tokens of a source; the model's own without it")
    parser.add_argument("--limit", type=int, default=500, help="rows that are too long, at most")
    options = parser.parse_args()
    model = open_model(options.model)
    if options.source_limit:
        model = replace(model, folder=replace(model.folder, source_limit=options.source_limit))
    rewriter = Rewriter.of_model(model)
    rows = [row for row in load_rows(options.data, options.path, options.split).rows if rewriter.fit(row.dialogue)[1]]
    for share in SHARES:
        for mark in MARKS:
            with mock.patch.multiple("teo.excerpts", HEAD_SHARE=share, OMISSION=mark):
                print(json.dumps({"head_share": share, "mark": mark, **_measure(rewriter, rows[: options.limit])}))


def _measure(rewriter: Rewriter, rows: Sequence[Row]) -> dict[str, float]:
    """Return how many rows there are, and how many are changed and right as a user gets them."""
    results = rewriter.rewrite_many([row.dialogue for row in rows])
    right = sum(is_exact_match(result.rewrite, row.rewrite) for result, row in zip(results, rows, strict=True))
    restored = [
        is_exact_match(result.rewrite, row.rewrite)
        for result, row in zip(results, rows, strict=True)
        if not is_exact_match(row.dialogue.utterance, row.rewrite)
    ]
    return {
        "rows": len(rows),
        "changed": sum(result.changed for result in results),
        "right": round(right / max(1, len(rows)), 4),
        "right_where_incomplete": round(sum(restored) / max(1, len(restored)), 4),
    }


if __name__ == "__main__":
    main()
