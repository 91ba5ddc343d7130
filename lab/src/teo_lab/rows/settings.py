"""What rows are made: one recipe, read from TOML."""

from __future__ import annotations

from dataclasses import dataclass

from teo.errors import ConfigError
from teo.training.config import DataSettings, NotNegative, Probability


@dataclass(frozen=True, slots=True)
class RowsRecipe:
    """Kinds of rows to make and how many; 0 or an empty path leaves a kind out."""

    data: tuple[DataSettings, ...] = ()
    """Datasets that lend rewrites and histories (identity, foreign, switches, reactions); their own rows are not
    written again."""
    identity: Probability = 0.0
    """Share of the changed rows whose rewrite comes again as a complete utterance, with its own history."""
    foreign: Probability = 0.0
    """Share of the changed rows whose rewrite comes again with the history of another row."""
    everyday_en: NotNegative = 0
    """English rows made from templates."""
    everyday_zh: NotNegative = 0
    """Chinese rows made from templates."""
    dialogues_en: NotNegative = 0
    """Copies of every hand-written English row; all but the first with typos."""
    dialogues_zh: NotNegative = 0
    """Copies of every hand-written Chinese row; all but the first with typos."""
    drawn_en: NotNegative = 0
    """Hand-written English rows, each of another dialogue, every third of them complete."""
    drawn_zh: NotNegative = 0
    """Hand-written Chinese rows, each of another dialogue, every third of them complete."""
    drawn_files_en: NotNegative = 0
    """Draw from the first so many files of English dialogues; 0: from all."""
    drawn_files_zh: NotNegative = 0
    """Draw from the first so many files of Chinese dialogues; 0: from all."""
    counting_en: NotNegative = 0
    """English rows in which an item of a list is named by its position."""
    counting_zh: NotNegative = 0
    """Chinese rows in which an item of a list is named by its position."""
    requests: str = ""
    """Folder of complete requests: `en.jsonl.xz` and `zh.jsonl.xz`."""
    requests_en: NotNegative = 0
    """English follow-ups made from requests."""
    requests_zh: NotNegative = 0
    """Chinese follow-ups made from requests."""
    request_sources: tuple[str, ...] = ()
    """Take only requests of these sources, such as "clinc150"; all of them if empty."""
    switches: NotNegative = 0
    """Complete requests after unrelated dialogues, which stay unchanged; both languages together."""
    reactions: NotNegative = 0
    """Reactions after any dialogue, which stay unchanged; both languages together."""
    answers: str = ""
    """JSONL file of {"question", "answer"}: long answers for the English templates, and dialogues after which requests
    and reactions come; "own" for those of lab/rows."""
    mudoco: str = ""
    """Folder of MuDoCo-QR: its train rows, and half of the dialogues of its dev part."""
    mudoco_copies: NotNegative = 0
    """How often each row of MuDoCo-QR comes."""
    labels: str = ""
    """JSONL file of rows that a teacher labelled, packed with xz or not."""
    labels_rows: NotNegative = 0
    """Labelled rows to take, half of them changed."""
    sampled: str = ""
    """JSONL file of rows that a teacher sampled (`teo-lab teacher`), packed with xz or not; "own" for
    those of lab/rows. All are taken but those close to the benchmark, and unchanged ones that are not complete."""
    sampled_logprob: float = 0.0
    """Least log-probability that the teacher gives to a changed sampled row, such as -0.3; 0: all are taken."""
    openings: tuple[str, ...] = ()
    """Take only sampled rows whose field `opening` is one of these, such as "own" and "free"; all of them if empty."""
    unrelated: Probability = 0.0
    """Share of all rows, those of the datasets too, that come again after one to three turns of another dialogue."""
    polite: Probability = 0.0
    """Share of all rows, those of the datasets too, that come again with polite words around the utterance."""
    typed: Probability = 0.0
    """Share of all rows, those of the datasets too, that come again without final marks or capitals, or mistyped."""
    renamed: Probability = 0.0
    """Share of all rows, those of the datasets too, in which what the rewrite copies comes again by another name."""
    held: NotNegative = 0
    """If not 0, every n-th rewrite, chosen by a hash, is left out with all rows that have it, and these go to a file
    of their own: rows that a model has not seen (`teo-lab rank`)."""
    seed: int = 0
    """Seed of all drawing."""

    def __post_init__(self) -> None:
        if self.held == 1:
            raise ConfigError("held: expected 0 or a number above 1, found 1, which holds every row out")
        if self.sampled_logprob > 0:
            raise ConfigError(f"sampled_logprob: expected 0 or less, found {self.sampled_logprob}; give a logarithm")
        if not self.requests and (self.requests_en or self.requests_zh or self.switches):
            raise ConfigError("requests: expected a folder of requests, which requests_* and switches are made from")
        if bool(self.mudoco) != bool(self.mudoco_copies):
            raise ConfigError("mudoco, mudoco_copies: expected both a folder and a number of copies, or neither")
        if bool(self.labels) != bool(self.labels_rows):
            raise ConfigError("labels, labels_rows: expected both a file and a number of rows, or neither")
