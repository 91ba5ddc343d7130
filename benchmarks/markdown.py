"""What Markdown in an assistant's answer costs: rows that are right as plain text, and right with the answer marked.

    python benchmarks/markdown.py [--held] [--model MODEL] [--prefer NAME] [--marked N] [--out FILE]

Of the development dialogues of benchmarks/everyday (or the held-out ones), those count whose rewrite is right and takes
words from an answer of the assistant. There these words are made bold, a link, and so on. A sentence before a list
costs something, too, though it is plain. Then N dialogues are marked in all ways by turns, and every rewrite that the
model proposes for them, at any confidence, is searched for marks. Last come the README's first examples, answered as a
chat assistant would.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from everyday import FOLDER, LANGUAGES, read_dialogues
from teo.data.row import Row
from teo.decision import PREFER, Prefer
from teo.dialogue import Dialogue
from teo.evaluation.markdown import plain_table
from teo.files import write_json
from teo.metrics.meaning import grade
from teo.plain_text import read_history
from teo.provenance import git_commit, versions
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo.units import holds_cjk, unit_texts

INTRODUCTION = {True: "好的，如下：", False: "Sure, here you go:"}
"""What an assistant says before a list, by whether the answer is in Chinese."""


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a turn of the history that a rewrite takes up."""

    turn: int
    start: int
    end: int

    def mark(self, row: Row, before: str, after: str, whole: Callable[[str], str] = str) -> Row:
        """Return a row with marks around the words; `whole` marks the turn itself."""
        turns = list(row.dialogue.history)
        text = turns[self.turn]
        turns[self.turn] = whole(text[: self.start] + before + text[self.start : self.end] + after + text[self.end :])
        return replace(row, dialogue=replace(row.dialogue, history=tuple(turns)))


def as_list(text: str) -> str:
    """Return an answer as the only item of a list."""
    return f"- {text}"


def as_list_after_sentence(text: str) -> str:
    """Return an answer as a list that a sentence introduces."""
    return f"{INTRODUCTION[holds_cjk(text)]}\n\n- {text}"


def as_table(text: str) -> str:
    """Return an answer as the second row of a table."""
    return f"| | |\n|---|---|\n| 1 | {text} |"


FORMS: Mapping[str, Callable[[Row, Words], Row]] = {
    "plain": lambda row, words: row,
    "bold": lambda row, words: words.mark(row, "**", "**"),
    "link": lambda row, words: words.mark(row, "[", "](https://www.example.com/a_b/c)"),
    "bullet": lambda row, words: words.mark(row, "", "", as_list),
    "bullet and bold": lambda row, words: words.mark(row, "**", "**", as_list),
    "italic": lambda row, words: words.mark(row, "*", "*"),
    "tag": lambda row, words: words.mark(row, "<b>", "</b>"),
    "back ticks": lambda row, words: words.mark(row, "`", "`"),
    "heading": lambda row, words: words.mark(row, "", "", lambda text: f"## {text}"),
    "bullet after a sentence": lambda row, words: words.mark(row, "", "", as_list_after_sentence),
    "table": lambda row, words: words.mark(row, "", "", as_table),
}
"""A row with the words marked, by the name of the form."""
MARKS = re.compile(r"[*`|\]]|__|~~|https?:|</?[a-z]+>|&[a-z]+;|^#+ |\n")
"""What no rewrite may have."""
ANSWERED = (
    (
        ("Who wrote Dune?", "Sure! **Dune** was written by **Frank Herbert** (1920–1986)."),
        "When was he born?",
        "When was Frank Herbert born?",
    ),
    (
        (
            "Who wrote Dune?",
            "## Dune\n\n*Dune* (1965) is a novel by **[Frank Herbert](https://en.wikipedia.org/wiki/Frank_Herbert)**.\n\n"
            "- **Genre:** science fiction\n- **Series:** six books",
        ),
        "When was he born?",
        "When was Frank Herbert born?",
    ),
    (("谁唱的青花瓷", "《**青花瓷**》是**周杰伦**唱的。"), "他还唱过什么歌", "周杰伦还唱过什么歌"),
)
"""The README's first examples, answered as a chat assistant would: history, utterance, rewrite."""


def find_words(row: Row, result: Rewrite) -> Words | None:
    """Return the longest words of an edit that stand in an answer of the assistant; None if there are none."""
    best: tuple[int, Words] | None = None
    for edit in result.edits:
        units = unit_texts(edit.new)
        for turn in range(len(row.dialogue.history) - 1, -1, -2):
            text = row.dialogue.history[turn]
            for first in range(len(units)):
                for last in range(len(units), first, -1):
                    phrase = _phrase(edit.new, units[first:last])
                    start = text.find(phrase) if phrase else -1
                    if start >= 0 and len(phrase) >= _least(phrase) and (best is None or len(phrase) > best[0]):
                        best = len(phrase), Words(turn, start, start + len(phrase))
    return best[1] if best else None


