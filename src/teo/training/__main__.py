"""`python -m teo.training CONFIG [key=value ...]`: training where only torch and transformers are installed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from teo.errors import TeoError
from teo.training.command import keys_help, run_command


def main(arguments: list[str] | None = None) -> int:
    """Run the command; a known error is one line on stderr and its exit status."""
    parser = argparse.ArgumentParser(prog="python -m teo.training", description="Train the stages of a rewriter.")
    parser.add_argument("config", nargs="?", type=Path, help="configuration in TOML")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="values that take the file's place")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--dry-run", action="store_true", help="print the resolved configuration and stop")
    parser.add_argument("--sweep", default="", metavar="key=a,b,c", help="a run for each value, and a plot of dev EM")
    parser.add_argument("--keys", action="store_true", help="print every key with its meaning and stop")
    given = parser.parse_intermixed_args(arguments)
    if given.keys:
        sys.stdout.write(keys_help() + "\n")
        return 0
    if given.config is None:
        parser.error("the following arguments are required: config")
    try:
        run_command(given.config, given.overrides, resume=given.resume, dry_run=given.dry_run, sweep=given.sweep)
    except TeoError as error:
        if os.environ.get("TEO_DEBUG"):
            raise
        sys.stderr.write(f"teo: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
