"""The paper's backbones, exported: how many rewrites stay the same, and how fast they are against transformers.

    python benchmarks/families.py rewrite=data/rewrite --out benchmarks/out

A tiny BART and a tiny T5 learn the generated copy task in two stages, as configs/smoke.toml does; each is exported in
float32 and in int8 and compared with torch on rows it has not seen. Then a model of BART-base's shape with random
weights makes two passes over the true lengths of a dataset's rows, in transformers and exported, by turns in one run.
The figures go to kept.json and race.json under --out; without a dataset there is no race.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latency import named
from race import NEVER, Contestant, Work, make_work, race, weights_of
from teo.data import load_rows
from teo.errors import TeoError
from teo.files import write_json
from teo.loading import ModelFolder, Role, locate
from teo.runtime.onnx_generator import OnnxGenerator
from teo.runtime.search import search_greedily

EPOCHS = {"bart": 4, "t5": 12}
"""How long each family takes to learn the copy task."""
FORMS = {"none": "float32", "int8": "int8"}
_CONFIG = Path(__file__).resolve().parents[1] / "configs" / "smoke.toml"


class TwoPassExported:
    """Two passes of an exported model, as the paper's system makes them; see `baselines.TwoPassBart`."""

    def __init__(self, folder: Path, threads: int, form: str) -> None:
        self.generator = OnnxGenerator(folder / "onnx", threads=threads, source_limit=512)
        self.name = f"two-pass BART-base, exported {form}, {threads} thread{'s' if threads > 1 else ''}"

    def do(self, rows: Sequence[Work]) -> None:
        """Generate operations, then encode them too and generate the rewrite."""
        self._generate([row.source for row in rows], [row.operations for row in rows])
        longer = [(*row.source, *row.source[: row.operations]) for row in rows]
        self._generate(longer, [row.rewrite for row in rows])

    def _generate(self, sources: Sequence[tuple[int, ...]], limits: Sequence[int]) -> None:
        start = [self.generator.codec.decoder_start()] * len(sources)
        search_greedily(self.generator.read(sources), start, limits, NEVER)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the figures, and write them where --out says."""
    options = _read_options(arguments)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.families:
            found["kept"] = {name: keep_texts(name, Path(folder), options) for name in options.families}
        if options.dataset is not None:
            found["race"] = _race(Path(folder), options)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for part, figures in found.items():
            write_json(options.out / f"{part}.json", figures)
    print(json.dumps(found, indent=2))


def keep_texts(family: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what exporting a family costs, by form: a tiny model of it is trained, exported and compared."""
    from teo.export.export import export_model, measure_loss
    from teo.training.config import read_config
    from teo.training.finetune import train

    trained = folder / family
    changes = [
        f"output={trained}",
        'roles=["stage1","stage2"]',
        f"model.random.family={family}",
        f"optimisation.epochs={EPOCHS[family]}",
        "evaluation.every=0",
        "writing.plots=false",
    ]
    train(read_config(_CONFIG, [*changes, *options.set]))
    rows = load_rows("jsonl", trained / "training" / "data" / "synthetic", "test").rows[: options.rows]
    return {
        name: measure_loss(
            trained, export_model(trained, folder / f"{family}-{form}", quantize=form).path, rows
        ).to_dict()
        for form, name in FORMS.items()
    }


def _race(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from baselines import TwoPassBart, make_bart
    from teo.export.export import export_model
    from teo.training.backbones import build_random
    from teo.training.config import RandomModel
    from teo.training.saving import save_weights

    _, codec = build_random(RandomModel(family="bart", width=16, layers=1, heads=2), ["any text will do"])
    save_weights(make_bart(), codec, folder / "base" / "weights")
    ModelFolder({"direct": Role("weights")}, source_limit=512).save(folder / "base")
    systems: list[Contestant] = [TwoPassBart(threads) for threads in options.threads]
    for form, name in FORMS.items():
        exported = export_model(folder / "base", folder / f"base-{form}", quantize=form).path
        systems += [TwoPassExported(exported, threads, name) for threads in options.threads]
    name, path = named(options.dataset)
    rows = load_rows(name, path, options.split).rows[: options.race_rows]
    work = make_work(OnnxGenerator(weights_of(locate(None)), threads=1), rows)
    report = race(systems, work, rounds=options.rounds, batch_size=options.batch_size, say=_say)
    report.facts |= {"data": name, "split": options.split}
    return report.to_dict()


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", metavar="NAME=PATH", help="race over the lengths of this dataset's rows")
    parser.add_argument("--split", default="test")
    parser.add_argument("--families", nargs="*", default=list(EPOCHS), metavar="NAME", help="bart, t5 or none")
    parser.add_argument("--rows", type=int, default=200, help="test rows of the copy task to compare on")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="further settings of the training")
    parser.add_argument("--race-rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7, help="the systems take turns in each")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, help="folder for the figures")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except TeoError as error:
        sys.exit(str(error))
