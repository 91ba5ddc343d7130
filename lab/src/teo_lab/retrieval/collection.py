"""Collection: documents, and questions in their dialogues with the documents that answer them.

A dataset of dialogues becomes a collection by itself: the answer to a question is the turn after it in the history of
the next question. The documents are all distinct answers of the split. A question without an answer, or with one that
says there is none, is left out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from teo.data.files import NOT_UTF8, read_lines
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError

NO_ANSWER = frozenset({"i don't know.", "cannotanswer"})
"""What CANARD and QuAC have in the place of an answer that the article does not hold."""


@dataclass(frozen=True, slots=True)
class Question:
    """The last utterance of a dialogue as a question to a search engine."""

    id: str
    dialogue: Dialogue
    relevant: frozenset[int]
    """The documents that answer it, by their index in the collection; at least one."""
    said: frozenset[int] = frozenset()
    """Documents that are turns of its history: they are no news, and are left out of every ranking."""
    rewrite: str | None = None
    """The rewrite of a person; None if there is none."""


@dataclass(frozen=True, slots=True)
class Collection:
    """What is searched, and what is asked."""

    documents: tuple[str, ...]
    questions: tuple[Question, ...]
    left_out: int = 0
    """Rows of the dataset that have no answer, and so ask nothing."""

    def keep_said(self) -> Collection:
        """Return the collection with documents that were said already left in the rankings."""
        return replace(self, questions=tuple(replace(question, said=frozenset()) for question in self.questions))

    def sample(self, limit: int | None, seed: int) -> Collection:
        """Return the collection with at most `limit` questions, drawn by seed and kept in order."""
        if limit is None or limit >= len(self.questions):
            return self
        if limit < 1:
            raise InputError(f"limit: expected a number of questions from 1 on, found {limit}")
        drawn = sorted(random.Random(seed).sample(range(len(self.questions)), limit))
        return replace(self, questions=tuple(self.questions[index] for index in drawn))


def collect_answers(rows: Sequence[Row]) -> Collection:
    """Return the questions of dialogues against all answers of the same rows."""
    answers = {row.dialogue.history[:-1]: row.dialogue.history[-1] for row in rows if len(row.dialogue.history) > 1}
    asked = [(row, answers.get((*row.dialogue.history, row.dialogue.utterance))) for row in rows]
    found = [(row, answer) for row, answer in asked if answer and answer.strip().lower() not in NO_ANSWER]
    if not found:
        raise DataError(
            f"retrieval: expected dialogues whose next row has the answer in its history (as CANARD has them), found "
            f"none among {len(rows)} rows; give --corpus and --queries instead"
        )
    documents = tuple(dict.fromkeys(answer for _, answer in found))
    indices = {text: index for index, text in enumerate(documents)}
    questions = tuple(
        Question(row.id, row.dialogue, frozenset({indices[answer]}), _said(row.dialogue, indices, answer), row.rewrite)
        for row, answer in found
    )
    return Collection(documents, questions, len(rows) - len(questions))


def read_collection(corpus: Path, queries: Path) -> Collection:
    """Return a collection of the user's own.

    The corpus has lines {"id", "text"}; the queries have {"id", "history", "utterance", "relevant": [ids of documents]}
    and, if a person rewrote them, "rewrite". "messages" may stand for history and utterance.
    """
    texts: dict[str, str] = {}
    for at, value in _objects(corpus):
        if not isinstance(value.get("id"), str | int) or not isinstance(value.get("text"), str):
            raise DataError(f'{at}: expected a document {{"id": ..., "text": "..."}}, found other keys or types')
        if str(value["id"]) in texts:
            raise DataError(f"{at}: expected each id once, found '{value['id']}' again")
        texts[str(value["id"])] = value["text"]
    if not texts:
        raise DataError(f"{corpus}: expected documents, found none")
    indices = {name: number for number, name in enumerate(texts)}
    by_text = {text: number for number, text in enumerate(texts.values())}
    questions = tuple(_read_question(at, value, indices, by_text) for at, value in _objects(queries))
    if not questions:
        raise DataError(f"{queries}: expected queries, found none")
    return Collection(tuple(texts.values()), questions)


def _read_question(
    at: str, value: Mapping[str, Any], indices: Mapping[str, int], by_text: Mapping[str, int]
) -> Question:
    try:
        dialogue = Dialogue.from_row(value)
    except InputError as error:
        raise DataError(f"{at}: {error}") from error
    names, rewrite = value.get("relevant"), value.get("rewrite")
    if not isinstance(names, list) or not names:
        raise DataError(f"{at}: relevant: expected a list of at least one document's id, found {names!r}")
    if unknown := [name for name in names if str(name) not in indices]:
        raise DataError(f"{at}: relevant: expected ids of the corpus, found '{unknown[0]}'")
    if rewrite is not None and not isinstance(rewrite, str):
        raise DataError(f"{at}: rewrite: expected a string or nothing, found {rewrite!r}")
    relevant = frozenset(indices[str(name)] for name in names)
    said = frozenset(by_text[turn] for turn in dialogue.history if turn in by_text) - relevant
    return Question(str(value.get("id", at)), dialogue, relevant, said, rewrite)


def _said(dialogue: Dialogue, indices: Mapping[str, int], answer: str) -> frozenset[int]:
    return frozenset(indices[turn] for turn in dialogue.history if turn in indices and turn != answer)


def _objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield file:line and the JSON object of each line that is not blank."""
    if not file.is_file():
        raise DataError(f"{file}: expected a file of JSON lines, found none")
    for number, line in read_lines(file):
        at = f"{file}:{number}"
        if line is None:
            raise DataError(f"{at}: {NOT_UTF8}")
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{at}: expected a JSON object, found text that is not JSON ({error.msg})") from error
        if not isinstance(value, dict):
            raise DataError(f"{at}: expected a JSON object, found {type(value).__name__}")
        yield at, value
