"""RES200K, Restoration-200K (Pan et al., 2019): Chinese forum chat, four turns of history, in two published formats.

Tab files (`valid.txt`): u1 to u4, the utterance u5, the turn after it (never an input), a label, the restored
utterance, which is empty if the label is 0: u5 is complete already. The original release: `.sr` lines
`u1 <split> u2 <split> u3 <split> u4 || u5 | ...`, where what follows the last bar is an annotation and no input, beside
`.tr` lines with the restored utterance, every character apart; an empty `.tr` line means that u5 is complete.

If the train file is absent, the validation file serves: `train` and `dev` are carved from it, `valid` is all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from teo.data.files import NOT_UTF8, PARTS, find_part, read_lines
from teo.data.reader import Entry, Skipped
from teo.data.row import Row
from teo.data.splits import DEV_SHARE, PUBLISHED, Source, Splits, of_one_file, of_unnamed_file
from teo.dialogue import Dialogue
from teo.errors import DataError
from teo.units import join_units

_COLUMNS = 8
_SOURCE, _TARGET = ".sr", ".tr"
_VALID = Source("valid")


class Res200kReader:
    """Rows of `train`, `valid` and `test`, as `.txt` or as a pair of `.sr` and `.tr`."""

    name = "res200k"
    file_format = "lines of 8 tab columns, or a pair of .sr and .tr files (RES200K)"
    options: Mapping[str, tuple[str, ...]] = {}

    def splits(self, path: Path) -> Splits:
        """Return the published parts, and train and dev carved from the validation file if train is absent."""
        if path.is_file() and path.stem not in PARTS:
            return {**of_unnamed_file("valid"), "valid": (_VALID,)}
        train = any((path / f"train{suffix}").is_file() for suffix in (".txt", _SOURCE))
        if train or path.stem == "train":
            splits = {**PUBLISHED, "dev": (_VALID,), "valid": (_VALID,)}
            splits |= {"train+dev": (Source("train"), _VALID), "all": (Source("train"), _VALID, Source("test"))}
        else:
            carved, rest = Source("valid", end=DEV_SHARE), Source("valid", start=DEV_SHARE)
            splits = {"train": (rest,), "dev": (carved,), "train+dev": (_VALID,), "valid": (_VALID,)}
            splits |= {"test": (Source("test"),), "all": (_VALID, Source("test"))}
        return of_one_file(splits, path.stem) if path.is_file() else splits

    def locate(self, path: Path, part: str) -> Path:
        """Return the tab file or the `.sr` file of a part."""
        return find_part(path, part, (f"{part}.txt", f"{part}{_SOURCE}"))

    def read(self, file: Path, part: str, options: Mapping[str, str]) -> Iterator[Entry | Skipped]:
        """Yield the rows of a part in either format."""
        pair = file.suffix in (_SOURCE, _TARGET)
        for number, fields in _read_pair(file) if pair else _read_table(file):
            if isinstance(fields, str):
                yield Skipped(file, str(number), fields)
                continue
            history, utterance, rewrite = fields
            row = Row(f"res200k-{part}-{number:06d}", Dialogue(tuple(history), utterance), rewrite)
            yield Entry(row, group="\t".join([*history, utterance]))


Fields = tuple[list[str], str, str]


def _read_table(file: Path) -> Iterator[tuple[int, Fields | str]]:
    """Yield the fields of each line of a tab file, or the reason why it has none."""
    for number, line in read_lines(file):
        if line is None:
            yield number, NOT_UTF8
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != _COLUMNS:
            yield number, f"expected {_COLUMNS} tab columns, found {len(columns)}"
            continue
        *history, utterance, _next_turn, label, restored = columns
        if label not in ("0", "1"):
            yield number, f"expected the label 0 or 1 in column 7, found '{label}'"
        elif (label == "1") != bool(restored):
            yield (
                number,
                f"expected a restored utterance only if the label is 1, found label {label} and '{restored}'",
            )
        else:
            yield number, (history, utterance, restored or utterance)


def _read_pair(file: Path) -> Iterator[tuple[int, Fields | str]]:
    """Yield the fields of each line of a `.sr` file and the `.tr` file beside it."""
    source, target = file.with_suffix(_SOURCE), file.with_suffix(_TARGET)
    missing = next((name for name in (source, target) if not name.is_file()), None)
    if missing:
        raise DataError(f"{missing}: missing; {file.name} needs the pair {source.name} and {target.name} in one folder")
    sources, targets = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(targets):
        raise DataError(
            f"{source}: expected as many lines as {target.name} has, found {len(sources)} and {len(targets)}; "
            "get both files again"
        )
    for (number, line), (_, restored) in zip(sources, targets, strict=True):
        if line is None or restored is None:
            yield number, NOT_UTF8
            continue
        history, border, current = line.rpartition("||")
        if not border:
            yield number, "expected turns with <split> between, then || and the utterance; found no ||"
            continue
        turns = [_join_characters(turn) for turn in history.split("<split>")]
        utterance = _join_characters(current.rpartition("|")[0] if "|" in current else current)
        yield number, (turns, utterance, _join_characters(restored) or utterance)


def _join_characters(text: str) -> str:
    return join_units(text.split())


RES200K = Res200kReader()
