"""What is added to the rows of a run's datasets."""

from __future__ import annotations

from dataclasses import dataclass, fields

from teo.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AugmentationSettings:
    """Kinds of rows to make and how many; 0 or an empty path leaves a kind out."""

    identity: float = 0.0
    """Share of the changed rows whose rewrite comes again as a complete utterance, with its own history."""
    foreign: float = 0.0
    """Share of the changed rows whose rewrite comes again with the history of another row."""
    everyday_en: int = 0
    """English rows made from everyday frames."""
    everyday_zh: int = 0
    """Chinese rows made from everyday frames."""
    dialogues_en: int = 0
    """Copies of every English dialogue that was written for training; all but the first typed in haste."""
    dialogues_zh: int = 0
    """Copies of every Chinese dialogue that was written for training; all but the first typed in haste."""
    counting_en: int = 0
    """English rows in which an item of a list is named by its position."""
    counting_zh: int = 0
    """Chinese rows in which an item of a list is named by its position."""
    requests: str = ""
    """Folder of complete requests: `en.jsonl.xz` and `zh.jsonl.xz`."""
    requests_en: int = 0
    """English follow-ups made from requests."""
    requests_zh: int = 0
    """Chinese follow-ups made from requests."""
    switches: int = 0
    """Complete requests after unrelated dialogues, to be kept; both languages together."""
    reactions: int = 0
    """Reactions after any dialogue, to be kept; both languages together."""
    answers: str = ""
    """JSONL file of {"question", "answer"}: long answers for the English frames, and dialogues after which requests and
    reactions come; "package" for those that come with the package."""
    mudoco: str = ""
    """Folder of MuDoCo-QR: its train rows, and half of the dialogues of its dev part."""
    mudoco_copies: int = 0
    """How often each row of MuDoCo-QR comes."""
    labels: str = ""
    """JSONL file of rows that a teacher labelled, packed with xz or not."""
    labels_rows: int = 0
    """Labelled rows to take, half of them changed."""
    sampled: str = ""
    """JSONL file of rows that a teacher sampled (tools/teacher.py), packed with xz or not; all of them are taken;
    "package" for those that come with the package."""
    seed: int = 0
    """Seed of all drawing."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and field.name != "seed" and value < 0:
                raise ConfigError(f"{field.name}: expected 0 or more, found {value}")
        for key in ("identity", "foreign"):
            if getattr(self, key) > 1:
                raise ConfigError(f"{key}: expected a share between 0 and 1, found {getattr(self, key)}")
        if not self.requests and (self.requests_en or self.requests_zh or self.switches):
            raise ConfigError("requests: expected a folder of requests, which requests_* and switches are made from")
        if bool(self.mudoco) != bool(self.mudoco_copies):
            raise ConfigError("mudoco, mudoco_copies: expected both a folder and a number of copies, or neither")
        if bool(self.labels) != bool(self.labels_rows):
            raise ConfigError("labels, labels_rows: expected both a file and a number of rows, or neither")
