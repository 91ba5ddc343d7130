"""Stage 2 as a judge of stage 1's proposals: an experiment with a stop rule.

A row's candidates are the rewrites of the eight best placed operations (`fast`), the four best free rewrites (`direct`)
and the utterance itself. The dialogue is encoded once; one pass of the decoder goes over all candidates side by side; a
small head scores each from its states. The softmax over the candidates, and over "none of them", is the confidence.
The judge learns from proposals for rows that their proposer has not seen: two proposers, each trained on half of the
training rows, propose for the other half. Development candidates come from a third one, trained on both halves. Test
rows are never read.

    python benchmarks/judge.py all --data data --out runs/judge

Stop rule: the judge is left where it gains less than 1.5 EM over `fast`, or where the area under risk and coverage does
not shrink, on REWRITE or on TASK. It is read off `unseen`, the mean of two judges that start from the weights of a
proposer and learn from the rows that this proposer has not seen; two against one, so the rule is generous. Beside it:

    unseen0, unseen1   each of the two alone
    states             as unseen0, but the head gets no log-probabilities of the candidates, only the decoder's states
    fresh              from the pretrained base, on all rows
    seen               from the third proposer, on all rows, which it has seen: what leaking would do
    encoder            from the base, on all rows; the encoder reads dialogue and candidate together, at tenfold cost
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from judge_model import Judging, fit, load_judge, probabilities, read_items
from judge_report import RULED, report, to_text
from teo.alignment import derive_edits
from teo.data import load_rows
from teo.data.row import Row
from teo.errors import TeoError
from teo.files import write_json, write_jsonl
from teo.layouts import Pieces, stage1_source, text_of
from teo.placement import execute_pieces, placed_pieces
from teo.runtime.torch_codec import Codec, load_tokenizer
from teo.runtime.torch_generator import TorchGenerator, choose_device, load_model
from teo.stages import Stage, fit_dialogue
from teo.training.config import (
    DataSettings,
    EvaluationSettings,
    ModelSettings,
    OptimisationSettings,
    OutputSettings,
    PerturbationSettings,
    TrainConfig,
)
from teo.training.examples import PROMPTS
from teo.training.finetune import train
from teo.units import is_exact_match, scoring_units

logger = logging.getLogger("judge")

DATASETS: dict[str, dict[str, str]] = {"rewrite": {}, "task": {"forms": "both"}}
"""The datasets and the options of their training rows."""
REPEATS = {"rewrite": 1, "task": 2}
"""How often their rows are seen in an epoch."""
BEAMS = {"fast": 8, "direct": 4}
PROPOSERS = {"fold0": (0,), "fold1": (1,), "full": (0, 1)}
"""The halves that each proposer learns from; it proposes for the other one, the last for the development rows."""
JUDGES = {
    "unseen0": Judging("fold0", (1,), epochs=3),
    "unseen1": Judging("fold1", (0,), epochs=3),
    "states": Judging("fold0", (1,), epochs=3, scores=False),
    "fresh": Judging("", rate=2.5e-4),
    "seen": Judging("full"),
    "encoder": Judging("", rate=2e-4, reads="encoder"),
}
UNSEEN = ("unseen0", "unseen1")
SOURCE_LIMIT, TARGET_LIMIT = 256, 96
LONGEST = {"fast": 32, "direct": 48}
"""Tokens of a candidate at most; of the training rows one in a thousand needs more."""


def split_rows(options: argparse.Namespace) -> None:
    """Write the halves of the training rows and the development rows; rows of one history stay together."""
    dev: list[Row] = []
    for name, extra in DATASETS.items():
        halves: tuple[list[Row], list[Row]] = ([], [])
        for row in _read(name, options.data / name, "train", options.limit, **extra):
            group = row.id.split("-")[1] if name == "task" else "\n".join(row.dialogue.history)
            halves[zlib.crc32(group.encode()) % 2].append(row)
        for half, rows in enumerate(halves):
            write_jsonl(options.out / f"half{half}-{name}.jsonl", (row.to_dict() for row in rows))
        dev += _read(name, options.data / name, "dev", options.limit)
    write_jsonl(options.out / "dev.jsonl", (row.to_dict() for row in dev))


def _read(name: str, path: Path, split: str, limit: int = 0, **options: str) -> list[Row]:
    return list(load_rows(name, path, split, strict=False, **options).rows[: limit or None])


def propose(options: argparse.Namespace, name: str) -> None:
    """Train a proposer and write its candidates for the rows that it has not seen, each with two forced scores."""
    train(_proposer_config(options, name))
    half = "dev" if name == "full" else "half1" if name == "fold0" else "half0"
    rows = [row for file in sorted(options.out.glob(f"{half}*.jsonl")) for row in _read("jsonl", file, "all")]
    stages, codec = _load_stages(options, name)
    sources = [stage1_source(fit_dialogue(stages["fast"].generator, row.dialogue)[0]) for row in rows]
    texts = {}
    for role, count in BEAMS.items():
        texts[role] = stages[role].generate_several(sources, count)
        logger.info("%s: %d rows, beams of %d by %s", name, len(rows), count, role)
    records: list[dict[str, Any]] = []
    for row, source, fast, direct in zip(rows, sources, texts["fast"], texts["direct"], strict=True):
        placed = [execute_pieces(text.pieces, row.dialogue.utterance).text for text in fast]
        listed = list_candidates(row, [*placed, *(text_of(text.pieces).strip() for text in direct)])
        records.append({**row.to_dict(), "source": codec.encode(source), "candidates": listed})
    _force(stages, records, sources)
    logger.info("%s: forced scores", name)
    if name == "full":
        for record, row, text in zip(records, rows, stages["fast"].generate(sources), strict=True):
            greedy = execute_pieces(text.pieces, row.dialogue.utterance).text
            record["greedy"] = {"right": _is_right(greedy, row), "score": text.score, "first": text.first_score}
    write_jsonl(options.out / f"candidates-{half}.jsonl", records)


def _load_stages(options: argparse.Namespace, name: str) -> tuple[dict[str, Stage], Codec]:
    """Return the two roles of a proposer and its codec."""
    device = choose_device(options.device)
    if device != "cpu":
        torch.cuda.empty_cache()  # what training held: other proposers run beside this one
    model = load_model(options.out / name / "weights", torch.float32 if device == "cpu" else torch.bfloat16)
    codec = Codec(load_tokenizer(options.out / name / "weights"), model.config)
    limits = {"source_limit": SOURCE_LIMIT, "batch_size": options.beams}
    stages = {}
    for role, longest in LONGEST.items():
        generator = TorchGenerator(model, codec, device=device, max_new_tokens=longest, **limits)
        stages[role] = Stage(generator, PROMPTS[role])
    return stages, codec


def list_candidates(row: Row, texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the distinct texts in their order, and the utterance among them; texts without a unit are left out."""
    distinct: dict[tuple[str, ...], str] = {}
    for text in (*texts, row.dialogue.utterance):
        if units := tuple(scoring_units(text)):
            distinct.setdefault(units, text)
    return [{"text": text, "right": _is_right(text, row)} for text in distinct.values()]


