"""Reading: a dialogue as the model reads it, and the way back to the user's own string.

    polite words around the utterance go (`teo.wrappers`), Traditional characters are read as Simplified ones
    (`teo.traditional`), lone surrogates as the replacement character

Each leaves positions as they are, but for the start of the utterance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from teo.dialogue import Dialogue
from teo.edits import EditScript, Operation, format_operations, make_edit, parse_operations
from teo.pipelines import Prediction
from teo.traditional import read_simplified, write_in_kind
from teo.units import replace_surrogates
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
        start, end = find_core(simplified.utterance)
        turns = tuple(map(replace_surrogates, simplified.history))
        utterance = replace_surrogates(simplified.utterance[start:end])
        read = replace(simplified, history=turns, utterance=utterance)
        return cls(plain, read, start, simplified is not plain)

    def restore(self, prediction: Prediction) -> Prediction:
        """Return a prediction of the utterance as read as one of the user's own."""
        own = self.plain.utterance
        if len(self.dialogue.utterance) == len(own) and not self.traditional:
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
