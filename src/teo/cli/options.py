"""The options that several verbs share: the model and its pipeline, a dataset, the device and precision of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PUBLISHED = "rewrite, res200k, task, canard or followup"
"""The datasets that are published; written out here, since importing the readers would slow down `teo --help`."""
DATASETS = "rewrite, res200k, task, canard, followup or jsonl (rows of your own)"
DATASET_HELP = f"Dataset: {DATASETS}."
PATH_HELP = "The dataset's folder or file."
SPLIT_HELP = "train, dev, train+dev, test or all (res200k also valid)."

ModelOption = Annotated[
    str | None, typer.Option(help="A model folder, or hub:owner/name; by default the embedded model.", metavar="MODEL")
]
VariantOption = Annotated[str | None, typer.Option(help="The pipeline; by default the model's own.", metavar="NAME")]
DatasetArgument = Annotated[str, typer.Argument(help=DATASET_HELP)]
PathArgument = Annotated[Path, typer.Argument(help=PATH_HELP)]
DatasetOption = Annotated[str, typer.Option(help=DATASET_HELP)]
PathOption = Annotated[Path, typer.Option(help=PATH_HELP)]
SplitOption = Annotated[str, typer.Option(help=SPLIT_HELP)]
DeviceOption = Annotated[
    str, typer.Option(help="Device for torch: auto, cpu, cuda or cuda:1; exported models run on the CPU.")
]
DtypeOption = Annotated[str, typer.Option(help="Precision for torch: float32, or bfloat16 on CUDA.")]
