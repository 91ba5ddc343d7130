import pytest

from teo.data import Row, load_rows
from teo.dialogue import Dialogue

GOOD = "你去哪\t\t去北京\t\t为什么去\t\t为什么去北京"


def test_row_has_two_turns_of_history(write):
    [row] = load_rows("rewrite", write("corpus.txt", f"{GOOD}\n").parent, "train+dev").rows
    assert row == Row("rewrite-00001", Dialogue(("你去哪", "去北京"), "为什么去"), "为什么去北京")
    assert row.to_dict() == {
        "id": "rewrite-00001",
        "history": ["你去哪", "去北京"],
        "utterance": "为什么去",
        "rewrite": "为什么去北京",
    }
    assert not row.is_complete


def test_white_space_at_the_ends_is_stripped_and_kept_inside(write):
    file = write("corpus.txt", " 你去哪 \t\t去 北京\t\t为什么去\t\t为什么去北京 \r\n")
    [row] = load_rows("rewrite", file, "all").rows
    assert (row.dialogue.history, row.rewrite) == (("你去哪", "去 北京"), "为什么去北京")


@pytest.mark.parametrize(
    ("line", "found", "reason"),
    [
        ("你去哪\t\t\t\t为什么去\t\t为什么去北京", 3, "an empty turn, as in two lines of the published file"),
        ("你去哪\t\t为什么去\t\t为什么去北京", 3, "a column missing"),
        (f"{GOOD}\t\t还有", 5, "a column too many"),
        ("", 0, "an empty line in the middle"),
        (GOOD.replace("\t\t", "\t"), 1, "single tabs"),
    ],
)
def test_malformed_line_is_skipped_with_its_place(write, line, found, reason):
    file = write("corpus.txt", f"{GOOD}\n{line}\n{GOOD}\n")
    loaded = load_rows("rewrite", file, "all")
    assert [row.id for row in loaded.rows] == ["rewrite-00001", "rewrite-00003"], reason
    [skipped] = loaded.skipped
    assert str(skipped) == f"{file}:2: expected 4 columns with a double tab between, found {found}"


def test_bytes_that_are_not_utf8_are_one_skipped_line(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\n\xff\xfe\n")
    loaded = load_rows("rewrite", file)
    assert loaded.rows[0].dialogue.history[0] == "你去哪", "a byte order mark is no text"
    assert str(loaded.skipped[0]) == f"{file}:2: expected UTF-8, found other bytes"


def test_border_between_train_and_test_is_a_line_number(write):
    lines = [f"甲{n}\t\t乙\t\t丙\t\t丙丁" for n in range(1, 18_004)]
    lines[4] = "malformed"  # counts as a line: the border does not move
    folder = write("corpus.txt", "\n".join(lines)).parent
    train, test = load_rows("rewrite", folder, "train+dev"), load_rows("rewrite", folder, "test")
    assert (len(train.rows), train.rows[-1].id, len(train.skipped)) == (17_999, "rewrite-18000", 1)
    assert [row.id for row in test.rows] == ["rewrite-18001", "rewrite-18002", "rewrite-18003"]
    assert test.skipped == (), "the malformed line belongs to train"


def test_rows_with_one_context_and_utterance_are_on_one_side(write):
    lines = [f"甲{n % 300}\t\t乙\t\t丙\t\t丙{n}" for n in range(900)]
    folder = write("corpus.txt", "\n".join(lines)).parent
    sides = [{row.dialogue for row in load_rows("rewrite", folder, split).rows} for split in ("train", "dev")]
    assert sides[0].isdisjoint(sides[1])
    assert len(sides[0]) + len(sides[1]) == 300
