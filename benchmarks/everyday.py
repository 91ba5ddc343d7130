"""How well a model works in everyday use: right, missed and wrong of the incomplete utterances, kept of the complete.

It measures what `teo rewrite` gives, rules and thresholds included, on the dialogues of benchmarks/everyday.

    python benchmarks/everyday.py [--model MODEL] [--dev | --held] [--out FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.files import write_json
from teo.provenance import git_commit, versions
from teo.rewriter import Rewriter
from teo.units import is_exact_match

FOLDER = Path(__file__).parent / "everyday"
LANGUAGES = ("en", "zh")
INCOMPLETE, COMPLETE = ("right", "missed", "wrong"), ("kept", "changed")
"""What may become of an utterance that needs a rewrite, and of one that needs none."""


def read_dialogues(path: Path) -> list[dict[str, Any]]:
    """Return the dialogues of a file: id, kind, history, utterance, rewrites."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def outcome(row: Mapping[str, Any], rewrite: str) -> str:
    """Return what became of an utterance, in a word of INCOMPLETE or COMPLETE."""
    same = is_exact_match(rewrite, row["utterance"])
    if row["kind"].startswith("keep-"):
        return "kept" if same else "changed"
    if any(is_exact_match(rewrite, accepted) for accepted in row["rewrites"]):
        return "right"
    return "missed" if same else "wrong"


def measure(rewriter: Rewriter, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of each outcome, in all and by kind."""
    dialogues = [{"history": row["history"], "utterance": row["utterance"]} for row in rows]
    results = rewriter.rewrite_many(dialogues)
    by_kind: dict[str, Counter[str]] = {}
    for row, result in zip(rows, results, strict=True):
        by_kind.setdefault(row["kind"], Counter())[outcome(row, result.rewrite)] += 1
    total = sum(by_kind.values(), Counter())
    return {
        "incomplete": sum(total[name] for name in INCOMPLETE),
        "complete": sum(total[name] for name in COMPLETE),
        **{name: total[name] for name in (*INCOMPLETE, "kept")},
        "by_kind": {kind: dict(sorted(counts.items())) for kind, counts in by_kind.items()},
    }


def show(language: str, counts: Mapping[str, Any]) -> str:
    """Return the scores of a language as lines of text: shares in percent, then the counts of each kind."""
    shares = [f"{name} {100 * counts[name] / counts['incomplete']:.1f}" for name in INCOMPLETE]
    lines = [
        f"{language}: {', '.join(shares)} of {counts['incomplete']} incomplete; "
        f"kept {100 * counts['kept'] / counts['complete']:.1f} of {counts['complete']} complete"
    ]
    for kind, found in counts["by_kind"].items():
        lines.append(f"  {kind:20}" + ", ".join(f"{number} {name}" for name, number in found.items()))
    return "\n".join(lines)


def main() -> None:
    """Print the scores of a model in both languages, and store them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--dev", action="store_true", help="the development dialogues instead of the benchmark")
    parts.add_argument("--held", action="store_true", help="those held out of the dialogues written for training")
    parser.add_argument("--out", type=Path, help="a JSON file for the result")
    options = parser.parse_args()
    rewriter = Rewriter.from_pretrained(options.model)
    result: dict[str, Any] = {
        "model": rewriter.name,
        "variant": rewriter.variant,
        "thresholds": {"default": rewriter.threshold, **rewriter.thresholds},
        "files": {},
        "languages": {},
    }
    for language in LANGUAGES:
        path = FOLDER / ("dev" if options.dev else "held" if options.held else "") / f"{language}.jsonl"
        result["files"][path.relative_to(FOLDER).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
        result["languages"][language] = measure(rewriter, read_dialogues(path))
        print(show(language, result["languages"][language]))
    if options.out is not None:
        write_json(options.out, {**result, "versions": versions(["numpy", "onnxruntime"]), "commit": git_commit()})


if __name__ == "__main__":
    main()
