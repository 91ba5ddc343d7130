"""Markdown as every report of the project writes it: tables, text shown as it is, percentages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")
_RULES = {"l": "---", "r": "---:"}


def table(header: Sequence[str], rows: Iterable[Sequence[object]], align: str = "") -> str:
    """Return a table; `align` has an `l` or an `r` for each column, and is all `l` if it is empty.

    Cells are Markdown: pass other text through `plain`.
    """
    rules = [_RULES[side] for side in align or "l" * len(header)]
    lines = [header, rules, *([str(cell) for cell in row] for row in rows)]
    for cells in lines:
        if len(cells) != len(header):
            raise ValueError(f"table: expected {len(header)} cells as in the header, found {len(cells)}: {cells}")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plain_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose cells are shown as they are."""
    return table(header, ([plain(cell) for cell in row] for row in rows))


def plain(value: object) -> str:
    """Return a value as text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))


def percent(value: float | None) -> str:
    """Return a fraction in percent with one decimal; a dash for None."""
    return "-" if value is None else f"{100 * value:.1f}"
