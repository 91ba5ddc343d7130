"""One setting, several values: a run for each, and dev EM against the value (the paper's figure on prob_p)."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from teo.errors import ConfigError
from teo.files import write_json
from teo.training.config import TrainConfig, read_config
from teo.training.curves import draw_sweep
from teo.training.finetune import train
from teo.training.record import TrainResult

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A key and the values that it takes."""

    key: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Sweep:
        """Return the sweep that `key=a,b,c` says."""
        key, equals, values = text.partition("=")
        listed = tuple(value.strip() for value in values.split(",") if value.strip())
        if not key or not equals or not listed:
            raise ConfigError(f"--sweep: expected key=a,b,c such as perturbation.prob_p=0,0.3,0.6; found {text}")
        return cls(key, listed)


def run_sweep(path: Path, overrides: Sequence[str], sweep: Sweep, *, resume: bool = False) -> list[dict[str, object]]:
    """Return {"value", "em"} for each value, and write them as sweep.json and sweep.png beside the runs.

    Perturbation concerns stage 2 alone, so a sweep over it trains stage 1 once, in the first run.
    """
    config = read_config(path, overrides)
    configs = [_of_value(path, overrides, sweep, value, config, first=k == 0) for k, value in enumerate(sweep.values)]
    points: list[dict[str, object]] = []
    for value, run in zip(sweep.values, configs, strict=True):
        logger.info("sweep: %s=%s", sweep.key, value)
        result = train(run, resume=resume and (Path(run.output) / "training").is_dir())
        points.append({"value": value, "em": final_em(result)})
    folder = Path(config.output)
    write_json(folder / "sweep.json", {"key": sweep.key, "points": points})
    numbers = [(float(value), float(str(point["em"]))) for value, point in zip(sweep.values, points, strict=True)]
    draw_sweep(numbers, folder / "sweep.png", sweep.key)
    return points


def _of_value(
    path: Path, overrides: Sequence[str], sweep: Sweep, value: str, config: TrainConfig, *, first: bool
) -> TrainConfig:
    """Return the configuration of one value's run."""
    try:
        float(value)
    except ValueError:
        raise ConfigError(f"--sweep: {sweep.key}: expected numbers, which can be drawn; found {value}") from None
    folder = Path(config.output)
    mine = [*overrides, f"{sweep.key}={value}", f"output={json.dumps(str(folder / f'{sweep.key}={value}'))}"]
    if not first and sweep.key.startswith("perturbation.") and "stage1" in config.roles and not config.shared:
        mine.append(f"model.stage1={json.dumps(str(folder / f'{sweep.key}={sweep.values[0]}'))}")
    return read_config(path, mine)


def final_em(result: TrainResult) -> float:
    """Return the mean dev EM of the roles that write rewrites (of stage 1 where there is no other)."""
    scores = [score for role, score in result.em.items() if role != "stage1"] or list(result.em.values())
    if not scores:
        raise ConfigError("--sweep: expected development rows to compare on, found none; set data.dev")
    return sum(scores) / len(scores)
