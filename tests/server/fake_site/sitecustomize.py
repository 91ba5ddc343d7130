"""For processes of a server under test: each of them, workers too, loads the fake rewriter."""

from __future__ import annotations

import os
import time
from typing import Any

from fake_rewriter import FakeRewriter

from teo.rewriter import Rewriter


def load(*_: Any, **__: Any) -> FakeRewriter:
    time.sleep(float(os.environ.get("FAKE_LOADING", "0")))
    return FakeRewriter(float(os.environ["FAKE_SECONDS"]))


Rewriter.from_pretrained = classmethod(load)
