"""What training on data of one's own brings, and what it costs elsewhere.

    python benchmarks/own_data.py examples/own-data/provider-en=runs/own-en --out lab/results/own-data.json

The model that `teo train configs/own.toml` made of each folder is compared with the embedded one, as `teo rewrite` runs
them: on the folder's test rows, and on everyday dialogues (benchmarks/everyday, dev and held), by meaning keys and by
exact match.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from everyday import FOLDER, LANGUAGES, measure, propose
from latency import named
from teo.data import load_rows
from teo.data.row import Row
from teo.decision import PREFER, THRESHOLD, Prefer
from teo.files import write_json
from teo.provenance import git_commit, versions
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo_lab.pages.own_data import own_data_table

_PARTS = ("dev", "held")
_SETTINGS: tuple[Prefer, ...] = ("balanced", "search")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all pairs of a folder and its model, print the table, and store the figures if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="FOLDER=MODEL", help="a folder of rows, and the model made of it")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args(arguments)
    everyday = {language: _everyday_rows(language) for language in LANGUAGES}
    embedded = Rewriter.from_pretrained()
    general = {language: _measure(embedded, rows) for language, rows in everyday.items()}
    found = {}
    for folder, model in map(named, options.pairs):
        rewriter, path = Rewriter.from_pretrained(model), Path(folder)
        rows = load_rows("jsonl", path / "test.jsonl", "test").rows
        found[path.name] = {
            "train_rows": sum(1 for _ in (path / "train.jsonl").open(encoding="utf-8")),
            "test": {when: _by_setting(each, rows) for when, each in (("before", embedded), ("after", rewriter))},
            "everyday": {
                language: {"before": general[language], "after": _measure(rewriter, everyday[language])}
                for language in LANGUAGES
            },
        }
    print(own_data_table(found))
    if options.out is not None:
        facts = {"versions": versions(["numpy", "onnxruntime"]), "commit": git_commit()}
        write_json(options.out, {"domains": found, **facts})


def _everyday_rows(language: str) -> list[Row]:
    files = [FOLDER / part / f"{language}.jsonl" for part in _PARTS]
    return [row for file in files for row in load_rows("jsonl", file, "all").rows]


def _by_setting(rewriter: Rewriter, rows: Sequence[Row]) -> dict[str, Any]:
    records = propose(rewriter, rows)
    return {prefer: _counts(rows, records, PREFER[prefer]) for prefer in _SETTINGS}


def _measure(rewriter: Rewriter, rows: Sequence[Row]) -> dict[str, Any]:
    return _counts(rows, propose(rewriter, rows), THRESHOLD)


def _counts(rows: Sequence[Row], records: Sequence[Rewrite], threshold: float) -> dict[str, Any]:
    measured = measure(rows, records, {row.id: "all" for row in rows}, threshold)
    return {name: value for name, value in measured.items() if name != "by_kind"}


if __name__ == "__main__":
    main()
