"""`teo data`: the datasets of the field: list, download, count, convert, and derive edits."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from teo.cli.help import add_verb
from teo.cli.options import PUBLISHED, DatasetArgument, PathArgument, SplitOption
from teo.cli.output import echo_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from teo.data import Loaded, Skipped

data_app = typer.Typer(help="Download, count and convert datasets.", no_args_is_help=True)

_SHOWN_SKIPPED = 10


class OperationOrder(StrEnum):
    """The order of the operations in the paper's string."""

    POSITION = "position"
    INSERTIONS_FIRST = "insertions-first"


Out = Annotated[Path, typer.Argument(help="The JSONL file to write; - is standard output.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at malformed rows instead of skipping them.")]
HistoryOption = Annotated[
    str | None, typer.Option(help="TASK only: full (the whole history) or last-two (turns).", metavar="NAME")
]
FormsOption = Annotated[
    str | None, typer.Option(help="TASK only: one (incomplete version of each turn) or both.", metavar="NAME")
]


def stats(
    name: DatasetArgument,
    path: PathArgument,
    *,
    strict: Strict = False,
    history: HistoryOption = None,
    forms: FormsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Count rows, lengths and edits, beside the paper's figures."""
    from teo.data.stats import dataset_stats, format_stats

    result = dataset_stats(name, path, strict=strict, **_options(history, forms))
    _report_skipped(result.skipped)
    if as_json:
        echo_json(result.to_dict(), indent=1)
    else:
        typer.echo(format_stats(result))


def convert(
    name: DatasetArgument,
    path: PathArgument,
    out: Out,
    *,
    split: SplitOption = "all",
    strict: Strict = False,
    history: HistoryOption = None,
    forms: FormsOption = None,
) -> None:
    """Write the rows as JSON lines: id, history, utterance, rewrite."""
    _require_apart(out, path)
    loaded = _load(name, path, split, strict, _options(history, forms))
    _write(out, (row.to_dict() for row in loaded.rows))


def edits(
    name: DatasetArgument,
    path: PathArgument,
    out: Out,
    *,
    split: SplitOption = "all",
    order: Annotated[
        OperationOrder, typer.Option(help="By position, or insertions first as in equation 2 of the paper.")
    ] = OperationOrder.POSITION,
    strict: Strict = False,
    history: HistoryOption = None,
    forms: FormsOption = None,
) -> None:
    """Write the rows with their derived operations and edits."""
    from teo.data.row import edit_record

    _require_apart(out, path)
    loaded = _load(name, path, split, strict, _options(history, forms))
    _write(out, (edit_record(row, order.value) for row in loaded.rows))


def list_datasets() -> None:
    """List the datasets with language, licence and address."""
    from teo.data.registry import REGISTRY

    for dataset in REGISTRY.values():
        typer.echo(f"{dataset.name:<10}{dataset.language:<4}{dataset.licence:<14}{dataset.page}")


def download(
    name: Annotated[str, typer.Argument(help=f"Dataset: {PUBLISHED}.")],
    to: Annotated[Path | None, typer.Option("--to", help="Folder for the files; by default ./NAME.")] = None,
) -> None:
    """Download a dataset and check it.

    An unfinished file is resumed. What is not public is named, with the address to ask at.
    """
    from teo.data.download import download_dataset
    from teo.data.registry import find_dataset

    dataset = find_dataset(name)
    folder = to or Path(name)
    typer.echo(f"{dataset.title}, licence: {dataset.licence}, published at {dataset.page}", err=True)
    typer.echo(f"please cite: {dataset.citation}", err=True)
    try:
        files = download_dataset(dataset, folder)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; to resume, run the command again (the part so far is in {folder})", err=True)
        raise typer.Exit(130) from None
    for file in files:
        typer.echo(str(file))
    if dataset.remark:
        typer.echo(f"not downloaded: {dataset.remark}", err=True)


for _name, _verb in (
    ("list", list_datasets),
    ("download", download),
    ("stats", stats),
    ("convert", convert),
    ("edits", edits),
):
    add_verb(data_app, _name, _verb, f"data {_name}")


def _options(history: str | None, forms: str | None) -> dict[str, str]:
    """Return the options that the user chose; for the others the reader has defaults."""
    chosen = {"history": history, "forms": forms}
    return {name: value for name, value in chosen.items() if value is not None}


def _load(name: str, path: Path, split: str, strict: bool, options: Mapping[str, str]) -> Loaded:
    from teo.data import load_rows

    loaded = load_rows(name, path, split, strict=strict, **options)
    _report_skipped(loaded.skipped)
    return loaded


def _report_skipped(skipped: tuple[Skipped, ...]) -> None:
    """Report skipped rows on stderr: the first few by name, and how many there are."""
    for item in skipped[:_SHOWN_SKIPPED]:
        typer.echo(f"skipped {item}", err=True)
    if skipped:
        typer.echo(f"{len(skipped)} malformed rows skipped (--strict makes them an error)", err=True)


def _require_apart(out: Path, source: Path) -> None:
    """Raise if the file to write is the one that is read, or lies in the folder that is read."""
    from teo.errors import InputError

    target, read = out.resolve(), source.resolve()
    if str(out) == "-" or not target.is_relative_to(read):
        return
    found = "the file that is read" if target == read else f"a file in the folder that is read, {source}"
    raise InputError(f"{out}: expected a file outside the data that is read, found {found}; write elsewhere")


def _write(out: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write the records to a file or to standard output."""
    from teo.files import json_line, write_jsonl

    if str(out) == "-":
        for record in records:
            typer.echo(json_line(record).encode(), nl=False)
        return
    count = write_jsonl(out, records)
    typer.echo(f"{count} rows written to {out}", err=True)
