"""Recognises the format of a dataset file by its first bytes, for the error on a file of another format."""

from __future__ import annotations

from pathlib import Path

ADVICE = "check the name of the dataset and the path"
_JSON_KEYS = {"dial": "task", "Rewrite": "canard", "utterance": "jsonl", "messages": "jsonl"}


def wrong_format(file: Path, file_format: str, name: str) -> str:
    """Return the sentence for a file of another format: what was expected, what was found, what to do."""
    found, dataset = describe(file)
    if dataset == name:
        advice = "give the file its published name and ending"
    elif dataset:
        found, advice = f"{found}, the format of the dataset '{dataset}'", f"use '{dataset}' instead"
    else:
        advice = ADVICE
    return f"{file}: expected {file_format}, found {found}; {advice}"


def describe(file: Path) -> tuple[str, str | None]:
    """Return what a file holds, in words, and the dataset that is published in that format."""
    with file.open("rb") as stream:
        head = stream.read(1 << 16).decode(errors="replace").lstrip("\ufeff \t\r\n")
    if not head:
        return "an empty file", None
    if "\0" in head:
        return "a binary file", None
    if head[0] in "[{":
        dataset = next((name for key, name in _JSON_KEYS.items() if f'"{key}"' in head), None)
        return ("a JSON array" if head[0] == "[" else "JSON objects"), dataset
    return _describe_line(head.splitlines()[0])


def _describe_line(line: str) -> tuple[str, str | None]:
    columns = line.split("\t")
    if len(line.split("\t\t")) == 4 and len(columns) == 7:
        return "lines of four columns with a double tab between", "rewrite"
    if len(columns) == 8 and columns[6] in ("0", "1"):
        return "lines of 8 tab columns", "res200k"
    if len(columns) == 4 and columns[3].strip().isdecimal():
        return "lines of 4 tab columns, the last a number", "followup"
    if len(columns) > 1:
        return f"lines of {len(columns)} tab columns", None
    return ("lines of turns with || before the last", "res200k") if "||" in line else ("plain lines", None)
