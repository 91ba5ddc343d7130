"""What the first stage's operations make of an utterance without the second: replacements applied, insertions anywhere.

The paper's TEO-Stage1 and TEO-RFIS execute replacements directly; its insertions say no place.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from teo.edits import EditScript, Operation
from teo.placement import Span, find_units, make_script
from teo.units import unit_texts


def apply_replacements(operations: Sequence[Operation], utterance: str) -> EditScript:
    """Return the edits of the replacements alone, each where its old text first stands; others are left out."""
    return make_script(_replacement_spans(operations, unit_texts(utterance)), utterance)


def place_randomly(operations: Sequence[Operation], utterance: str, seed: str) -> EditScript:
    """Return replacements applied and insertions between any two units, drawn anew for each seed."""
    texts = unit_texts(utterance)
    spans = _replacement_spans(operations, texts)
    free = [k for k in range(len(texts) + 1) if not any(span.first < k < span.last for span in spans)]
    draw = random.Random(seed)
    insertions = [one for one in operations if one.is_insertion and one.new.strip()]
    spans += [Span(place, place, one.new) for one in insertions for place in [draw.choice(free)]]
    return make_script(sorted(spans, key=lambda span: (span.first, span.last)), utterance)


def _replacement_spans(operations: Sequence[Operation], texts: Sequence[str]) -> list[Span]:
    """Return where each replacement goes: after the one before it if it can, else at its first free occurrence."""
    spans: list[Span] = []
    reached = 0
    for operation in operations:
        if operation.is_insertion:
            continue
        for start in (reached, 0):
            found = find_units(texts, operation.old, start)
            if found and all(found[1] <= span.first or found[0] >= span.last for span in spans):
                spans.append(Span(*found, operation.new))
                reached = max(reached, found[1])
                break
    return sorted(spans, key=lambda span: span.first)
