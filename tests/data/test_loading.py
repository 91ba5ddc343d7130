import json
import re

import pytest

from teo.data import READERS, load_rows
from teo.errors import DataError, InputError

REWRITE = "你去哪\t\t去北京\t\t为什么去\t\t为什么去北京\n"
RES200K = "甲\t乙\t丙\t丁\t去哪\t下一句\t1\t你去哪\n"
TASK = json.dumps([{"dialogue_id": 1, "dial": []}])
CANARD = json.dumps([{"History": [], "Question": "x", "Rewrite": "y"}])
FOLLOWUP = "how many towns ?\tand rivers ?\thow many rivers ?\t12\n"
JSONL = json.dumps({"history": [], "utterance": "x", "rewrite": "y"})


@pytest.mark.parametrize(
    ("name", "file", "text", "found"),
    [
        ("rewrite", "corpus.txt", TASK, "a JSON array, the format of the dataset 'task'; use 'task' instead"),
        ("rewrite", "corpus.txt", RES200K, "lines of 8 tab columns, the format of the dataset 'res200k'; use"),
        ("rewrite", "corpus.txt", "hello\n", "plain lines; check the name of the dataset and the path"),
        ("rewrite", "corpus.txt", "a\tb\n", "lines of 2 tab columns; check the name"),
        ("rewrite", "corpus.txt", "", "an empty file; check the name of the dataset and the path"),
        ("rewrite", "corpus.txt", "PK\0\1\n", "a binary file; check the name"),
        (
            "task",
            "x.json",
            REWRITE,
            "lines of four columns with a double tab between, the format of the dataset 'rewrite'",
        ),
        ("task", "x.json", CANARD, "a JSON array, the format of the dataset 'canard'"),
        ("task", "x.json", '{"a": 1}', "JSON objects; check the name"),
        ("canard", "dev.json", TASK, "a JSON array, the format of the dataset 'task'"),
        (
            "canard",
            "dev.txt",
            FOLLOWUP,
            "lines of 4 tab columns, the last a number, the format of the dataset 'followup'",
        ),
        (
            "res200k",
            "test.txt",
            "甲 <split> 乙 || 丙 | 丁\n",
            "lines of turns with || before the last; give the file its published name and ending",
        ),
        ("followup", "test.tsv", JSONL, "JSON objects, the format of the dataset 'jsonl'; use 'jsonl' instead"),
        (
            "jsonl",
            "x.jsonl",
            REWRITE,
            "lines of four columns with a double tab between, the format of the dataset 'rewrite'",
        ),
    ],
)
def test_a_wrong_format_is_one_clear_error(write, name, file, text, found):
    path = write(file, text)
    split = path.stem if path.stem in ("dev", "test") else "train+dev"
    with pytest.raises(DataError) as error:
        load_rows(name, path, split)
    message = str(error.value)
    assert message.startswith(f"{path}: expected {READERS[name].file_format}, found {found}")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"dial": [],\n "dialogue_id": ', "x.json:2: expected a JSON array of dialogues"),
        ("not json", "found plain lines; check the name"),
        ("[1" + "0" * 5000 + "]", "x.json: expected a JSON array of dialogues"),
        ("[" * 100_000, "found JSON that cannot be read (maximum recursion depth"),
    ],
)
def test_damaged_json(write, text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        load_rows("task", write("x.json", text))


def test_damaged_json_says_to_get_the_file_again(write):
    with pytest.raises(DataError, match=r"found a JSON array that breaks off or is damaged .*; get the file again"):
        load_rows("task", write("x.json", "[1, 2"))


def test_json_that_is_not_utf8(tmp_path):
    (tmp_path / "x.json").write_bytes(b'["\xff"]')
    with pytest.raises(DataError, match=r"x\.json: expected a JSON array .*, found bytes that are not UTF-8; check"):
        load_rows("task", tmp_path / "x.json")


def test_strict_makes_malformed_rows_an_error_that_counts_them(write):
    file = write("corpus.txt", f"{REWRITE}bad\n{REWRITE}worse\n")
    assert len(load_rows("rewrite", file).skipped) == 2
    expected = f"{file}:2: expected 4 columns with a double tab between, found 1 (2 malformed in all; without strict"
    with pytest.raises(DataError, match=re.escape(expected)):
        load_rows("rewrite", file, strict=True)
    assert load_rows("rewrite", write("corpus.txt", REWRITE), strict=True).skipped == ()


def test_split_without_rows_is_an_error(write):
    file = write("corpus.txt", REWRITE)
    with pytest.raises(DataError, match=r"corpus\.txt: the split 'test' of rewrite has no rows in these files; choose"):
        load_rows("rewrite", file, "test")


@pytest.mark.parametrize(
    ("name", "split", "options", "message"),
    [
        (
            "rerite",
            "all",
            {},
            "dataset: expected one of rewrite, res200k, task, canard, followup, jsonl; found 'rerite'",
        ),
        ("rewrite", "tset", {}, "split: rewrite has train, dev, train+dev, test, all; found 'tset'"),
        ("rewrite", "all", {"history": "full"}, "history: the dataset rewrite has no options; leave it out"),
        ("task", "all", {"turns": "two"}, "turns: the dataset task has history, forms; leave it out"),
        ("task", "all", {"history": "half"}, "history: expected full or last-two; found 'half'"),
    ],
)
def test_user_mistakes_are_named(tmp_path, name, split, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load_rows(name, tmp_path, split, **options)


def test_missing_path_and_wrong_folder(tmp_path, write):
    with pytest.raises(DataError, match=r"nowhere: no such file or folder; pass the dataset's folder or its file"):
        load_rows("rewrite", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"expected corpus\.txt in this folder, found an empty folder; pass"):
        load_rows("rewrite", tmp_path)
    folder = write("CamRest676_annotated.json", TASK).parent
    with pytest.raises(DataError, match=r"expected corpus\.txt in this folder, found CamRest676_annotated\.json; pass"):
        load_rows("rewrite", folder)
