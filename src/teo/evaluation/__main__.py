"""python -m teo.evaluation: what `teo evaluate` does, where only the model's libraries are installed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from teo.errors import TeoError
from teo.evaluation.evaluate import Request, evaluate
from teo.evaluation.every import EVERY, evaluate_every, format_variants
from teo.evaluation.summary import read_options, summarise
from teo.pipelines import VARIANTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0, 2 for the user's mistake, 1 for ours; the error is one line on stderr."""
    given = _parser().parse_args(arguments)
    try:
        options = read_options(given.option)
        fields = {name: value for name, value in vars(given).items() if name not in ("option", "json")}
        request = Request(**fields, options=options)
        if request.variant == EVERY:
            every = evaluate_every(request)
            sys.stdout.write((json.dumps(every, ensure_ascii=False) + "\n") if given.json else format_variants(every))
            return 0
        metrics = evaluate(request)
    except TeoError as error:
        sys.stderr.write(f"teo: {error}\n")
        return error.exit_code
    sys.stdout.write((json.dumps(metrics, ensure_ascii=False) if given.json else summarise(metrics, given.out)) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m teo.evaluation", description="Evaluate a variant on a dataset.")
    parser.add_argument("--data", required=True, help="the dataset's name")
    parser.add_argument("--path", required=True, type=Path, help="its folder or file")
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", type=Path, help="a model folder that training or export wrote")
    parser.add_argument("--variant", default="teo", help=f"{', '.join(VARIANTS)}, or {EVERY} that the model can play")
    parser.add_argument("--out", required=True, type=Path, help="the folder for the results; a stopped run goes on")
    parser.add_argument("--limit", type=int, help="only the first rows")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1")
    parser.add_argument("--abstain", action="store_true", help="keep what the model's rules and thresholds keep")
    parser.add_argument("--bf16", action="store_true", help="half precision, on CUDA")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--option", action="append", default=[], help="an option of the dataset: history=last-two")
    parser.add_argument("--json", action="store_true", help="print all metrics as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
