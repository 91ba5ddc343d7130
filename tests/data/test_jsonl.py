import json

import pytest

from teo.data import load_rows
from teo.errors import DataError

ROW = {"id": "a", "history": ["Hi "], "utterance": "And you?", "rewrite": "And how are you?"}


def lines(count, **more):
    return "".join(json.dumps({**ROW, "id": str(n), "utterance": f"And {n}?", **more}) + "\n" for n in range(count))


def test_text_is_taken_exactly_as_it_is(write):
    [row] = load_rows("jsonl", write("rows.jsonl", json.dumps(ROW)), "all").rows
    assert row.to_dict() == ROW


def test_messages_and_missing_id(write):
    row = {"messages": [{"role": "user", "content": "Hi"}, {"role": "user", "content": "And?"}], "rewrite": "And what?"}
    [read] = load_rows("jsonl", write("rows.jsonl", json.dumps(row)), "all").rows
    assert read.to_dict() == {"id": "1", "history": ["Hi"], "utterance": "And?", "rewrite": "And what?"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "expected a JSON object, found text that is not JSON"),
        ('{"utterance": "x"}', "rewrite: expected a string with the complete utterance"),
        ('{"rewrite": "x"}', "utterance: missing"),
        ('{"history": "x", "utterance": "x", "rewrite": "x"}', "history: expected a list of strings"),
        ("[1]", "expected a JSON object with history and utterance"),
        ("", "expected a JSON object, found text that is not JSON"),
    ],
)
def test_malformed_line_is_skipped_with_line_and_field(write, line, reason):
    file = write("rows.jsonl", f"{json.dumps(ROW)}\n{line}\n{json.dumps(ROW)}\n")
    loaded = load_rows("jsonl", file)
    assert len(loaded.rows) == 2
    assert str(loaded.skipped[0]).startswith(f"{file}:2: {reason}")


def test_bytes_that_are_not_utf8_are_skipped(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(json.dumps(ROW).encode() + b"\n\xff")
    assert str(load_rows("jsonl", file).skipped[0]) == f"{file}:2: expected UTF-8, found other bytes"


@pytest.mark.parametrize(
    ("files", "split", "size", "reason"),
    [
        ({"train": 100, "dev": 5, "test": 3}, "train", 100, "a dev file: train is whole"),
        ({"train": 100, "dev": 5, "test": 3}, "dev", 5, "the dev file"),
        ({"train": 100, "dev": 5, "test": 3}, "all", 108, "every file"),
        ({"train": 100, "test": 3}, "train+dev", 100, "no dev file: carved from train"),
        ({"train": 100, "test": 3}, "all", 103, "every file that is there"),
        ({"test": 3}, "all", 3, "every file that is there"),
    ],
)
def test_folder(write, files, split, size, reason):
    for part, count in files.items():
        folder = write(f"{part}.jsonl", lines(count)).parent
    assert len(load_rows("jsonl", folder, split).rows) == size, reason


def test_dev_is_carved_from_a_single_file_or_from_train(write):
    for file in (write("rows.jsonl", lines(100)), write("train.jsonl", lines(100)).parent):
        train, dev = ({row.id for row in load_rows("jsonl", file, split).rows} for split in ("train", "dev"))
        assert train.isdisjoint(dev)
        assert len(train | dev) == 100
        assert dev


@pytest.mark.parametrize(("name", "split"), [("dev.jsonl", "dev"), ("valid.jsonl", "dev"), ("test.jsonl", "all")])
def test_file_named_after_a_part_is_that_part(write, name, split):
    assert len(load_rows("jsonl", write(name, lines(20)), split).rows) == 20


def test_file_named_after_another_part_is_refused(write):
    file = write("test.jsonl", lines(2))
    with pytest.raises(DataError, match="expected the train part, found a file named after the test part; pass the"):
        load_rows("jsonl", file, "train")
