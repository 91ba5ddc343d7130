"""A teacher for the small model: a pretrained decoder learns our rows, then writes dialogues with their rewrites.

    python tools/teacher.py prepare CONFIG FOLDER [--dialogues SHARD.jsonl.xz ...]
    python tools/teacher.py tune MODEL.gguf ROWS.jsonl TEACHER [--seconds 150]
    python tools/teacher.py rewrite TEACHER ROWS.jsonl OUT.jsonl
    python tools/teacher.py sample TEACHER OUT.jsonl --openings OPENINGS.jsonl [--count 500000]

`prepare` writes both files that the others need: FOLDER/rows.jsonl, the English training rows of a configuration with
their source (the teacher learns which style is whose, and samples in the style of `written`), and
FOLDER/openings.jsonl, turns with which sampled dialogues start: requests, written histories, runs of turns from shards.
Needs the extra `train` and, in practice, a GPU.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.files import write_jsonl
from teo.models.from_decoder import load_gguf
from teo.training.augmentation.dialogues import written_rows
from teo.training.augmentation.requests import read_requests
from teo.training.config import read_config
from teo.training.pretraining.streams import read_dialogues
from teo.training.rows import read_rows
from teo.training.saving import whole_folder
from teo.training.teacher.notation import Notation
from teo.training.teacher.screen import ScreenLimits, find_flaw
from teo.training.teacher.streams import Sampled, SamplingSettings, Streams
from teo.training.teacher.tune import TuneSettings, tune
from teo.units import holds_cjk

STYLE = "written"
FREE = 0.25
"""Share of the sampled dialogues whose first turn is the teacher's own."""
REQUESTS, RUNS, WHOLE = 45_000, 70_000, 4
"""Openings that are single requests, and runs of turns of real dialogues; copies of a whole written history."""
LONGEST = 420
"""Characters of a run, at most."""
KEPT = 0.4
"""Rows that stay as they are, at most, for each that changes."""
ROOM = 40
"""Tokens of a text that an opening leaves free, at least."""
WORKERS = 8
_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def make_row(fields: dict[str, Any]) -> Row:
    """Return a row of a file's fields."""
    return Row(str(fields.get("id", "")), Dialogue(tuple(fields["history"]), fields["utterance"]), fields["rewrite"])


def prepare(args: argparse.Namespace) -> None:
    """Write the rows to learn and the openings to sample from."""
    config = read_config(args.config, args.set or [])
    rows = read_rows([replace(data, repeat=1) for data in config.data], args.folder, config.augmentation, writes=False)
    args.folder.mkdir(parents=True, exist_ok=True)
    names = {str(number): data.name for number, data in enumerate(config.data)} | {"dialogues": STYLE}
    english = [row for row in rows.train if not holds_cjk("".join((*row.dialogue.history, row.rewrite)))]
    kinds = [re.split("[:-]", row.id)[0] for row in english]
    sourced = ({**row.to_dict(), "source": names.get(kind, kind)} for row, kind in zip(english, kinds, strict=True))
    write_jsonl(args.folder / "rows.jsonl", sourced)
    rng = random.Random(args.seed)
    openings = list(draw_openings(config.augmentation.requests, args.dialogues, rng))
    rng.shuffle(openings)
    write_jsonl(args.folder / "openings.jsonl", ({"history": turns} for turns in openings))
    logging.info("%d rows, %d openings", len(english), len(openings))


def draw_openings(requests: str, shards: Sequence[Path], rng: random.Random) -> Iterator[list[str]]:
    """Yield single requests, histories of written dialogues (whole, and their first turn), and runs of turns."""
    texts = [request.text for request in read_requests(Path(requests), "en")] if requests else []
    yield from ([text] for text in rng.sample(texts, min(REQUESTS, len(texts))))
    for history in dict.fromkeys(row.history for row in written_rows("en")):
        yield from [list(history)] * WHOLE
        yield list(history[:1])
    runs = [turns for shard in shards for turns in _runs(shard, rng)]
    yield from rng.sample(runs, min(RUNS, len(runs)))


def _runs(shard: Path, rng: random.Random) -> Iterator[list[str]]:
    for turns in read_dialogues(shard):
        first = rng.randrange(len(turns))
        run = turns[first : first + rng.choice((1, 2, 2, 3, 4))]
        if sum(map(len, run)) < LONGEST and all(turn.strip() for turn in run):
            yield run


