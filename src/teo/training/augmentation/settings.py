"""How many rows of each kind are added to the datasets; nothing by default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AugmentationSettings:
    """Rows that are made from other rows, from frames and from files, added to the training rows."""

    identity: float = 0.0
    """Share of the changed rows whose reference rewrite is added as an utterance to keep."""
    foreign: float = 0.0
    """Share of the changed rows whose reference rewrite is added, to keep, after the history of another row."""
    everyday_en: int = 0
    """Rows made from everyday English frames."""
    everyday_zh: int = 0
    """Rows made from everyday Chinese frames."""
    requests: str = ""
    """Folder of requests with slots, from which assistant dialogues are made; empty: none."""
    requests_en: int = 0
    """English rows made from requests."""
    requests_zh: int = 0
    """Chinese rows made from requests."""
    switches: int = 0
    """Rows whose utterance changes the subject and must be kept."""
    reactions: int = 0
    """Rows whose utterance is a reaction ("Thanks!") and must be kept."""
    answers: str = ""
    """JSONL of {"question", "answer"}: long answers for the histories; empty: none."""
    labels: str = ""
    """JSONL of rows that a teacher labelled; empty: none."""
    labels_rows: int = 0
    """Rows taken from the labels, at most."""
    seed: int = 0
    """Seed of every draw."""
