"""`teo evaluate`: a variant's predictions on a dataset, its metrics and a report, in one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    *,
    data: Annotated[str, typer.Option(help="Dataset: rewrite, res200k, task, canard, followup or jsonl.")],
    path: Annotated[Path, typer.Option(help="The dataset's folder or its file.")],
    out: Annotated[Path, typer.Option(help="Folder for the results; a stopped run goes on where it was.")],
    split: Annotated[str, typer.Option(help="train, dev, train+dev, test or all (res200k also valid).")] = "test",
    model: Annotated[
        Path | None, typer.Option(help="A model folder that training or export wrote; the embedded one by default.")
    ] = None,
    variant: Annotated[
        str,
        typer.Option(
            help="teo, direct, gold, stage1, rfis, fast, fused, rerank, or all that the model can play.", metavar="NAME"
        ),
    ] = "teo",
    abstain: Annotated[
        bool, typer.Option("--abstain", help="Keep what the model's rules and thresholds keep, as teo rewrite does.")
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Only the first N rows.", metavar="N")] = None,
    batch_size: Annotated[int, typer.Option(help="Rows that the model reads at a time.", metavar="N")] = 32,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1; an exported model runs on the CPU.")] = "auto",
    bf16: Annotated[bool, typer.Option("--bf16", help="Half precision, on CUDA only.")] = False,
    seed: Annotated[int, typer.Option(help="For what is drawn at random (stage1's insertions).")] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the dataset, such as history=last-two.", metavar="NAME=VALUE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all metrics as JSON.")] = False,
) -> None:
    """Evaluate a variant: predictions.jsonl, metrics.json, report.md and flow.png go to the output folder."""
    from teo.errors import MissingExtraError
    from teo.evaluation.evaluate import Request, evaluate
    from teo.evaluation.every import EVERY, evaluate_every, format_variants
    from teo.evaluation.summary import read_options, summarise

    request = Request(
        data=data,
        path=path,
        out=out,
        split=split,
        model=model,
        variant=variant,
        limit=limit,
        batch_size=batch_size,
        device=device,
        bf16=bf16,
        seed=seed,
        options=read_options(option or ()),
        abstain=abstain,
    )
    try:
        if variant == EVERY:
            every = evaluate_every(request)
            typer.echo(json.dumps(every, ensure_ascii=False) if as_json else format_variants(every), nl=as_json)
            return
        metrics = evaluate(request)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise MissingExtraError("evaluating a model", error.name, "train") from None
    typer.echo(json.dumps(metrics, ensure_ascii=False) if as_json else summarise(metrics, out))
