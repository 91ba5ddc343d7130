import pytest

from teo.data import load_rows, split_names

LINE = "how many towns ?\tand rivers ?\thow many rivers ?\t12\n"


def test_row_is_question_follow_up_and_fused(write):
    [row] = load_rows("followup", write("test.tsv", LINE), "test").rows
    assert (row.id, row.dialogue.history, row.dialogue.utterance, row.rewrite) == (
        "followup-test-0001",
        ("how many towns ?",),
        "and rivers ?",
        "how many rivers ?",
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("how many towns ?\tand rivers ?\t12", "expected 4 tab columns in UTF-8, found 3"),
        ("how many towns ?\t\thow many rivers ?\t12", "expected 4 tab columns in UTF-8, found 3"),
        (
            "how many towns ?\tand rivers ?\thow many ?\ttable",
            "expected the number of a table in column 4, found 'table'",
        ),
    ],
)
def test_malformed_line_is_skipped(write, line, reason):
    file = write("train.tsv", f"{LINE}{line}\n")
    loaded = load_rows("followup", file, "train+dev")
    assert len(loaded.rows) == 1
    assert [str(item) for item in loaded.skipped] == [f"{file}:2: {reason}"]


def test_splits(write):
    write("test.tsv", LINE)
    folder = write("train.tsv", "".join(LINE.replace("towns", f"town{n % 50}") for n in range(100))).parent
    sizes = {split: len(load_rows("followup", folder, split).rows) for split in split_names("followup", folder)}
    assert sizes["train"] + sizes["dev"] == sizes["train+dev"] == 100
    assert sizes["dev"] % 2 == 0, "rows with one first question stay together"
    assert (sizes["test"], sizes["all"]) == (1, 101)
    assert len(load_rows("followup", folder / "test.tsv", "all").rows) == 1
