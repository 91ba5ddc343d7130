"""What Markdown in an assistant's answer costs: rows that are right as plain text, and right with the answer marked.

    python benchmarks/markdown.py [--model MODEL] [--prefer NAME] [--marked N]

Of the development dialogues of benchmarks/everyday, those count whose rewrite is right and takes words from an answer
of the assistant. There these words are made bold, a link, and so on. A sentence before a list costs something, too,
though it is plain. Then N dialogues are marked in all ways by turns, and every rewrite that the model proposes for
them, at any confidence, is searched for marks.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from everyday import LANGUAGES, read_dialogues
from teo.data.row import Row
from teo.decision import PREFER, Prefer
from teo.evaluation.markdown import plain_table
from teo.metrics.meaning import grade
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
MARKS = re.compile(r"\*\*|__|~~|`|\]\(|https?:|</?[a-z]+>|&[a-z]+;|^#+ |\|")
"""What no rewrite may have."""


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


def measure(rewriter: Rewriter, rows: Sequence[Row], prefer: Prefer | None) -> dict[str, list[bool]]:
    """Return for each form which rows are right, of those that are right as plain text by an answer's words."""
    results = rewriter.rewrite_many([row.dialogue for row in rows], prefer=prefer)
    chosen = [
        (row, words)
        for row, result in zip(rows, results, strict=True)
        if result.changed and grade(row, result.rewrite) == "right" and (words := find_words(row, result)) is not None
    ]
    right = {}
    for name, mark in FORMS.items():
        marked = [mark(row, words).dialogue for row, words in chosen]
        answers = rewriter.rewrite_many(marked, prefer=prefer)
        right[name] = [grade(row, answer.rewrite) == "right" for (row, _), answer in zip(chosen, answers, strict=True)]
    return right


def mark_dialogues(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the dialogues with their last answer marked, each in every form in turn."""
    for name in FORMS:
        if name != "plain":
            for row in rows:
                if row.dialogue.history:
                    text = row.dialogue.history[-1].rstrip(".!?。！？")
                    start = text.find(" ") + 1 if not holds_cjk(text) else 0
                    yield FORMS[name](row, Words(len(row.dialogue.history) - 1, start, len(text)))


def find_marks(rewriter: Rewriter, rows: Sequence[Row]) -> list[str]:
    """Return the rewrites, at any confidence, that have a mark which their utterance has not."""
    results = rewriter.rewrite_many([row.dialogue for row in rows], min_confidence=0)
    return [
        result.rewrite
        for row, result in zip(rows, results, strict=True)
        if MARKS.search(result.rewrite) and not MARKS.search(row.dialogue.utterance)
    ]


def main() -> None:
    """Print the table of forms and the rewrites that have marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--prefer", choices=PREFER, help="a named threshold")
    parser.add_argument("--marked", type=int, default=500, help="dialogues whose rewrites are searched for marks")
    options = parser.parse_args()
    rewriter = Rewriter.from_pretrained(options.model)
    table, every = [], []
    for language in LANGUAGES:
        rows = read_dialogues("dev", language)
        right = measure(rewriter, rows, options.prefer)
        table.append([f"{language}, right of {len(right['plain'])}", *(sum(found) for found in right.values())])
        every.append(mark_dialogues(rows))
    print(plain_table(["", *FORMS], table))
    share = options.marked // len(every)
    marked = [row for rows in every for row in islice(rows, share)]
    found = find_marks(rewriter, marked)
    print(f"\n{len(found)} of {len(marked)} rewrites of marked dialogues have a mark")
    for text in found:
        print(f"  {text}")


if __name__ == "__main__":
    main()