def _is_right(text: str, row: Row) -> bool:
    return any(is_exact_match(text, reference) for reference in (row.rewrite, *row.references))


def _force(stages: dict[str, Stage], records: Sequence[dict[str, Any]], sources: Sequence[Pieces]) -> None:
    """Add to each candidate the log-probability that each role gives to it."""
    pairs = [(k, candidate) for k, record in enumerate(records) for candidate in record["candidates"]]
    utterances = [records[k]["utterance"] for k, _ in pairs]
    texts = [candidate["text"] for _, candidate in pairs]
    placed = [placed_pieces(derive_edits(old, new), old) for old, new in zip(utterances, texts, strict=True)]
    read = [sources[k] for k, _ in pairs]
    wanted: dict[str, list[Pieces]] = {"fast": placed, "direct": [(text,) for text in texts]}
    for role, targets in wanted.items():
        for (_, candidate), score in zip(pairs, stages[role].score(read, targets), strict=True):
            candidate[role] = round(score, 4)


def _proposer_config(options: argparse.Namespace, name: str) -> TrainConfig:
    """Return the shipped recipe on some halves; half the rows come in half the batch, so that updates are as many."""
    halves = PROPOSERS[name]
    paths = {str(options.out / f"half{half}-{dataset}.jsonl"): dataset for half in halves for dataset in DATASETS}
    return TrainConfig(
        output=str(options.out / name),
        roles=("fused", "direct", "fast"),
        shared=True,
        packed=True,
        overwrite=True,
        device=options.device,
        model=ModelSettings(options.base, source_limit=SOURCE_LIMIT, target_limit=TARGET_LIMIT, dropout=0.1),
        data=tuple(
            DataSettings("jsonl", path, train="all", dev="", repeat=REPEATS[dataset]) for path, dataset in paths.items()
        ),
        perturbation=PerturbationSettings(prob_p=0.4),
        optimisation=OptimisationSettings(
            epochs=options.epochs,
            batch_size=128 * len(halves),
            learning_rate=options.rate,
            warmup=0.06,
            workers=options.workers,
        ),
        evaluation=EvaluationSettings(every=0),
        writing=OutputSettings(checkpoint_epochs=0, plots=False),
    )


