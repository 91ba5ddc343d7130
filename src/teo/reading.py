"""Reading: a dialogue as the model reads it, and the way back to the user's own string.

    polite words around the utterance go (`teo.wrappers`), Traditional characters are read as Simplified ones
    (`teo.traditional`), odd white space as spaces and full-width letters as ordinary ones (`teo.units.as_read`);
    turns begin and end without white space

In the utterance each leaves positions as they are, but for its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from teo.dialogue import Dialogue
from teo.edits import EditScript, Operation, format_operations, make_edit, parse_operations
from teo.pipelines import Prediction
from teo.traditional import read_simplified, write_in_kind
from teo.units import as_read
from teo.wrappers import find_core


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model reads of a dialogue whose turns are plain text."""

    plain: Dialogue
    dialogue: Dialogue
    """As the model reads it."""
    start: int = 0
    """Where its utterance starts in the user's own."""
    traditional: bool = False
    """Whether Traditional characters were read as Simplified ones."""

    @classmethod
    def of(cls, plain: Dialogue) -> Reading:
        """Return the reading of a dialogue."""
        simplified = read_simplified(plain)
        utterance = as_read(simplified.utterance)
        start, end = find_core(utterance)
        turns = tuple(as_read(turn).strip() for turn in simplified.history)
        read = replace(simplified, history=turns, utterance=utterance[start:end])
        return cls(plain, read, start, simplified is not plain)

    def restore(self, prediction: Prediction) -> Prediction:
        """Return a prediction of the utterance as read as one of the user's own."""
        own = self.plain.utterance
        if self.dialogue.utterance == own and not self.traditional:
            return prediction
        edits = EditScript(
            tuple(make_edit(edit.start + self.start, edit.old, self._write(edit.new)) for edit in prediction.edits)
        )
        operations = prediction.operations
        if operations is not None:
            parsed = parse_operations(operations).operations
            operations = format_operations(Operation(self._write(each.old), self._write(each.new)) for each in parsed)
        return replace(prediction, rewrite=edits.moved_to(own).apply(own), edits=edits, operations=operations)

    def _write(self, text: str) -> str:
        return write_in_kind(text, self.plain) if self.traditional else text
