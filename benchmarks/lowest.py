"""Print the lowest versions that pyproject.toml allows, of the package and of the extras named, as pip constraints."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def lowest(extras: list[str]) -> list[str]:
    """Return a line for each dependency, at its lower bound."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    return [re.sub(r"\[.*?\]", "", line).replace(">=", "==") for line in needed]


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
