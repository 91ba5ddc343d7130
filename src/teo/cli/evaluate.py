"""`teo evaluate`: a model's predictions on a dataset, their metrics and a report, in one folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from teo.cli.options import DatasetOption, DeviceOption, DtypeOption, PathOption, SplitOption
from teo.cli.output import echo_json
from teo.errors import InputError


def evaluate(
    *,
    data: DatasetOption,
    path: PathOption,
    out: Annotated[Path, typer.Option(help="Folder for the results; a run that was stopped resumes.")],
    split: SplitOption = "test",
    model: Annotated[
        str | None,
        typer.Option(
            help="A trained or exported model folder; by default the embedded model.",
            metavar="FOLDER",
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            help="A pipeline (teo, direct, fast, fused) or an ablation (gold, stage1, rfis, rerank, copy) without "
            "rules and thresholds, or all that the model can run. By default: exactly what teo rewrite does.",
            metavar="NAME",
        ),
    ] = None,
    abstain: Annotated[
        bool, typer.Option("--abstain", help="With --variant: apply rules and thresholds as teo rewrite does.")
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Only the first N rows.", metavar="N")] = None,
    batch_size: Annotated[int, typer.Option(help="Rows per batch.", metavar="N")] = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "float32",
    seed: Annotated[int, typer.Option(help="Random seed (for the insertions of stage1).")] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the dataset, such as history=last-two.", metavar="NAME=VALUE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all metrics as JSON.")] = False,
) -> None:
    """Measure a model on a dataset.

    The output folder gets predictions.jsonl, metrics.json, report.md, and flow.png for two stages.
    """
    from teo.evaluation.evaluate import EVERY, Request, evaluate, evaluate_every
    from teo.evaluation.report import format_variants, summarise
    from teo.loading import require_dtype

    request = Request(
        data=data,
        path=path,
        out=out,
        split=split,
        model=None if model is None else Path(model),
        variant=variant,
        limit=limit,
        batch_size=batch_size,
        device=device,
        bf16=require_dtype(dtype) == "bfloat16",
        seed=seed,
        options=read_options(option or ()),
        abstain=abstain,
    )
    if variant == EVERY:
        every = evaluate_every(request)
        numbers = {name: evaluation.to_dict() for name, evaluation in every.items()}
        if as_json:
            echo_json(numbers)
        else:
            typer.echo(format_variants(every), nl=False)
        return
    evaluation = evaluate(request)
    if as_json:
        echo_json(evaluation.to_dict())
    else:
        typer.echo(summarise(evaluation, out))


def read_options(pairs: Iterable[str]) -> dict[str, str]:
    """Return NAME=VALUE pairs as a mapping."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"option: expected NAME=VALUE such as history=last-two, found '{pair}'")
        options[name] = value
    return options
