"""CANARD (Elgohary et al., 2019): English questions about Wikipedia sections, rewritten to stand on their own.

Published as JSON and as text, a row per question: the title, the section, the earlier questions and answers, the
question, the rewrite. All of what comes before the question is the history, as the readme of the dataset says.

If the train file is absent, the partial one of the folder `train_partial` serves: questions and rewrites by id
(`C_..._q#n`), but of each answer only its key words. A row's history is then the earlier questions of the same
dialogue, each followed by its answer's key words as one turn (none if an answer has no key words); title and
section are not there. Many of its questions lack the case and the final mark that their rewrites have: with rows =
"grounded" a rewrite's words take the case that the dialogue has them in, a question gets its rewrite's final mark, and
rows whose rewrite has words that the dialogue lacks (mostly from the title) are left out. Train on these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from teo.data.files import PARTS, find_file, find_part, read_json_array, read_lines
from teo.data.reader import Entry, Skipped
from teo.data.row import Row
from teo.data.splits import PUBLISHED, Splits, of_one_file, of_unnamed_file
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo.units import Unit, split_units, unit_texts

PARTIAL = "train_partial"
_PARTIAL_FILES = ("train.question.tsv", "train.rewrite.tsv", "train.answer.tokens.tsv")
_FEWEST_COLUMNS = 4


class CanardReader:
    """Rows of `train`, `dev` and `test`, as `.json` or `.txt`, or of the partial train files."""

    name = "canard"
    file_format = "a JSON array of History, Question and Rewrite, or lines of 4 or more tab columns (CANARD)"
    options: Mapping[str, tuple[str, ...]] = {"rows": ("all", "grounded")}

    def splits(self, path: Path) -> Splits:
        """Return the published splits."""
        if path.is_file():
            return of_one_file(PUBLISHED, path.stem) if path.stem in PARTS else of_unnamed_file()
        return PUBLISHED

    def locate(self, path: Path, part: str) -> Path:
        """Return the file of a part, JSON before text, or the folder of the partial train files."""
        if part == "train" and (path / _PARTIAL_FILES[0]).is_file():
            return path
        partial = (PARTIAL,) if part == "train" else ()
        return find_part(path, part, (f"{part}.json", f"{part}.txt", *partial))

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the rows of a part in either format."""
        if file.is_dir():
            rows = _read_partial(file)
            return rows if options["rows"] == "all" else _grounded(rows)
        if file.suffix == ".json":
            return _read_json(file, read_json_array(file, self.file_format, self.name))
        return _read_text(file, part)


def _read_json(file: Path, items: list[Any]) -> Iterator[Entry | Skipped]:
    for index, item in enumerate(items):
        try:
            dialogue_id, number = str(item["QuAC_dialog_id"]), int(item["Question_no"])
            dialogue = Dialogue.from_turns([turn.strip() for turn in item["History"]], item["Question"].strip())
            rewrite = item["Rewrite"].strip()
        except (KeyError, TypeError, ValueError, AttributeError):
            expected = "QuAC_dialog_id, Question_no, History (a list), Question and Rewrite"
            yield Skipped(file, f"[{index}]", f"expected an object with {expected}")
            continue
        yield Entry(Row(f"{dialogue_id}_q#{number - 1}", dialogue, rewrite), group=dialogue_id)


def _read_text(file: Path, part: str) -> Iterator[Entry | Skipped]:
    for number, line in read_lines(file):
        columns = [column.strip() for column in line.split("\t")] if line is not None else []
        filled = len([column for column in columns if column])
        if filled < _FEWEST_COLUMNS or filled % 2 or filled != len(columns):
            expected = f"expected an even number of filled tab columns in UTF-8, at least {_FEWEST_COLUMNS}"
            yield Skipped(file, str(number), f"{expected}; found {filled} filled of {len(columns)}")
            continue
        *history, question, rewrite = columns
        if rewrite.isdecimal():
            yield Skipped(file, str(number), f"expected a rewritten question in the last column, found '{rewrite}'")
            continue
        yield Entry(Row(f"canard-{part}-{number:05d}", Dialogue(tuple(history), question), rewrite), group=history[0])


def _read_partial(folder: Path) -> Iterator[Entry | Skipped]:
    """Yield the rows of the partial train files; a question needs its rewrite, and may lack its answer's key words."""
    question_file, rewrite_file, answer_file = (find_file(folder, (name,)) for name in _PARTIAL_FILES)
    questions, rewrites, answers = _by_id(question_file), _by_id(rewrite_file), _by_id(answer_file)
    histories: dict[str, list[str]] = {}
    for row_id, question in questions.items():
        dialogue_id, _, number = row_id.partition("_q#")
        history = histories.setdefault(dialogue_id, [])
        rewrite = rewrites.get(row_id)
        if not question or not rewrite or not number:
            reason = f"expected an id C_..._q#n with a question, and its rewrite in {rewrite_file.name}"
            yield Skipped(question_file, row_id or "a line without id", reason)
            continue
        yield Entry(Row(row_id, Dialogue(tuple(history), question), rewrite), group=dialogue_id)
        key_words = " ".join(word.strip() for word in answers.get(row_id, "").split("|")).strip()
        history += [question, key_words] if key_words else [question]


def _grounded(entries: Iterable[Entry | Skipped]) -> Iterator[Entry | Skipped]:
    """Yield the rows of the partial train files whose rewrite takes all words from the dialogue and changes some."""
    for entry in entries:
        if isinstance(entry, Skipped):
            yield entry
            continue
        dialogue, rewrite = entry.row.dialogue, entry.row.rewrite
        question = dialogue.utterance
        if rewrite.endswith("?") and not question.endswith("?"):
            question += "?"
        forms = {unit.lower(): unit for turn in (*dialogue.history, question) for unit in unit_texts(turn)}
        units = split_units(rewrite)
        if all(unit.text.lower() in forms for unit in units):
            written = _put(rewrite, units, forms)
            yield Entry(Row(entry.row.id, Dialogue(dialogue.history, question), written), entry.group)


def _put(text: str, units: Sequence[Unit], forms: Mapping[str, str]) -> str:
    """Return the text with each unit in the case that the dialogue last had it in."""
    pieces, reached = [], 0
    for unit in units:
        pieces += [text[reached : unit.start], forms[unit.text.lower()]]
        reached = unit.end
    return "".join([*pieces, text[reached:]])


def _by_id(file: Path) -> dict[str, str]:
    """Return the text of each id of a two-column file."""
    texts: dict[str, str] = {}
    for number, line in read_lines(file):
        row_id, tab, text = (line or "").partition("\t")
        if not tab:
            raise DataError(f"{file}:{number}: expected an id, a tab and text in UTF-8; get the file again")
        texts[row_id] = text.strip()
    return texts


CANARD = CanardReader()
