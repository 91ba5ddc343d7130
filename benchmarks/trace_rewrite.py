"""How far a call of `teo rewrite` travels: the functions of src/teo that it runs, and its changes of folder.

    python benchmarks/trace_rewrite.py [--list] [TURN... UTTERANCE]

Named functions are counted once each, comprehensions and lambdas not at all, nor what runs while a module is imported.
A change of folder is a call whose file lies in another folder than that of the call before it.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import teo
from teo.cli.app import main

ROOT = Path(teo.__file__).parent
SAMPLE = ["Who wrote Dune?", "Frank Herbert.", "When was he born?"]


def is_importing(frame: FrameType | None) -> bool:
    """Tell whether a frame runs because a module is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False


def trace(words: list[str]) -> list[tuple[Path, str]]:
    """Return the file and the name of each call, in order."""
    calls: list[tuple[Path, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not code.co_filename.startswith(f"{ROOT}/"):
            return
        if not is_importing(frame):
            calls.append((Path(code.co_filename).relative_to(ROOT), code.co_qualname))

    sys.argv = ["teo", "rewrite", *words]
    sys.setprofile(note)
    try:
        main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return calls


if __name__ == "__main__":
    shown = "--list" in sys.argv
    calls = trace([word for word in sys.argv[1:] if word != "--list"] or SAMPLE)
    folders = [file.parent for file, _ in calls]
    changes = sum(before != after for before, after in pairwise(folders))
    if shown:
        print("\n".join(f"{file}  {name}" for file, name in calls))
    print(f"{len(set(calls))} functions, {len(calls)} calls, {changes} changes of folder")
