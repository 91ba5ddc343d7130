"""How a model bears changes that should not matter: unrelated turns before all others, another name for a thing.

Rates over the rows of a dataset whose utterance the model changes. Two turns leave the utterance to the same speaker,
one turn gives it to the other.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from teo import Dialogue
from teo.data import load_rows
from teo.rewriter import Rewriter
from teo.units import is_cjk, unit_texts

NAMES = {True: "阿尔法", False: "Zorvania"}
"""Names that no dialogue has, for a Chinese and for an English dialogue."""


def main() -> None:
    """Print the rates as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--data", required=True, help="dataset name")
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int, default=500)
    options = parser.parse_args()
    rewriter = Rewriter.from_pretrained(options.model)
    dialogues = [row.dialogue for row in load_rows(options.data, options.path, options.split).rows[: options.limit]]
    before = rewriter.rewrite_many(dialogues)
    changed = [k for k, one in enumerate(before) if one.changed]
    same = {}
    for count in (1, 2):
        after = rewriter.rewrite_many([_prepend(dialogues, k, count) for k in changed])
        same[count] = sum(one.rewrite == before[k].rewrite for k, one in zip(changed, after, strict=True))
    renamed = [
        (k, old, new) for k in changed if (pair := _restored(dialogues[k], before[k].rewrite)) for old, new in [pair]
    ]
    after = rewriter.rewrite_many([_rename(dialogues[k], old, new) for k, old, new in renamed])
    followed = sum(
        one.rewrite == before[k].rewrite.replace(old, new) for one, (k, old, new) in zip(after, renamed, strict=True)
    )
    print(
        json.dumps(
            {
                "rows": len(dialogues),
                "changed": len(changed),
                "same_after_an_unrelated_turn": same[1] / max(1, len(changed)),
                "same_after_two_unrelated_turns": same[2] / max(1, len(changed)),
                "renamed": len(renamed),
                "renamed_in_the_rewrite": followed / max(1, len(renamed)),
            }
        )
    )


def _prepend(dialogues: Sequence[Dialogue], number: int, count: int) -> Dialogue:
    """Return a dialogue with the utterances of as many others before its own turns."""
    turns = [dialogues[number - back].utterance for back in range(count, 0, -1)]
    return Dialogue((*turns, *dialogues[number].history), dialogues[number].utterance)


def _restored(dialogue: Dialogue, rewrite: str) -> tuple[str, str] | None:
    """Return the longest word that the rewrite took from the history, and a name for its place."""
    utterance = set(unit_texts(dialogue.utterance))
    history = {unit for turn in dialogue.history for unit in unit_texts(turn)}
    restored = [word for word in unit_texts(rewrite) if word in history - utterance]
    words = [word for word in restored if word[0].isupper() or is_cjk(word)]
    if not words:
        return None
    word = max(words, key=len)
    return word, NAMES[is_cjk(word[0])]


def _rename(dialogue: Dialogue, old: str, new: str) -> Dialogue:
    return Dialogue(tuple(turn.replace(old, new) for turn in dialogue.history), dialogue.utterance.replace(old, new))


if __name__ == "__main__":
    main()
