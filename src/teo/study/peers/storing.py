"""A peer as a folder: `peer.json` (its name and how it was trained), `backbone/` and the head's weights."""

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
from teo.study.peers.folder import PEER
from teo.study.peers.locate_fill import LocateFillPeer
from teo.study.peers.matrix import MatrixPeer
from teo.study.peers.peer import Peer
from teo.training.saving import disk_errors, save_weights, whole_folder

PEERS: Mapping[str, type[MatrixPeer] | type[LocateFillPeer]] = {
    kind.name: kind for kind in (MatrixPeer, LocateFillPeer)
}
_BACKBONE, _HEAD = "backbone", "head.safetensors"
_FORMAT = 1


def make_peer(name: str, backbone: Any, codec: Codec) -> Peer:
    """Return an untrained peer by its name."""
    if name not in PEERS:
        raise InputError(f"peer: expected one of {', '.join(PEERS)}; found '{name}'")
    return PEERS[name](backbone, codec)


def save_peer(peer: Peer, path: Path, facts: Mapping[str, Any]) -> None:
    """Write a peer, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(path), whole_folder(path) as folder:
        save_weights(peer.backbone, peer.codec, folder / _BACKBONE)
        weights = {name: weight.detach().cpu().contiguous() for name, weight in peer.head.state_dict().items()}
        save_file(weights, str(folder / _HEAD))
        write_json(folder / PEER, {"format": _FORMAT, "peer": peer.name, "after": peer.after, "training": dict(facts)})


def load_peer(path: Path, device: str = "auto") -> Peer:
    """Return the peer that a folder holds."""
    record = read_peer(path)
    backbone = load_model(path / _BACKBONE)
    peer = make_peer(str(record["peer"]), backbone, Codec(load_tokenizer(path / _BACKBONE), backbone.config))
    try:
        peer.head.load_state_dict(load_file(str(path / _HEAD)))
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{path / _HEAD}: expected the head of {record['peer']} ({error}); train it again") from None
    return peer.to(choose_device(device)).eval()


def read_peer(path: Path) -> dict[str, Any]:
    """Return what `peer.json` says."""
    try:
        record = json.loads((path / PEER).read_text(encoding="utf-8"))
        known = record["format"] == _FORMAT and record["peer"] in PEERS
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path / PEER}: expected what `teo reproduce peers` wrote ({error}); train it again"
        ) from None
    if not known:
        raise ModelError(
            f"{path / PEER}: expected format {_FORMAT} and a peer of {', '.join(PEERS)}, found "
            f"{record['format']} and {record['peer']}; train it again"
        )
    return dict(record)


def hash_peer(path: Path) -> str:
    """Return a hash of all weights of a peer, and of its tokenizer."""
    digest = hashlib.blake2b(digest_size=16)
    for file in (path / _HEAD, *sorted((path / _BACKBONE).glob("*"))):
        if file.suffix in (".json", ".safetensors"):
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
