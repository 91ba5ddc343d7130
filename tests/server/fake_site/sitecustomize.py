"""For processes of a server under test: each of them, workers too, loads the fake rewriter."""

from __future__ import annotations

import os

from fake_rewriter import FakeRewriter

from teo.rewriter import Rewriter

Rewriter.from_pretrained = classmethod(lambda cls, *args, **options: FakeRewriter(float(os.environ["FAKE_SECONDS"])))
