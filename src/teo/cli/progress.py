"""The progress of a stream: one changing line on a terminal; bad lines are always named."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(slots=True)
class LineProgress:
    """The number of finished lines, and of bad ones among them."""

    log: TextIO
    done: int = 0
    bad: int = 0
    started: float = field(default_factory=time.monotonic)

    def advance(self, lines: int, errors: Sequence[str]) -> None:
        """Count lines, and report what is wrong with the bad ones."""
        self.done += lines
        self.bad += len(errors)
        for error in errors:
            if self.log.isatty():
                self.log.write("\r\x1b[K")
            self.log.write(f"teo: {error}\n")
        if self.log.isatty():
            rate = self.done / max(time.monotonic() - self.started, 1e-9)
            self.log.write(f"\r{self.done} lines, {rate:.1f} lines/s")
        self.log.flush()

    def finish(self, message: str = "") -> None:
        """End the changing line."""
        if self.log.isatty() and self.done:
            self.log.write("\n")
        if message:
            self.log.write(f"teo: {message}\n")
