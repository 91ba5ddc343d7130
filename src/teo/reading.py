"""Reading: a dialogue as the model reads it, and the way back to the user's own string.

Traditional characters are read as Simplified ones (`teo.traditional`), noise is not read (`teo.noise`), nor are
polite words around the utterance (`teo.wrappers`) and greetings before the dialogue (`teo.openings`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from teo.dialogue import Dialogue
from teo.edits import Edit, EditScript, Operation, format_operations, make_edit, parse_operations
from teo.noise import read_turn, read_utterance
from teo.openings import skip_openings
from teo.pipelines import Prediction
from teo.traditional import read_simplified, write_in_kind
from teo.wrappers import find_core


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model reads of a dialogue whose turns are plain text."""

    plain: Dialogue
    dialogue: Dialogue
    """As the model reads it."""
    places: tuple[int, ...]
    """Where each character of its utterance stands in the user's own."""
    traditional: bool = False
    """Whether Traditional characters were read as Simplified ones."""

    @classmethod
    def of(cls, plain: Dialogue) -> Reading:
        """Return the reading of a dialogue."""
        simplified = read_simplified(plain)
        utterance, places = read_utterance(simplified.utterance)
        start, end = find_core(utterance)
        read = skip_openings(replace(simplified, history=tuple(map(read_turn, simplified.history))))
        read = replace(read, utterance=utterance[start:end])
        return cls(plain, read, tuple(places[start:end]), simplified is not plain)

    def restore(self, prediction: Prediction) -> Prediction:
        """Return a prediction of the utterance as read as one of the user's own."""
        own = self.plain.utterance
        if self.dialogue.utterance == own and not self.traditional:
            return prediction
        edits = EditScript(tuple(map(self._restore_edit, prediction.edits)))
        operations = prediction.operations
        if operations is not None:
            parsed = parse_operations(operations).operations
            operations = format_operations(Operation(self._write(each.old), self._write(each.new)) for each in parsed)
        return replace(prediction, rewrite=edits.moved_to(own).apply(own), edits=edits, operations=operations)

    def _restore_edit(self, edit: Edit) -> Edit:
        """Return an edit of the utterance as read as one of the user's own."""
        places = self.places
        if edit.start < edit.end:
            start, end = places[edit.start], places[edit.end - 1] + 1
        else:
            start = end = places[edit.start - 1] + 1 if edit.start else places[0]
        return make_edit(start, self.plain.utterance[start:end], self._write(edit.new))

    def _write(self, text: str) -> str:
        return write_in_kind(text, self.plain) if self.traditional else text
