"""What a run logs: losses and dev EM as JSON lines in a file, plain lines on stderr, and a count on a terminal."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from teo.errors import TeoError
from teo.files import json_line, read_finished_lines, write_jsonl

LOG = "log.jsonl"
EM = "eval_em"
"""The key of a line that holds dev EM; that of a role follows it as `eval_em_ROLE`."""

logger = logging.getLogger(__name__)


class RunLog:
    """Logs means over the last updates; waits for the GPU only then."""

    def __init__(self, folder: Path, every: int, steps: int, label: str = "", per_epoch: int = 0) -> None:
        self.path, self.every, self.steps, self.label, self.per_epoch = folder / LOG, every, steps, label, per_epoch
        self.figures: list[Tensor] = []
        """Losses and gradient norm of the updates since the last line."""
        self.tokens, self.since = 0, time.monotonic()

    def resume(self, step: int, evaluated: int, figures: list[Tensor]) -> None:
        """Drop the lines that were logged after the checkpoint, and take up its figures."""
        self.figures = figures
        if self.path.is_file():
            lines = _read(self.path)
            write_jsonl(self.path, [line for line in lines if line["step"] <= (evaluated if EM in line else step)])

    def add(self, step: int, tokens: int, rate: float, elapsed: float, figures: Tensor) -> None:
        """Take the figures of update `step`, counted from 1."""
        self.figures.append(figures)
        self.tokens += tokens
        self._count(step)
        if step % self.every:
            return
        decoder, masked, norm = self.require_finite(step)
        now = time.monotonic()
        line = {
            "step": step,
            "minutes": round(elapsed / 60, 2),
            "rate": float(f"{rate:.3g}"),
            "decoder_loss": round(decoder, 4),
            "masked_loss": round(masked, 4),
            "gradient_norm": round(norm, 3),
            "tokens_per_second": round(self.tokens / max(now - self.since, 1e-9)),
        }
        shown = f"loss {decoder:.4f}" + (f", masked {masked:.4f}" if masked else "")
        self._write(line, f"{shown}, lr {rate:.2e}, {line['tokens_per_second']:,} tokens/s")
        self.figures, self.tokens, self.since = [], 0, now

    def require_finite(self, step: int) -> list[float]:
        """Return the means of the figures since the last line; a run that diverged ends here."""
        means: list[float] = torch.stack(self.figures).mean(0).tolist() if self.figures else []
        if not all(map(math.isfinite, means)):
            raise TeoError(
                f"the loss or its gradient is not finite at update {step}; lower the learning rate, or switch bf16 off"
            )
        return means

    def add_scores(self, step: int, scores: Mapping[str, float]) -> None:
        """Take the dev EM of the weights after an update, by role and as a whole."""
        if scores:
            roles = [f"{name.removeprefix('em_')} {score:.4f}" for name, score in scores.items() if name != "em"]
            line = {"step": step, **{f"eval_{name}": score for name, score in scores.items()}}
            self._write(line, ", ".join([f"dev EM {scores['em']:.4f}", *roles]))

    def _write(self, line: Mapping[str, Any], shown: str) -> None:
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json_line(line))
        self.clear()
        epoch = f"epoch {line['step'] / self.per_epoch:.2f} " if self.per_epoch else ""
        logger.info("%s: %sstep %d: %s", self.label, epoch, line["step"], shown)

    def _count(self, step: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self.label}: {step}/{self.steps} updates")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the count off the terminal."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def read_history(folder: Path) -> list[dict[str, float]]:
    """Return the losses and dev EM that a run logged, by step."""
    lines = _read(folder / LOG)
    return [line if EM in line else {"step": line["step"], "loss": line["decoder_loss"]} for line in lines]


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_finished_lines(path)]