def judge(options: argparse.Namespace, name: str) -> None:
    """Fit a judge and write the probabilities that it gives to the candidates of the development rows."""
    settings = JUDGES[name]
    device = torch.device(choose_device(options.device))
    start = str(options.out / settings.start / "weights") if settings.start else options.base
    model, codec = load_judge(settings, start)
    halves = [_read_records(options.out, f"candidates-half{half}") for half in settings.halves]
    records = [row for half in halves for row in half for _ in range(REPEATS[row["id"].split("-")[0]])]
    dev = _read_records(options.out, "candidates-dev")
    items, dev_items = (read_items(part, codec, settings.reads) for part in (records, dev))
    logger.info("%s: %d rows", name, len(items))
    for epoch, loss in enumerate(fit(model, items, device), 1):
        found = probabilities(model, dev_items, device)
        right = [record["candidates"][int(np.argmax(row))]["right"] for record, row in zip(dev, found, strict=True)]
        logger.info("%s: epoch %d, loss %.4f, development EM %.4f", name, epoch, loss, float(np.mean(right)))
    rows = zip(dev, found, strict=True)
    write_jsonl(options.out / f"judged-{name}.jsonl", ({"id": record["id"], "p": row} for record, row in rows))


def _read_records(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def summarise(options: argparse.Namespace) -> None:
    """Write and print what the judges are worth on the development rows."""
    judged = {name: [row["p"] for row in _read_records(options.out, f"judged-{name}")] for name in options.judges}
    pairs = zip(*(judged[name] for name in UNSEEN), strict=True)
    both = [[(a + b) / 2 for a, b in zip(*pair, strict=True)] for pair in pairs]
    summary = report(_read_records(options.out, "candidates-dev"), {RULED: both, **judged})
    write_json(options.out / "summary.json", {**summary, "seconds": _read_times(options.out)})
    print(to_text(summary))


def run_all(options: argparse.Namespace) -> None:
    """Run the whole experiment: the proposers beside each other, then the judges, then the report."""
    options.out.mkdir(parents=True, exist_ok=True)
    split_rows(options)
    _beside(options, "propose", PROPOSERS)
    _beside(options, "judge", options.judges)
    summarise(options)


def _beside(options: argparse.Namespace, verb: str, names: Iterable[str]) -> None:
    """Run a verb for each name in a process of its own, all at once; their logs and times stay in the folder."""
    began = time.monotonic()
    running = {}
    for name in names:
        command = [sys.executable, __file__, verb, name, *sys.argv[2:]]
        with (options.out / f"{verb}-{name}.log").open("w", encoding="utf-8") as log:
            running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    for name, process in running.items():
        status = process.wait()
        if status:
            for other in running.values():
                other.terminate()
            log_text = (options.out / f"{verb}-{name}.log").read_text(encoding="utf-8")
            raise TeoError(f"{verb} {name}: expected exit status 0, found {status}; its log ends:\n{log_text[-2000:]}")
    seconds = {**_read_times(options.out), verb: round(time.monotonic() - began, 1)}
    write_json(options.out / "seconds.json", seconds)
    logger.info("%s: %.0f s", verb, seconds[verb])


def _read_times(folder: Path) -> dict[str, float]:
    file = folder / "seconds.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def main() -> None:
    """Run all of the experiment or one part of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("all", "propose", "judge", "report"))
    parser.add_argument("name", nargs="?", help="which proposer or judge")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds rewrite/ and task/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", default="teo-base", help="backbone to start from")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--epochs", type=int, default=5, help="of a proposer")
    parser.add_argument("--rate", type=float, default=2.5e-4, help="peak learning rate of a proposer")
    parser.add_argument("--beams", type=int, default=1536, help="beams that are extended at once")
    parser.add_argument("--workers", type=int, default=5, help="processes that prepare the batches of a proposer")
    parser.add_argument(
        "--judges", nargs="+", choices=JUDGES, default=list(JUDGES), help="unseen0 and unseen1 at least"
    )
    parser.add_argument("--limit", type=int, default=0, help="first rows of each dataset only, for a rehearsal")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    if options.part == "all":
        run_all(options)
    elif options.part == "report":
        summarise(options)
    else:
        {"propose": propose, "judge": judge}[options.part](options, options.name)


if __name__ == "__main__":
    main()
