"""How well a model works in everyday use, by meaning and by exact match.

It measures what `teo rewrite` gives, rules and thresholds included, on the dialogues of benchmarks/everyday.

    python benchmarks/everyday.py [--model MODEL] [--variant NAME] [--dev | --held] [--out FILE]

All three settings of `prefer` are measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.data.row import Row
from teo.decision import PREFER, THRESHOLD
from teo.files import write_json
from teo.metrics.meaning import COMPLETE, INCOMPLETE, grade, report_meaning
from teo.provenance import git_commit, versions
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo.units import is_exact_match
from teo_lab.sheets import judged_rows

FOLDER = Path(__file__).parent / "everyday"
LANGUAGES = ("en", "zh")


def read_kinds(path: Path) -> dict[str, str]:
    """Return the kind of each dialogue of a file by its id."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["kind"] for row in rows}


def read_dialogues(part: str, language: str) -> list[Row]:
    """Return the dialogues of a part (test, dev, held) with what readers said of rewrites."""
    return list(judged_rows(f"everyday-{part}-{language}", Path()))


def propose(rewriter: Rewriter, rows: Sequence[Row]) -> list[Rewrite]:
    """Return the records of all rows without a threshold."""
    return rewriter.rewrite_many([row.dialogue for row in rows], min_confidence=0.0)


def measure(
    rows: Sequence[Row], records: Sequence[Rewrite], kinds: Mapping[str, str], threshold: float = THRESHOLD
) -> dict[str, Any]:
    """Return the verdicts by meaning at a threshold, and how many incomplete rows are right by exact match."""
    by_kind: dict[str, Counter[str]] = {}
    verdicts, exact = [], 0
    for row, record in zip(rows, records, strict=True):
        sure = record.confidence is not None and record.confidence >= threshold
        rewrite = record.rewrite if sure else row.dialogue.utterance
        verdict = grade(row, rewrite)
        verdicts.append(verdict)
        by_kind.setdefault(kinds[row.id], Counter())[verdict] += 1
        if verdict in INCOMPLETE:
            exact += any(is_exact_match(rewrite, text) for text in (row.rewrite, *row.references))
    return {
        "incomplete": sum(verdict in INCOMPLETE for verdict in verdicts),
        "complete": sum(verdict in COMPLETE for verdict in verdicts),
        "exact": exact,
        "meaning": report_meaning(verdicts).to_dict(),
        "by_kind": {kind: dict(sorted(counts.items())) for kind, counts in by_kind.items()},
    }


def show(language: str, measured: Mapping[str, Any]) -> str:
    """Return the scores of a language as lines of text: shares in percent, then the counts of each kind."""
    rates, count = measured["meaning"]["rates"], measured["incomplete"]
    shares = ", ".join(f"{name} {100 * rates[name]:.1f}" for name in INCOMPLETE)
    lines = [
        f"{language}: {shares} of {count} incomplete ({100 * measured['exact'] / count:.1f} by exact match); "
        f"kept {100 * rates['kept']:.1f} of {measured['complete']} complete"
    ]
    for kind, found in measured["by_kind"].items():
        lines.append(f"  {kind:20}" + ", ".join(f"{number} {name}" for name, number in found.items()))
    return "\n".join(lines)


def main() -> None:
    """Print the scores of a model in both languages, and store them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--variant", help="the pipeline; the model's own without it")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--dev", action="store_true", help="the development dialogues instead of the benchmark")
    parts.add_argument("--held", action="store_true", help="those held out of the dialogues written for training")
    parser.add_argument("--out", type=Path, help="a JSON file for the result")
    options = parser.parse_args()
    part = "dev" if options.dev else "held" if options.held else "test"
    rewriter = Rewriter.from_pretrained(options.model, variant=options.variant)
    result: dict[str, Any] = {"model": rewriter.name, "variant": rewriter.variant, "files": {}, "prefer": dict(PREFER)}
    result["languages"] = {}
    for language in LANGUAGES:
        path = FOLDER / ("" if part == "test" else part) / f"{language}.jsonl"
        result["files"][path.relative_to(FOLDER).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
        rows, kinds = read_dialogues(part, language), read_kinds(path)
        records = propose(rewriter, rows)
        measured = {prefer: measure(rows, records, kinds, threshold) for prefer, threshold in PREFER.items()}
        result["languages"][language] = measured
        for prefer, counts in measured.items():
            print(show(f"{language}, {prefer}", counts))
    if options.out is not None:
        write_json(options.out, {**result, "versions": versions(["numpy", "onnxruntime"]), "commit": git_commit()})


if __name__ == "__main__":
    main()
