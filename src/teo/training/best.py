"""The best weights of a run by dev EM: measured while it trains, and kept beside its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from teo.runtime.torch_codec import Codec
from teo.training.dev import DevSet
from teo.training.processes import distributed_rank, wait_for_all
from teo.training.saving import save_weights

BEST = "best"
_FACTS = "training.json"


class BestWeights:
    """Measures a model on dev and keeps its weights if none before them scored as high; without dev, the last ones."""

    def __init__(self, model: Any, codec: Codec, dev: DevSet | None, work: Path, every: int) -> None:
        self.model, self.codec, self.dev, self.path = model, codec, dev, work / BEST
        self.every = every if dev is not None else 0
        """Updates between two evaluations; 0: after the last update only."""

    def __call__(self, step: int) -> dict[str, float]:
        """Return the dev EM of the weights after an update: as a whole (`em`) and by role (`em_ROLE`)."""
        scores = {} if self.dev is None else self.dev.evaluate(self.model, self.codec)
        score = scores.get("em", float(step))
        if distributed_rank()[0] == 0 and score > self._best_score():
            save_weights(self.model, self.codec, self.path, {"score": score, "step": step})
        wait_for_all()
        return scores

    def _best_score(self) -> float:
        return float(read_facts(self.path)["score"]) if self.path.is_dir() else -1.0


def read_facts(path: Path) -> dict[str, float]:
    """Return the score of the best weights and the update that they are of."""
    facts: dict[str, float] = json.loads((path / _FACTS).read_text(encoding="utf-8"))
    return facts
