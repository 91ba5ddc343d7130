"""Telling a peer's folder from a model's, without torch."""

from __future__ import annotations

from pathlib import Path

PEER = "peer.json"
"""The file that makes a folder a peer's."""


def is_peer(path: str | Path | None) -> bool:
    """Tell whether a folder holds a peer."""
    return path is not None and (Path(path) / PEER).is_file()
