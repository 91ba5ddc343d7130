"""Measure batch rewriting on a GPU: rows a second by batch size, in float32 and bfloat16, for one process.

    python benchmarks/gpu_batch.py runs/mine --out lab/results/scale

The model is a trained folder (torch weights); an exported one runs on the CPU alone. The rows are those of
benchmarks/everyday, or of a JSONL file, repeated with other names. The time is that of `teo batch`, from the file that
is read to the file that is written, after a first part that warms up. It needs torch, transformers, tokenizers, numpy
and this project.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from batch_rows import make_rows
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.files import write_json, write_jsonl
from teo.scale.inputs import plan_input
from teo.scale.worker import BatchTask, ModelChoice, Worker

EVERYDAY = Path(__file__).parent / "everyday"


def main() -> None:
    """Measure every size in both precisions, print a line for each, and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a trained model folder")
    parser.add_argument("--rows", type=int, default=16_384, help="rows that are timed at each size")
    parser.add_argument("--data", type=Path, help="JSONL rows with history, utterance and rewrite")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128, 256, 512, 1024, 2048])
    parser.add_argument("--variant", help="the pipeline; the model's own by default")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--out", type=Path, help="folder for gpu.json")
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if given.device.startswith("cuda") else given.device
    result: dict[str, Any] = {"device": name, "rows": given.rows, "torch": torch.__version__, "runs": []}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_jsonl(work / "rows.jsonl", make_rows(read_rows(given.data), given.rows + part_rows(max(given.sizes))))
        texts: dict[str, list[str]] = {}
        for dtype in given.dtypes:
            for size in given.sizes:
                choice = ModelChoice(
                    given.model, given.variant, "torch", given.device, bf16=dtype == "bfloat16", batch_size=size
                )
                run, texts[dtype] = measure(work, choice, given.rows)
                result["runs"].append({"dtype": dtype, "batch_size": size, **run})
                print(json.dumps(result["runs"][-1]), flush=True)
        if len(texts) > 1:
            pairs = list(zip(*texts.values(), strict=True))
            result["same_rewrites"] = round(sum(len(set(pair)) == 1 for pair in pairs) / len(pairs), 4)
            print(json.dumps({"same_rewrites": result["same_rewrites"]}), flush=True)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        write_json(given.out / "gpu.json", result)


def measure(work: Path, choice: ModelChoice, rows: int) -> tuple[dict[str, Any], list[str]]:
    """Return rows a second and the most GPU memory of a batch size, and the rewrites."""
    on_gpu = choice.device.startswith("cuda")
    plan = plan_input(str(work / "rows.jsonl"), part_rows(choice.batch_size))
    output = work / "out"
    shutil.rmtree(output, ignore_errors=True)
    worker = Worker(BatchTask(str(work / "rows.jsonl"), str(output), plan.format, choice))
    worker.rewrite(plan.parts[0])  # loads the model and warms up
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    started, done = time.perf_counter(), 0
    for part in plan.parts[1:]:
        done += worker.rewrite(part).rows
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    figures = {"rows_per_second": round(done / seconds, 1), "rows": done, "seconds": round(seconds, 2)}
    if on_gpu:
        figures["memory_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    lines = [line for part in plan.parts for line in (output / f"{part.stem}.jsonl").read_text().splitlines()]
    return figures, [json.loads(line).get("rewrite", "") for line in lines][:rows]


def part_rows(size: int) -> int:
    """Return the rows of a part, the window in which rows are sorted: several batches."""
    return max(2048, 4 * size)


def read_rows(file: Path | None) -> list[Row]:
    """Return rows of a file, or those of the everyday benchmark."""
    files = [file] if file else sorted(EVERYDAY.glob("*.jsonl"))
    stored = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Row(str(number), Dialogue(tuple(row["history"]), row["utterance"]), _reference(row))
        for number, row in enumerate(stored)
    ]


def _reference(row: dict[str, Any]) -> str:
    return str(row.get("rewrite") or next(iter(row.get("rewrites", [])), row["utterance"]))


if __name__ == "__main__":
    main()
