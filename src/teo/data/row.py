"""Row: an example of a dataset, whatever file it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.edits import Order, format_operations


def fingerprint(text: str) -> str:
    """Return a name for a text that does not tell the text: judgements of a dataset's rows are stored by it."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class MeaningKeys:
    """What tells whether a rewrite means the right thing (`teo.metrics.meaning`)."""

    need: tuple[tuple[str, ...], ...] = ()
    """Groups of alternatives: a right rewrite has one of every group."""
    forbid: tuple[str, ...] = ()
    """Patterns that a right rewrite does not have: what is left unresolved, or false."""
    judged: tuple[tuple[str, bool], ...] = ()
    """Rewrites that were read, each by its text or its fingerprint, and whether each means the right thing."""

    def judgement(self, rewrite: str) -> bool | None:
        """Return what a reader said of a rewrite; None if nobody read it."""
        judged = dict(self.judged)
        return judged.get(rewrite, judged.get(fingerprint(rewrite)) if judged else None)

    def to_dict(self) -> dict[str, Any]:
        """Return the keys as a row has them."""
        keys = {"need": [list(group) for group in self.need], "forbid": list(self.forbid), "judged": dict(self.judged)}
        return {name: value for name, value in keys.items() if value}


@dataclass(frozen=True, slots=True)
class Row:
    """A dialogue whose last utterance may be incomplete, and that utterance made complete by a person."""

    id: str
    dialogue: Dialogue
    rewrite: str
    """The reference: what training learns and every metric compares with."""
    references: tuple[str, ...] = ()
    """Other rewrites that are accepted too; EM counts a match with any."""
    keys: MeaningKeys | None = None
    """Meaning keys, if the row has them."""

    @property
    def is_complete(self) -> bool:
        """Whether the utterance needs no rewriting."""
        return self.dialogue.utterance == self.rewrite

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON has it: id, history, utterance, rewrite; rewrites and keys if there are any."""
        record: dict[str, Any] = {
            "id": self.id,
            "history": list(self.dialogue.history),
            "utterance": self.dialogue.utterance,
            "rewrite": self.rewrite,
        }
        if self.references:
            record["rewrites"] = [self.rewrite, *self.references]
        return record | self.keys.to_dict() if self.keys else record


def edit_record(row: Row, order: Order = "position") -> dict[str, Any]:
    """Return the row with what turns its utterance into its rewrite: the paper's string and the positioned edits."""
    script = derive_edits(row.dialogue.utterance, row.rewrite)
    operations = format_operations(script.operations, order)
    return {**row.to_dict(), "operations": operations, "edits": script.to_dicts()}
