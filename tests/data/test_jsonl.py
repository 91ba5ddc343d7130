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
        (
            '{"history": [], "utterance": "x"}',
            'rewrite: missing; a row needs the complete utterance as "rewrite" (or a list as',
        ),
        ('{"history": [], "utterance": "x", "rewrite": 3}', "rewrite: expected a string with the complete utterance"),
        (
            '{"history": [], "utterance": "x", "rewrites": "x"}',
            "rewrites: expected a list of strings with the complete utterance",
        ),
        (
            '{"history": [], "utterance": "x", "rewrites": []}',
            "rewrites: expected a list of strings with the complete utterance",
        ),
        (
            '{"history": [], "utterance": "x", "rewrites": ["y"], "rewrite": "z"}',
            "rewrites: expected the rewrite first, as the",
        ),
        ('{"rewrite": "x"}', "utterance: missing"),
        ('{"history": "x", "utterance": "x", "rewrite": "x"}', "history: expected a list of strings"),
        ("[1]", "expected a JSON object with history and utterance"),
        ("", "expected a JSON object, found text that is not JSON"),
        ('{"id": 1' + "0" * 5000 + "}", "expected a JSON object, found text that is not JSON"),
        ('{"id": ' + "[" * 100_000, "expected a JSON object, found text that is not JSON"),
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


def ids(path, split):
    return {row.id for row in load_rows("jsonl", path, split).rows}


@pytest.mark.parametrize("name", ["train.jsonl", ""])
def test_dev_is_carved_from_train(write, name):
    folder = write("train.jsonl", lines(100)).parent
    train, dev = (ids(folder / name, split) for split in ("train", "dev"))
    assert train.isdisjoint(dev)
    assert train | dev == ids(folder / name, "train+dev")
    assert len(train | dev) == 100
    assert dev


def test_no_row_of_a_single_file_is_in_two_splits(write):
    file = write("rows.jsonl", lines(200))
    train, dev, test = (ids(file, split) for split in ("train", "dev", "test"))
    assert len(train) + len(dev) + len(test) == 200 == len(train | dev | test) == len(ids(file, "all"))
    assert train | dev == ids(file, "train+dev")
    assert 10 < len(test) < 35
    assert [row.id for row in load_rows("jsonl", file).rows] == [str(n) for n in range(200)], "in the file's order"


def test_a_single_file_too_small_for_a_split_says_which_has_every_row(write):
    file = write("rows.jsonl", json.dumps(ROW))  # its row is for training
    with pytest.raises(DataError, match=r"the split 'test' of jsonl has no rows .*; choose another, or all"):
        load_rows("jsonl", file, "test")


SEVERAL = {"id": "a", "history": ["Hi"], "utterance": "And you?", "rewrites": ["And how are you?", "How are you?"]}


@pytest.mark.parametrize("row", [SEVERAL, {**SEVERAL, "rewrite": "And how are you?"}], ids=["list", "both"])
def test_the_first_of_several_rewrites_is_the_reference(write, row):
    [read] = load_rows("jsonl", write("rows.jsonl", json.dumps(row)), "all").rows
    assert (read.rewrite, read.references) == ("And how are you?", ("How are you?",))
    [again] = load_rows("jsonl", write("again.jsonl", json.dumps(read.to_dict())), "all").rows
    assert again == read


def test_a_file_of_rows_without_rewrites_is_told_so(write):
    file = write("rows.jsonl", '{"history": [], "utterance": "x"}\n' * 3)
    with pytest.raises(DataError, match=r"rows\.jsonl:1: rewrite: missing; a row needs .* \(no row of this file can"):
        load_rows("jsonl", file)


@pytest.mark.parametrize(("name", "split"), [("dev.jsonl", "dev"), ("valid.jsonl", "dev"), ("test.jsonl", "all")])
def test_file_named_after_a_part_is_that_part(write, name, split):
    assert len(load_rows("jsonl", write(name, lines(20)), split).rows) == 20


def test_file_named_after_another_part_is_refused(write):
    file = write("test.jsonl", lines(2))
    with pytest.raises(DataError, match="expected the train part, found a file named after the test part; pass the"):
        load_rows("jsonl", file, "train")
