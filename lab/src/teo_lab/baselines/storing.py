"""A baseline as a folder: `baseline.json` (its name and how it was trained), `backbone/` and the head's weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from teo.errors import InputError, ModelError
from teo.files import write_json
from teo.runtime.torch_codec import Codec, load_tokenizer
from teo.runtime.torch_generator import choose_device, load_model
from teo.training.saving import disk_errors, save_weights, whole_folder
from teo_lab.baselines.baseline import Baseline
from teo_lab.baselines.folder import BASELINE_FILE
from teo_lab.baselines.locate_fill import LocateFillBaseline
from teo_lab.baselines.matrix import MatrixBaseline

BASELINES: Mapping[str, type[MatrixBaseline] | type[LocateFillBaseline]] = {
    kind.name: kind for kind in (MatrixBaseline, LocateFillBaseline)
}
_BACKBONE, _HEAD = "backbone", "head.safetensors"
_FORMAT = 1


def make_baseline(name: str, backbone: Any, codec: Codec) -> Baseline:
    """Return an untrained baseline by its name."""
    if name not in BASELINES:
        raise InputError(f"baseline: expected one of {', '.join(BASELINES)}; found '{name}'")
    return BASELINES[name](backbone, codec)


def save_baseline(baseline: Baseline, path: Path, facts: Mapping[str, Any]) -> None:
    """Write a baseline, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(path), whole_folder(path) as folder:
        save_weights(baseline.backbone, baseline.codec, folder / _BACKBONE)
        weights = {name: weight.detach().cpu().contiguous() for name, weight in baseline.head.state_dict().items()}
        save_file(weights, str(folder / _HEAD))
        write_json(
            folder / BASELINE_FILE,
            {"format": _FORMAT, "baseline": baseline.name, "after": baseline.after, "training": dict(facts)},
        )


def load_baseline(path: Path, device: str = "auto") -> Baseline:
    """Return the baseline that a folder holds."""
    record = read_baseline(path)
    backbone = load_model(path / _BACKBONE)
    baseline = make_baseline(
        str(record["baseline"]), backbone, Codec(load_tokenizer(path / _BACKBONE), backbone.config)
    )
    try:
        baseline.head.load_state_dict(load_file(str(path / _HEAD)))
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{path / _HEAD}: expected the head of {baseline.name} ({error}); train it again") from None
    return baseline.to(choose_device(device)).eval()


def read_baseline(path: Path) -> dict[str, Any]:
    """Return what `baseline.json` says."""
    try:
        record = json.loads((path / BASELINE_FILE).read_text(encoding="utf-8"))
        known = record["format"] == _FORMAT and record["baseline"] in BASELINES
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path / BASELINE_FILE}: expected what `teo-lab reproduce baselines` wrote ({error}); train it again"
        ) from None
    if not known:
        raise ModelError(
            f"{path / BASELINE_FILE}: expected format {_FORMAT} and a baseline of {', '.join(BASELINES)}, found "
            f"{record['format']} and {record['baseline']}; train it again"
        )
    return dict(record)


def hash_baseline(path: Path) -> str:
    """Return a hash of all weights of a baseline, and of its tokenizer."""
    digest = hashlib.blake2b(digest_size=16)
    for file in (path / _HEAD, *sorted((path / _BACKBONE).glob("*"))):
        if file.suffix in (".json", ".safetensors"):
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
