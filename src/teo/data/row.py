"""Row: one example of a dataset, whatever file it came from."""

from __future__ import annotations

from dataclasses import dataclass

from teo.dialogue import Dialogue


@dataclass(frozen=True, slots=True)
class Row:
    """A dialogue whose last utterance may be incomplete, and that utterance made complete by a person."""

    id: str
    dialogue: Dialogue
    rewrite: str

    @property
    def is_complete(self) -> bool:
        """Whether the utterance needs no rewriting."""
        return self.dialogue.utterance == self.rewrite

    def to_dict(self) -> dict[str, str | list[str]]:
        """Return the row as its JSON form: id, history, utterance, rewrite."""
        return {
            "id": self.id,
            "history": list(self.dialogue.history),
            "utterance": self.dialogue.utterance,
            "rewrite": self.rewrite,
        }
