"""The teacher itself: a pretrained decoder of a GGUF file that is tuned to our rows, saved, and read again."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo.training.saving import whole_folder
from teo_lab.teacher.gguf import load_gguf
from teo_lab.teacher.notation import Notation
from teo_lab.teacher.tune import TuneSettings, tune

logger = logging.getLogger(__name__)


def choose_device() -> str:
    """Return the device that teachers run on: a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def tune_teacher(gguf: Path, rows: Path, out: Path, settings: TuneSettings, length: int = 448) -> int:
    """Teach rows of at most `length` tokens to the model of a GGUF file, save it, and return the number of updates."""
    state, config, tokenizer = load_gguf(gguf)
    config.quantization_config = None
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config.to_dict()))
    model.load_state_dict(state)
    notation = Notation(tokenizer)
    fields = read_fields(rows, "history", "utterance", "rewrite", "source")
    texts = [notation.write(each["source"], _row(each)) for each in fields]
    texts = [text for text in texts if len(text) <= length]
    logger.info("%d of %d rows fit, %d tokens", len(texts), len(fields), sum(map(len, texts)))
    updates = tune(model.to(choose_device()), texts, notation.marks.rewrite, settings)
    with whole_folder(out) as written:
        model.to(torch.bfloat16).save_pretrained(written)
        tokenizer.save(str(written / "tokenizer.json"))
    return updates


def load_teacher(folder: Path) -> tuple[Any, Notation]:
    """Return a tuned model, on its device, and its notation."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    return model.to(choose_device()).eval(), Notation(Tokenizer.from_file(str(folder / "tokenizer.json")))


def read_fields(path: Path, *names: str) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file, each of which has these fields."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected JSON lines with {', '.join(names)}")
    objects = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found = json.loads(line)
                missing = [name for name in names if name not in found]
            except (json.JSONDecodeError, TypeError):
                raise DataError(f"{path}:{number}: expected a JSON object, found {line.strip()[:60]!r}") from None
            if missing:
                raise DataError(f"{path}:{number}: expected the field {missing[0]}, found none")
            objects.append(found)
    return objects


def _row(fields: Mapping[str, Any]) -> Row:
    dialogue = Dialogue(tuple(fields["history"]), fields["utterance"])
    return Row(str(fields.get("id", "")), dialogue, fields["rewrite"])
