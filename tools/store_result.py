"""`python tools/store_result.py RESULTS/MODEL RUN ...`: keep evaluations without keeping the dataset's text.

Of each run's folder the metrics are copied as DATASET-SPLIT-VARIANT.json, and its predictions as
DATASET-SPLIT-VARIANT.rows.jsonl.gz: per row its id, whether it was right and changed, the log-probability, and a hash
of the predicted text, by which a repeated run can be checked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from teo.errors import InputError, TeoError
from teo.evaluation.storing import store


def main(arguments: Sequence[str]) -> None:
    """Store the runs, and print the files that were written."""
    if len(arguments) < 2:
        raise InputError("expected folders: python tools/store_result.py RESULTS/MODEL RUN ...")
    for run in arguments[1:]:
        sys.stdout.write(f"{store(Path(arguments[0]), Path(run))}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except TeoError as error:
        sys.exit(str(error))
