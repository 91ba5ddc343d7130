import pytest

from teo.data import load_rows, split_names
from teo.errors import DataError

INCOMPLETE = "甲\t乙\t丙\t丁\t去哪\t下一句\t1\t你去哪"
COMPLETE = "甲\t乙\t丙\t丁\t我去北京\t下一句\t0\t"


def table(count, label="句"):
    return "\n".join(f"甲{n}\t乙\t丙\t丁\t{label}\t好\t1\t这{label}{n}" for n in range(count))


def test_tab_file_gives_four_turns_and_never_the_next_one(write):
    file = write("test.txt", f"{INCOMPLETE}\n{COMPLETE}\n")
    first, second = load_rows("res200k", file, "test").rows
    assert (first.id, first.dialogue.history, first.dialogue.utterance, first.rewrite) == (
        "res200k-test-000001",
        ("甲", "乙", "丙", "丁"),
        "去哪",
        "你去哪",
    )
    assert second.rewrite == second.dialogue.utterance == "我去北京", "label 0: complete already"
    assert second.is_complete


def test_empty_turns_are_kept_as_published(write):
    [row] = load_rows("res200k", write("test.txt", "甲\t\t丙\t丁\t\t好\t1\t你去哪"), "test").rows
    assert row.dialogue.history == ("甲", "", "丙", "丁")
    assert row.dialogue.utterance == ""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("甲\t乙", "expected 8 tab columns, found 2"),
        (INCOMPLETE.replace("\t1\t", "\t2\t"), "expected the label 0 or 1 in column 7, found '2'"),
        (
            INCOMPLETE.replace("\t1\t", "\t0\t"),
            "expected a restored utterance only if the label is 1, found label 0 and '你去哪'",
        ),
        (
            COMPLETE.replace("\t0\t", "\t1\t"),
            "expected a restored utterance only if the label is 1, found label 1 and ''",
        ),
    ],
)
def test_malformed_line_is_skipped(write, line, reason):
    file = write("test.txt", f"{INCOMPLETE}\n{line}\n")
    assert [str(item) for item in load_rows("res200k", file, "test").skipped] == [f"{file}:2: {reason}"]


def test_bytes_that_are_not_utf8_are_skipped_in_both_forms(tmp_path):
    (tmp_path / "test.txt").write_bytes(INCOMPLETE.encode() + b"\n\xff")
    (tmp_path / "valid.sr").write_bytes("甲 || 去 哪\n甲 || 去 哪".encode())
    (tmp_path / "valid.tr").write_bytes("你 去 哪\n".encode() + b"\xff")
    for split, file in (("test", "test.txt"), ("valid", "valid.sr")):
        [skipped] = load_rows("res200k", tmp_path, split).skipped
        assert str(skipped) == f"{tmp_path / file}:2: expected UTF-8, found other bytes"


@pytest.mark.parametrize(
    ("source", "target", "expected", "reason"),
    [
        (
            "甲 乙 <split> 丙 || 去 哪 | 你",
            "你 去 哪",
            (("甲乙", "丙"), "去哪", "你去哪"),
            "with an annotation",
        ),
        ("甲 <split> 丙 || 去 哪", "你 去 哪", (("甲", "丙"), "去哪", "你去哪"), "no annotation"),
        ("甲 || 我 去 北 京 | ", "", (("甲",), "我去北京", "我去北京"), "nothing restored: complete"),
        ("see you || ok 好 | x", "ok bye 好", (("see you",), "ok好", "ok bye好"), "words keep their spaces"),
    ],
)
def test_original_release_is_a_pair_of_files(write, source, target, expected, reason):
    write("test.tr", f"{target}\n")
    file = write("test.sr", f"{source}\n")
    for path in (file, file.with_suffix(".tr"), file.parent):
        [row] = load_rows("res200k", path, "test").rows
        assert (row.dialogue.history, row.dialogue.utterance, row.rewrite) == expected, reason


def test_pair_line_without_border_is_skipped(write):
    write("test.tr", "你 去 哪\n你 去 哪\n")
    file = write("test.sr", "甲 || 去 哪\n甲 去 哪\n")
    [skipped] = load_rows("res200k", file, "test").skipped
    assert str(skipped) == f"{file}:2: expected turns with <split> between, then || and the utterance; found no ||"


def test_pair_needs_both_files_of_one_length(write):
    source = write("test.sr", "甲 || 去\n")
    with pytest.raises(DataError, match=r"test\.tr: missing; test\.sr needs the pair test\.sr and test\.tr"):
        load_rows("res200k", source, "test")
    write("test.tr", "去\n哪\n")
    with pytest.raises(DataError, match=r"expected as many lines as test\.tr has, found 1 and 2; get both files again"):
        load_rows("res200k", source, "test")


def test_validation_file_serves_as_train_where_train_is_absent(write):
    write("test.txt", table(3))
    folder = write("valid.txt", table(200)).parent
    sizes = {split: len(load_rows("res200k", folder, split).rows) for split in split_names("res200k", folder)}
    assert sizes["train"] + sizes["dev"] == sizes["train+dev"] == sizes["valid"] == 200
    assert (sizes["test"], sizes["all"]) == (3, 203)
    assert 5 < sizes["dev"] < 40


@pytest.mark.parametrize("name", ["train.txt", "train.sr"])
def test_published_train_file_is_train_and_validation_is_dev(write, name):
    write("valid.txt", table(5))
    write("test.txt", table(3))
    if name == "train.sr":
        write("train.tr", "\n".join(["你 去 哪"] * 7))
        folder = write(name, "\n".join(["甲 || 去 哪"] * 7)).parent
    else:
        folder = write(name, table(7)).parent
    sizes = {split: len(load_rows("res200k", folder, split).rows) for split in split_names("res200k", folder)}
    assert sizes == {"train": 7, "dev": 5, "valid": 5, "train+dev": 12, "test": 3, "all": 15}


@pytest.mark.parametrize(
    ("name", "split", "rows", "reason"),
    [
        ("test.txt", "all", 9, "all of a file is that file"),
        ("train.txt", "all", 9, "all of a file is that file"),
        ("mine.txt", "valid", 9, "a file of another name is read as the validation file"),
        ("mine.txt", "all", 9, "all of a file is that file"),
        ("mine.txt", "train", None, "a file of another name has rows to train on and others"),
        ("valid.txt", "dev", None, "carved from valid"),
    ],
)
def test_single_file(write, name, split, rows, reason):
    loaded = load_rows("res200k", write(name, table(9, "话")), split)
    assert len(loaded.rows) == rows if rows else 0 < len(loaded.rows) < 9, reason