def _phrase(text: str, units: Sequence[str]) -> str:
    """Return the part of a text from the first to the last of some units that stand in it in a row."""
    found = re.search(r"\s*".join(map(re.escape, units)), text)
    return found[0] if found else ""


def _least(phrase: str) -> int:
    return 2 if holds_cjk(phrase) else 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one form of the rows that are right as plain text."""

    right: Sequence[bool]
    read_as_plain: int
    """Rows of which the model reads exactly what it reads of the plain ones."""


def measure(rewriter: Rewriter, rows: Sequence[Row], prefer: Prefer | None) -> dict[str, Outcome]:
    """Return what became of each form, of the rows that are right as plain text by an answer's words."""
    results = rewriter.rewrite_many([row.dialogue for row in rows], prefer=prefer)
    chosen = [
        (row, words)
        for row, result in zip(rows, results, strict=True)
        if result.changed and grade(row, result.rewrite) == "right" and (words := find_words(row, result)) is not None
    ]
    outcomes = {}
    for name, mark in FORMS.items():
        marked = [mark(row, words).dialogue for row, words in chosen]
        answers = rewriter.rewrite_many(marked, prefer=prefer)
        right = [grade(row, answer.rewrite) == "right" for (row, _), answer in zip(chosen, answers, strict=True)]
        same = [
            read_history(dialogue) == read_history(row.dialogue)
            for (row, _), dialogue in zip(chosen, marked, strict=True)
        ]
        outcomes[name] = Outcome(right, sum(same))
    return outcomes


def mark_dialogues(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the dialogues with their last answer marked, each in another form than the one before, then again."""
    names = [name for name in FORMS if name != "plain"]
    told = [row for row in rows if row.dialogue.history]
    for shift in range(len(names)):
        for number, row in enumerate(told):
            text = row.dialogue.history[-1].rstrip(".!?。！？")
            start = text.find(" ") + 1 if not holds_cjk(text) else 0
            form = FORMS[names[(number + shift) % len(names)]]
            yield form(row, Words(len(row.dialogue.history) - 1, start, len(text)))


def find_marks(rewriter: Rewriter, rows: Sequence[Row]) -> list[str]:
    """Return the rewrites, at any confidence, that have a mark which their utterance has not."""
    results = rewriter.rewrite_many([row.dialogue for row in rows], min_confidence=0)
    return [
        result.rewrite
        for row, result in zip(rows, results, strict=True)
        if MARKS.search(result.rewrite) and not MARKS.search(row.dialogue.utterance)
    ]


def answer_examples(rewriter: Rewriter) -> list[dict[str, Any]]:
    """Return the rewrites of the README's first examples, answered in Markdown."""
    results = rewriter.rewrite_many([Dialogue(history, utterance) for history, utterance, _ in ANSWERED])
    return [
        {
            "answer": history[-1],
            "utterance": utterance,
            "rewrite": result.rewrite,
            "confidence": result.confidence,
            "right": result.rewrite == expected,
        }
        for (history, utterance, expected), result in zip(ANSWERED, results, strict=True)
    ]


def main() -> None:
    """Print the table of forms, the rewrites that have marks, and the examples; store them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true", help="the dialogues held out of those written for training")
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--prefer", choices=PREFER, help="a named threshold")
    parser.add_argument("--marked", type=int, default=500, help="dialogues whose rewrites are searched for marks")
    parser.add_argument("--out", type=Path, help="a JSON file for the result")
    options = parser.parse_args()
    part = "held" if options.held else "dev"
    rewriter = Rewriter.from_pretrained(options.model)
    result: dict[str, Any] = {"model": rewriter.name, "variant": rewriter.variant, "prefer": options.prefer}
    result |= {"files": {}, "languages": {}}
    table: list[list[Any]] = []
    marked: list[Row] = []
    for language in LANGUAGES:
        path = FOLDER / part / f"{language}.jsonl"
        result["files"][f"{part}/{language}.jsonl"] = hashlib.sha256(path.read_bytes()).hexdigest()
        rows = read_dialogues(part, language)
        outcomes = measure(rewriter, rows, options.prefer)
        counts = {name: sum(outcome.right) for name, outcome in outcomes.items()}
        result["languages"][language] = {
            "rows": len(rows),
            "right": counts,
            "read_as_plain": {name: outcome.read_as_plain for name, outcome in outcomes.items()},
        }
        table.append([f"{language}, right of {counts['plain']}", *counts.values()])
        marked += islice(mark_dialogues(rows), options.marked // len(LANGUAGES))
    print(plain_table(["", *FORMS], table))
    found = find_marks(rewriter, marked)
    print(f"\n{len(found)} of {len(marked)} rewrites of marked dialogues have a mark", *found, sep="\n  ")
    result["marked"] = {"dialogues": len(marked), "rewrites_with_marks": found}
    result["examples"] = answer_examples(rewriter)
    for example in result["examples"]:
        print(f"{example['confidence']:.4f}  {example['rewrite']}")
    if options.out is not None:
        write_json(options.out, {**result, "versions": versions(["numpy", "onnxruntime"]), "commit": git_commit()})


if __name__ == "__main__":
    main()
