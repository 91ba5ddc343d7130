"""`python tools/encode_rows.py CONFIG OUT.npz [key=value ...]`: a configuration's rows, encoded for packed training.

`teo train CONFIG 'encoded=["OUT.npz"]'` then starts at once, on a GPU whose minutes count.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from teo.errors import InputError, TeoError
from teo.training.config import read_config
from teo.training.encoded import encode


def main(arguments: Sequence[str]) -> None:
    """Encode the rows, write them, and print how many there are."""
    if len(arguments) < 2:
        raise InputError(
            "expected a configuration and a file: python tools/encode_rows.py CONFIG OUT.npz [key=value ...]"
        )
    # As the run that will read the file: what it could not train is refused before anything is encoded.
    config = read_config(Path(arguments[0]), [*arguments[2:], f"encoded={json.dumps([arguments[1]])}"])
    with tempfile.TemporaryDirectory() as work:
        rows = encode(config, Path(work))
    rows.save(Path(arguments[1]))
    sys.stdout.write(
        f"{arguments[1]}: {len(rows.repeats)} rows, {rows.repeats.sum()} an epoch, {len(rows.ids)} tokens\n"
    )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        main(sys.argv[1:])
    except TeoError as error:
        sys.exit(str(error))
