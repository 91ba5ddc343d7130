"""Generated parts of pages that people write: what stands between two comments of the page."""

from __future__ import annotations

import re
from collections.abc import Mapping

from teo.errors import InputError

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
"""Around the only block of a page; one of several has its name after `begin`."""
_BLOCK = re.compile(r"<!-- figures: begin(?: (?P<name>[\w-]+))? -->\n(?P<body>.*?)<!-- figures: end -->", re.DOTALL)


def fill(page: str, blocks: Mapping[str, str]) -> str:
    """Return a page with its blocks, by name, made anew; the only block of a page has an empty name.

    A page has to have exactly these blocks, so that none is forgotten when its prose is rewritten.
    """
    names = [found["name"] or "" for found in _BLOCK.finditer(page)]
    if sorted(names) != sorted(blocks):
        wanted, there = (", ".join(name or "without a name" for name in known) or "none" for known in (blocks, names))
        raise InputError(f"expected blocks between {BEGIN} and {END}: {wanted}; found {there}")

    def make(found: re.Match[str]) -> str:
        opening = found[0].partition("\n")[0]
        return f"{opening}\n{blocks[found['name'] or '']}\n{END}"

    return _BLOCK.sub(make, page)
