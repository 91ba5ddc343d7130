"""make_pages(): every page and part of a page whose figures come from stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from teo.errors import InputError
from teo.files import write_text
from teo_lab.pages.blocks import fill
from teo_lab.pages.everyday import make_everyday
from teo_lab.pages.own_data import make_own_data
from teo_lab.pages.performance import make_performance
from teo_lab.pages.readme import CHINESE, ENGLISH, make_figures
from teo_lab.pages.results import make_results
from teo_lab.pages.scale import make_scale
from teo_lab.pages.studies import make_studies
from teo_lab.paths import LAB, RESULTS

ROOT = LAB.parent
Maker = Callable[[str, Path], str]
"""Makes a page anew: from its present text, of which prose stays, and the folder of stored results."""

PAGES: Mapping[str, Maker] = {
    "README.md": lambda page, results: fill(page, {"": make_figures(results, ENGLISH)}),
    "README.zh-CN.md": lambda page, results: fill(page, {"": make_figures(results, CHINESE)}),
    "benchmarks/everyday/README.md": lambda page, results: fill(page, make_everyday(results)),
    "docs/own-data.md": lambda page, results: fill(page, {"": make_own_data(results)}),
    "docs/performance.md": lambda _, results: make_performance(results),
    "docs/scale.md": lambda page, results: fill(page, {"": make_scale(results / "scale")}),
    "lab/docs/results.md": lambda _, results: make_results(results),
    "lab/docs/studies.md": lambda page, results: fill(page, make_studies(results)),
}
"""The pages by their paths in the checkout."""


def make_pages(root: Path = ROOT, results: Path = RESULTS) -> dict[str, str]:
    """Return the text of every page, made of stored results, by its path."""
    made = {}
    for name, make in PAGES.items():
        try:
            present = (root / name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{name}: expected the page in {root}, found none ({error.strerror})") from None
        try:
            made[name] = make(present, results)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    return made


def find_stale(root: Path = ROOT, results: Path = RESULTS) -> list[str]:
    """Return the pages that differ from what the stored results make."""
    return [
        name for name, text in make_pages(root, results).items() if (root / name).read_text(encoding="utf-8") != text
    ]


def write_pages(root: Path = ROOT, results: Path = RESULTS) -> list[str]:
    """Write the pages that differ from what the stored results make, and return them."""
    made = make_pages(root, results)  # all of them, before any is written
    stale = [name for name, text in made.items() if (root / name).read_text(encoding="utf-8") != text]
    for name in stale:
        write_text(root / name, made[name])
    return stale
