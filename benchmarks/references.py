"""How often a rewrite that a person wrote is left alone when it comes as the utterance.

A rewriter must not touch what is complete, and a reference rewrite is complete by definition. It measures what `teo
rewrite` gives, rules and thresholds included, with the reference of every incomplete test row after its own history.

    python benchmarks/references.py data [--model MODEL] [--out FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from teo.data import load_rows
from teo.data.row import Row
from teo.files import write_json
from teo.provenance import git_commit, versions
from teo.rewriter import Rewriter
from teo.units import is_exact_match

DATASETS = ("rewrite", "task", "res200k")


def count_kept(rewriter: Rewriter, rows: Sequence[Row]) -> dict[str, int]:
    """Return how many references of incomplete rows were given, and how many stayed as they are."""
    incomplete = [row for row in rows if not row.is_complete]
    dialogues = [{"history": list(row.dialogue.history), "utterance": row.rewrite} for row in incomplete]
    results = rewriter.rewrite_many(dialogues)
    kept = sum(is_exact_match(result.rewrite, row.rewrite) for row, result in zip(incomplete, results, strict=True))
    return {"references": len(incomplete), "kept": kept}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the share of each dataset, and store the counts where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds rewrite, task and res200k")
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--out", type=Path, help="a JSON file for the result")
    options = parser.parse_args(arguments)
    rewriter = Rewriter.from_pretrained(options.model)
    counts: dict[str, Any] = {}
    for name in DATASETS:
        counts[name] = count_kept(rewriter, load_rows(name, options.data / name, "test").rows)
        share = 100 * counts[name]["kept"] / counts[name]["references"]
        print(f"{name}: {share:.1f}% of {counts[name]['references']} references kept", flush=True)
    if options.out is not None:
        described = {"model": rewriter.name, "variant": rewriter.variant, "threshold": rewriter.threshold}
        record = {"versions": versions(["numpy", "onnxruntime"]), "commit": git_commit()}
        write_json(options.out, {**described, "datasets": counts, **record})


if __name__ == "__main__":
    main()
