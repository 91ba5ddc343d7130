"""Row: an example of a dataset, whatever file it came from."""

from __future__ import annotations

from dataclasses import dataclass

from teo.dialogue import Dialogue


@dataclass(frozen=True, slots=True)
class Row:
    """A dialogue whose last utterance may be incomplete, and that utterance made complete by a person."""

    id: str
    dialogue: Dialogue
    rewrite: str
    """The reference: what training learns and every metric compares with."""
    references: tuple[str, ...] = ()
    """Other rewrites that are accepted too; EM counts a match with any."""

    @property
    def is_complete(self) -> bool:
        """Whether the utterance needs no rewriting."""
        return self.dialogue.utterance == self.rewrite

    def to_dict(self) -> dict[str, str | list[str]]:
        """Return the row as JSON has it: id, history, utterance, rewrite, and all rewrites where there are several."""
        record: dict[str, str | list[str]] = {
            "id": self.id,
            "history": list(self.dialogue.history),
            "utterance": self.dialogue.utterance,
            "rewrite": self.rewrite,
        }
        return {**record, "rewrites": [self.rewrite, *self.references]} if self.references else record
