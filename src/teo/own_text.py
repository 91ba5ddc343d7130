"""What a model predicted from its reading of an utterance, as edits of the user's own string."""

from __future__ import annotations

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.edits import Edit, EditScript, make_edit

_SPARE = 64
"""Characters that a rewrite may have beyond all that was said: longer ones have run away."""


def edits_of(utterance: str, read: Dialogue, predicted: str) -> EditScript:
    """Return the edits that turn the user's own string into what a model predicted from its reading of it.

    White space that only the model's copy lost or gained is no edit. No rewrite at all, or one that is longer than all
    that was said, is no edit either.
    """
    text = predicted.strip()
    longest = len(read.utterance) + sum(len(turn) for turn in read.history) + _SPARE
    if not text or len(text) > longest:
        return EditScript()
    stripped = read.utterance.strip()
    start = read.utterance.index(stripped)
    whole = read.utterance[:start] + text + read.utterance[start + len(stripped) :]
    found = (edit for edit in derive_edits(read.utterance, whole) if edit.old.strip() or edit.new.strip())
    # The reading has a sign for every sign of the utterance; only lone surrogates differ.
    own = (_own_spacing(edit.start, utterance[edit.start : edit.end], edit.new) for edit in found)
    return EditScript(tuple(edit for edit in own if edit.old != edit.new))


def _own_spacing(start: int, old: str, new: str) -> Edit:
    """Return the edit with white space at the ends of what is replaced left as the user put it."""
    kept = old.strip()
    if not kept or not new.strip():
        return make_edit(start, old, new)
    before = len(old) - len(old.lstrip())
    new = new.lstrip() if before else new
    new = new.rstrip() if old[-1].isspace() else new
    return make_edit(start + before, kept, new)
