"""Where the lab's data lies: in the checkout, beside the package."""

from __future__ import annotations

from pathlib import Path

from teo.errors import DataError


def find_lab() -> Path:
    """Return the folder `lab` of the checkout: beside the package, or in the working directory."""
    own = Path(__file__).resolve().parents[2]
    return own if (own / "rows").is_dir() else Path("lab").resolve()


LAB = find_lab()
ROWS, CONFIGS, RESULTS, DOCS = (LAB / name for name in ("rows", "configs", "results", "docs"))
EVERYDAY = LAB.parent / "benchmarks" / "everyday"


def require_rows() -> None:
    """Refuse to make rows if the files that they are made from are not here."""
    if not ROWS.is_dir():
        raise DataError(
            f"{ROWS}: no such folder; expected the lab's rows: run teo-lab in a checkout of teo, at its root"
        )