def load_teacher(folder: Path) -> tuple[Any, Notation]:
    """Return a tuned model and its notation."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    return model.to(_DEVICE).eval(), Notation(Tokenizer.from_file(str(folder / "tokenizer.json")))


def tune_teacher(args: argparse.Namespace) -> None:
    """Teach the rows to the model of a GGUF file and save it."""
    state, config, tokenizer = load_gguf(args.model)
    config.quantization_config = None
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config.to_dict()))
    model.load_state_dict(state)
    notation = Notation(tokenizer)
    rows = read_jsonl(args.rows)
    texts = [notation.write(fields["source"], make_row(fields)) for fields in rows]
    texts = [text for text in texts if len(text) <= args.length]
    logging.info("%d of %d rows fit, %d tokens", len(texts), len(rows), sum(map(len, texts)))
    settings = TuneSettings(args.seconds, args.learning_rate, batch_tokens=args.batch_tokens, seed=args.seed)
    updates = tune(model.to(_DEVICE), texts, notation.marks.rewrite, settings)
    logging.info("%d updates", updates)
    with whole_folder(args.teacher) as written:
        model.to(torch.bfloat16).save_pretrained(written)
        tokenizer.save(str(written / "tokenizer.json"))


def rewrite_rows(args: argparse.Namespace) -> None:
    """Write what the teacher makes of the rows, in their order."""
    model, notation = load_teacher(args.teacher)
    rows = read_jsonl(args.rows)
    dialogues = [Dialogue(tuple(fields["history"]), fields["utterance"]) for fields in rows]
    styles = [fields.get("source", STYLE) for fields in rows]
    prompts = [notation.ask(style, dialogue) for style, dialogue in zip(styles, dialogues, strict=True)]
    settings = SamplingSettings(columns=min(args.columns, len(rows)), length=args.length)
    found = {each.prompt: each for each in Streams(model, notation.marks, prompts, settings, _DEVICE).run(64)}
    write_jsonl(args.out, (_answered(fields, found.get(number), notation) for number, fields in enumerate(rows)))


def _answered(fields: dict[str, Any], text: Sampled | None, notation: Notation) -> dict[str, Any]:
    """Return a row's fields with the teacher's rewrite; the utterance where there is none."""
    read = notation.read(text.ids) if text else None
    return {
        **fields,
        "prediction": read[1] if read else fields["utterance"],
        "logprob": text.logprob if text else -99.0,
    }


def draw_prompts(notation: Notation, openings: Sequence[Sequence[str]], count: int, seed: int) -> list[list[int]]:
    """Return starts of dialogues: some free, the others with the turns of an opening."""
    rng = random.Random(seed)
    free = notation.begin(STYLE)
    starts = [notation.begin(STYLE, turns) for turns in openings]
    return [free if rng.random() < FREE else rng.choice(starts) for _ in range(count)]


def screen(tokenizer: str, texts: Sequence[Sampled]) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Return the texts that may be learned, as fields, and how many fell out for what."""
    notation, limits = Notation(Tokenizer.from_file(tokenizer)), ScreenLimits()
    taken, flaws = [], Counter[str]()
    for text in texts:
        read = notation.read(text.ids)
        flaw = "not whole" if read is None else find_flaw(*read, text.logprob, text.lowest, limits)
        flaws[flaw or "taken"] += 1
        if read is not None and flaw is None:
            fields = {"history": list(read[0].history), "utterance": read[0].utterance, "rewrite": read[1]}
            taken.append({**fields, "logprob": round(text.logprob, 3), "lowest": round(text.lowest, 3)})
    return taken, flaws


def sample_rows(args: argparse.Namespace) -> None:
    """Write sampled rows, none twice."""
    model, notation = load_teacher(args.teacher)
    torch.manual_seed(args.seed)
    openings = [fields["history"] for fields in read_jsonl(args.openings)]
    prompts = draw_prompts(notation, openings, args.count, args.seed)
    prompts = [prompt for prompt in prompts if len(prompt) < args.length - ROOM]
    settings = SamplingSettings(columns=args.columns, length=args.length)
    sampled = Streams(model, notation.marks, prompts, settings, _DEVICE).run(seconds=args.seconds)
    check = partial(screen, str(args.teacher / "tokenizer.json"))
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        write_jsonl(args.out, select(pool.imap(check, iter(partial(_part, sampled), []))))


def select(screened: Iterable[tuple[list[dict[str, Any]], Counter[str]]]) -> Iterator[dict[str, Any]]:
    """Yield the taken rows with an id, none twice, and log what fell out; too many that stay are left out."""
    flaws, seen, room = Counter[str](), set[tuple[str, ...]](), 0.0
    for taken, found in screened:
        flaws += found
        for fields in taken:
            key = (*fields["history"], fields["utterance"])
            kept = fields["rewrite"] == fields["utterance"]
            if key not in seen and not (kept and room < 1):
                seen.add(key)
                room += -1 if kept else KEPT
                yield {"id": f"sampled-{len(seen)}", **fields}
        logging.info("%d written; %s", len(seen), dict(flaws))


def _part(sampled: Iterator[Sampled]) -> list[Sampled]:
    return list(islice(sampled, 4096))


def main() -> None:
    """Read the arguments and run the command."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = _add(commands, "prepare", prepare, ["config", "folder"])
    command.add_argument("--dialogues", type=Path, nargs="*", default=[])
    command.add_argument("--set", nargs="*", help="key=value of the configuration")
    command = _add(commands, "tune", tune_teacher, ["model", "rows", "teacher"])
    command.add_argument("--length", type=int, default=448)
    command.add_argument("--seconds", type=float, default=150.0)
    command.add_argument("--learning-rate", type=float, default=4e-4)
    command.add_argument("--batch-tokens", type=int, default=32_768)
    command = _add(commands, "rewrite", rewrite_rows, ["teacher", "rows", "out"])
    command.add_argument("--length", type=int, default=448)
    command.add_argument("--columns", type=int, default=1024)
    command = _add(commands, "sample", sample_rows, ["teacher", "out"])
    command.add_argument("--openings", type=Path, required=True)
    command.add_argument("--count", type=int, default=500_000)
    command.add_argument("--seconds", type=float, default=150.0)
    command.add_argument("--length", type=int, default=224)
    command.add_argument("--columns", type=int, default=4096)
    args = parser.parse_args()
    args.run(args)


def _add(commands: Any, name: str, run: Callable[[argparse.Namespace], None], paths: Sequence[str]) -> Any:
    """Return a command with its paths and its seed."""
    command = commands.add_parser(name)
    for path in paths:
        command.add_argument(path, type=Path)
    command.add_argument("--seed", type=int, default=1)
    command.set_defaults(run=run)
    return command


if __name__ == "__main__":
    main()
