"""A section of the report, and what its makers are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from teo.errors import TeoError
from teo_lab.report.predictions import PredictedSystem
from teo_lab.reproduce.stored import Published, Stored

FIGURES = "figures"
"""The folder of pictures beside the page."""
EMBEDDED = "default"
"""The folder of results that holds those of the embedded model."""
OWN_VARIANT = "direct"
"""The embedded model's pipeline whose results without a threshold are stored."""
SHIPPED = "fused+threshold"
"""What `teo rewrite` runs."""
PAPER_DATASETS: Mapping[str, str] = {"task": "TASK", "rewrite": "REWRITE", "res200k": "RES200K"}
"""The datasets of tables 2 to 4, in their order."""


class MissingPartError(TeoError):
    """What a section needs is not there; the message says what would make it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: a question of the reader as its title, and the answer."""

    name: str
    """Its anchor."""
    title: str
    markdown: str
    html: str | None = None
    """What the HTML page shows instead if Markdown cannot; checked and escaped by its maker."""


@dataclass(frozen=True, slots=True)
class ReportSource:
    """What a report is made from."""

    results: Path
    out: Path
    published: Sequence[Published]
    ours: Sequence[Stored]
    systems: Sequence[PredictedSystem] = ()
    """Predicted rows: with text if the user gave files of predictions or the datasets."""
    data: Path | None = None
    """The folder that holds the datasets."""
    own_predictions: bool = False
    """Whether the systems come from files of predictions."""

    def tested(self, dataset: str, model: str | None = None, variant: str | None = None) -> list[Stored]:
        """Return our evaluations on a test set, of one model or variant if it is named."""
        return [
            stored
            for stored in self.ours
            if (stored.settings.data, stored.settings.split) == (dataset, "test")
            and model in (None, stored.model)
            and variant in (None, stored.settings.variant)
        ]

    def draw(self, name: str, alt: str, draw: Callable[[Path], None]) -> str:
        """Return the Markdown of a picture, drawn into the folder of pictures."""
        folder = self.out / FIGURES
        folder.mkdir(parents=True, exist_ok=True)
        draw(folder / f"{name}.svg")
        return f"![{alt}]({FIGURES}/{name}.svg)"


Maker = Callable[[ReportSource], Section]
"""What makes a section; raises MissingPartError if it cannot."""
