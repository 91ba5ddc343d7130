"""`teo evaluate`: what a model predicts on a dataset, its metrics and a report, in one folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teo.cli.endpoint import (
    BaseUrlOption,
    BodyOption,
    ConcurrencyOption,
    KeyOption,
    PriceInOption,
    PriceOutOption,
    ShotsOption,
    TimeoutOption,
    ask_endpoint,
    is_endpoint,
    summarise_endpoint,
)
from teo.cli.options import DatasetOption, DeviceOption, DtypeOption, PathOption, SplitOption
from teo.cli.output import echo_json
from teo.cli.training import training_libraries
from teo.errors import InputError

if TYPE_CHECKING:
    from teo.evaluation.evaluate import Request
    from teo.evaluation.measures import Evaluation


def evaluate(
    *,
    data: DatasetOption,
    path: PathOption,
    out: Annotated[Path, typer.Option(help="Folder for the results; a stopped run goes on where it was.")],
    split: SplitOption = "test",
    model: Annotated[
        str | None,
        typer.Option(
            help="A model folder that training or export wrote, a peer's folder, or openai:NAME with --base-url; the "
            "embedded one by default.",
            metavar="FOLDER",
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            help="A bare pipeline (teo, direct, fast, fused), an ablation (gold, stage1, rfis, rerank, copy), or all "
            "that the model can run; by default what teo rewrite does, rules and thresholds included.",
            metavar="NAME",
        ),
    ] = None,
    abstain: Annotated[
        bool, typer.Option("--abstain", help="With --variant: apply its rules and thresholds, as teo rewrite does.")
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Only the first N rows.", metavar="N")] = None,
    batch_size: Annotated[int, typer.Option(help="Rows that the model reads at a time.", metavar="N")] = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "float32",
    seed: Annotated[int, typer.Option(help="For what is drawn at random (stage1's insertions).")] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the dataset, such as history=last-two.", metavar="NAME=VALUE")
    ] = None,
    base_url: BaseUrlOption = None,
    shots: ShotsOption = 5,
    concurrency: ConcurrencyOption = 4,
    timeout: TimeoutOption = 60.0,
    body: BodyOption = None,
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    key_variable: KeyOption = "OPENAI_API_KEY",
    as_json: Annotated[bool, typer.Option("--json", help="Print all metrics as JSON.")] = False,
) -> None:
    """Evaluate a model: predictions.jsonl, metrics.json, report.md and flow.png go to the output folder."""
    from teo.evaluation.evaluate import EVERY, Request, evaluate, evaluate_every
    from teo.evaluation.report import format_variants, summarise
    from teo.loading import require_dtype
    from teo.study.peers.folder import is_peer

    if is_endpoint(model, base_url):
        if variant is not None or abstain:
            raise InputError("variant, abstain: expected none with openai:NAME, which has neither; leave them out")
        asked = ask_endpoint(
            model or "",
            base_url,
            key_variable=key_variable,
            timeout=timeout,
            body=body,
            **{"data": data, "path": path, "out": out, "split": split, "limit": limit, "seed": seed},
            **{"shots": shots, "concurrency": concurrency, "price_in": price_in, "price_out": price_out},
            options=read_options(option or ()),
        )
        if as_json:
            echo_json(asked.to_dict())
        else:
            typer.echo(summarise_endpoint(asked, out))
        return
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
    if variant == EVERY and not is_peer(model):
        every = evaluate_every(request)
        numbers = {name: evaluation.to_dict() for name, evaluation in every.items()}
        if as_json:
            echo_json(numbers)
        else:
            typer.echo(format_variants(every), nl=False)
        return
    evaluation = _evaluate_peer(request) if is_peer(model) else evaluate(request)
    if as_json:
        echo_json(evaluation.to_dict())
    else:
        typer.echo(summarise(evaluation, out))


def _evaluate_peer(request: Request) -> Evaluation:
    """Return the metrics of a peer's folder."""
    if request.variant is not None or request.abstain:
        raise InputError("variant, abstain: expected none with a peer, which has neither; leave them out")
    with training_libraries("evaluating a peer"):
        from teo.study.peers.evaluate import evaluate_peer

        return evaluate_peer(request)


def read_options(pairs: Iterable[str]) -> dict[str, str]:
    """Return NAME=VALUE pairs as a mapping."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"option: expected NAME=VALUE such as history=last-two, found '{pair}'")
        options[name] = value
    return options
