"""write_report(request): report.html and report.md from stored results; what is not there is left out and named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from teo.errors import InputError
from teo.files import write_text
from teo.provenance import git_commit
from teo.version import __version__
from teo_lab.report.explorer import show_cases, show_explorer
from teo_lab.report.page import format_html, format_markdown
from teo_lab.report.predictions import PredictedSystem, read_predictions, read_stored
from teo_lab.report.quality import show_datasets, show_errors, show_noise, show_stages, show_tables, summarise
from teo_lab.report.section import EMBEDDED, OWN_VARIANT, PAPER_DATASETS, Maker, MissingPartError, ReportSource, Section
from teo_lab.report.usage import (
    show_confidence,
    show_judging,
    show_language_model,
    show_latency,
    show_retrieval,
)
from teo_lab.reproduce.comparison import rank
from teo_lab.reproduce.stored import read_ours, read_published

HTML, MARKDOWN = "report.html", "report.md"
SECTIONS: Mapping[str, Maker] = {
    "summary": summarise,
    "the paper's tables": show_tables,
    "stage flow": show_stages,
    "EM against prob_p": show_noise,
    "dataset statistics": show_datasets,
    "case studies": show_cases,
    "errors": show_errors,
    "confidence": show_confidence,
    "quality against latency": show_latency,
    "language model": show_language_model,
    "retrieval": show_retrieval,
    "judging": show_judging,
    "predictions": show_explorer,
}
"""What is left out by name, and what makes it, in the order of the page."""


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What a report is made from, and where it goes."""

    results: Path
    out: Path
    predictions: tuple[Path, ...] = ()
    """Files of predictions, whose text the page shows."""
    data: Path | None = None
    """The folder that holds task, rewrite and res200k."""

    def __post_init__(self) -> None:
        if not self.results.is_dir():
            raise InputError(f"{self.results}: expected a folder of stored results, found none; give lab/results")
        if self.data is not None and not self.data.is_dir():
            raise InputError(f"data: expected a folder that holds task, rewrite or res200k, found none at {self.data}")


@dataclass(frozen=True, slots=True)
class Report:
    """What was written, and what is not in it."""

    page: Path
    missing: Mapping[str, str]
    """By the part's name, why it is left out."""


def write_report(request: ReportRequest) -> Report:
    """Return where report.html is; report.md and the pictures are beside it."""
    source = _read(request)
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{request.out}: cannot be made the output folder: {error.strerror}") from None
    sections: list[Section] = []
    missing: dict[str, str] = {}
    for name, make in SECTIONS.items():
        try:
            sections.append(make(source))
        except MissingPartError as reason:
            missing[name] = str(reason)
    if not sections:
        example = f"{EMBEDDED}/task-test-{OWN_VARIANT}.json"
        raise InputError(f"{request.results}: expected results such as {example}, found none")
    commit = git_commit()
    made = f"Made by teo-lab report, version {__version__}" + (f", commit {commit[:12]}." if commit else ".")
    write_text(request.out / MARKDOWN, format_markdown(sections, missing, made))
    write_text(request.out / HTML, format_html(sections, missing, made, request.out))
    return Report(request.out / HTML, missing)


def _read(request: ReportRequest) -> ReportSource:
    results = request.results.resolve()
    published = results / "published.json"
    source = ReportSource(
        results=results,
        out=request.out,
        published=read_published(published) if published.is_file() else (),
        ours=sorted(read_ours(results), key=rank),
        data=request.data,
        own_predictions=bool(request.predictions),
    )
    systems: list[PredictedSystem] = (
        read_predictions(request.predictions)
        if request.predictions
        else [
            read_stored(results, stored, request.data)
            for dataset in PAPER_DATASETS
            for stored in source.tested(dataset, EMBEDDED, OWN_VARIANT)
        ]
    )
    return replace(source, systems=systems)
