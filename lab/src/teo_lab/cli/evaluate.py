"""`teo-lab evaluate`: a language model behind an endpoint, or a baseline's folder, on a dataset.

Models of our own are evaluated by `teo evaluate`; all three write the same files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from teo.cli.evaluate import read_options
from teo.cli.options import DatasetOption, DeviceOption, DtypeOption, PathOption, SplitOption
from teo.cli.output import echo_json
from teo.cli.training import training_libraries
from teo.errors import InputError
from teo_lab.cli.endpoint import (
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

if TYPE_CHECKING:
    from teo.evaluation.measures import Evaluation


def evaluate(
    *,
    data: DatasetOption,
    path: PathOption,
    out: Annotated[Path, typer.Option(help="Folder for the results; a stopped run is resumed.")],
    model: Annotated[
        str,
        typer.Option(
            help="openai:NAME with --base-url, or the folder of a baseline.", metavar="NAME", show_default=False
        ),
    ] = "",
    split: SplitOption = "test",
    limit: Annotated[int | None, typer.Option(help="Only the first N rows.", metavar="N")] = None,
    batch_size: Annotated[int, typer.Option(help="Rows that a baseline encodes at a time.", metavar="N")] = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "float32",
    seed: Annotated[int, typer.Option(help="For the demonstrations of a language model.")] = 0,
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
    """Evaluate a language model or a baseline: predictions.jsonl, metrics.json and report.md go to the output folder.

    Example: teo-lab evaluate --data task --path data/task --model openai:NAME --base-url http://127.0.0.1:8080/v1
    --limit 100 --out runs/llm
    """
    from teo.evaluation.report import summarise

    shared = {"data": data, "path": path, "out": out, "split": split, "limit": limit, "seed": seed}
    options = read_options(option or ())
    if is_endpoint(model, base_url):
        evaluation = ask_endpoint(
            model,
            base_url,
            key_variable=key_variable,
            timeout=timeout,
            body=body,
            **shared,
            **{"shots": shots, "concurrency": concurrency, "price_in": price_in, "price_out": price_out},
            options=options,
        )
        summary = summarise_endpoint(evaluation, out)
    else:
        evaluation = _evaluate_baseline(model, dtype, **shared, options=options, batch_size=batch_size, device=device)
        summary = summarise(evaluation, out)
    if as_json:
        echo_json(evaluation.to_dict())
    else:
        typer.echo(summary)


def _evaluate_baseline(model: str, dtype: str, **settings: Any) -> Evaluation:
    """Return the metrics of a baseline's folder; another model is refused."""
    from teo.evaluation.evaluate import Request
    from teo.loading import require_dtype
    from teo_lab.baselines.folder import is_baseline

    if not model or not is_baseline(model):
        raise InputError(
            f"model: expected openai:NAME or the folder of a baseline, found {model or 'none'}; evaluate other models "
            "with teo evaluate"
        )
    request = Request(**settings, model=Path(model), bf16=require_dtype(dtype) == "bfloat16")
    with training_libraries("evaluating a baseline"):
        from teo_lab.baselines.evaluate import evaluate_baseline

        return evaluate_baseline(request)
