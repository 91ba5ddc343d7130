import pytest

from teo.data import Row
from teo.data.stats import Counts, count_rows, dataset_stats, format_stats
from teo.dialogue import Dialogue
from teo.errors import DataError

ROWS = [
    Row("1", Dialogue(("Is Ben here ?", "yes"), "he said so"), "Ben said so to me"),  # a replacement, an insertion
    Row("2", Dialogue((), "go on then"), "go on"),  # a pure deletion
    Row("3", Dialogue(("你去哪",), "好的"), "好的"),  # complete
]


def test_counts_by_hand():
    assert count_rows(ROWS) == Counts(
        rows=3,
        complete=1,
        units=(4 + 1 + 0 + 3, 3 + 3 + 2, 5 + 2 + 2),
        characters=(13 + 3 + 0 + 3, 10 + 10 + 2, 17 + 5 + 2),
        insertions=1,
        replacements=1,
        deletions=1,
    )


def test_counts_add_up():
    assert count_rows(ROWS[:1]) + count_rows(ROWS[1:]) == count_rows(ROWS)


def test_averages_and_shares():
    numbers = count_rows(ROWS).to_dict()
    assert numbers["avg_context_units"] == pytest.approx(8 / 3)
    assert numbers["avg_rewrite_characters"] == pytest.approx(8)
    assert numbers["complete"] == pytest.approx(1 / 3)
    assert Counts().to_dict()["avg_current_units"] == 0, "no rows, no division"


def rewrite_corpus(write):
    lines = [f"甲{n}\t\t乙\t\t去哪\t\t你去哪" for n in range(18_003)]
    lines[6] = "bad"
    return write("corpus.txt", "\n".join(lines))


def test_splits_are_disjoint_and_all_is_their_sum(write):
    stats = dataset_stats("rewrite", rewrite_corpus(write))
    assert list(stats.splits) == ["train", "dev", "test", "all"]
    rows = {split: counts.rows for split, counts in stats.splits.items()}
    assert rows["train"] + rows["dev"] == 17_999
    assert (rows["test"], rows["all"]) == (3, 18_002)
    assert len(stats.skipped) == 1, "train and dev report the same line once"
    table = format_stats(stats)
    assert table.splitlines()[0].split() == ["rewrite", "train", "dev", "test", "all", "paper"]
    insertions = next(line for line in table.splitlines() if line.startswith("insertions"))
    assert insertions.split()[-2:] == ["18,002", "14,070"]
    assert "the paper's dev and test are the same 2,000 lines" in table


def test_json_holds_the_paper_and_the_notes(write):
    data = dataset_stats("rewrite", rewrite_corpus(write)).to_dict()
    assert data["paper"]["insertions"] == 14070
    assert data["splits"]["test"]["rows"] == 3
    assert data["skipped"][0].endswith("corpus.txt:7: expected 4 columns with a double tab between, found 1")
    assert len(data["notes"]) == 3


def test_single_file_has_one_column_and_no_paper(write):
    file = write("rows.jsonl", '{"history": ["a"], "utterance": "b", "rewrite": "b c"}\n')
    stats = dataset_stats("jsonl", file)
    assert list(stats.splits) == ["all"]
    assert stats.to_dict()["paper"] is None
    table = format_stats(stats)
    assert "paper" not in table
    assert next(line for line in table.splitlines() if line.startswith("complete")).split() == ["complete", "0.0%"]


def test_parts_that_are_missing_are_left_out(write):
    folder = write("test.txt", "A Town\tHistory\tWhy?\tWhy was A Town built?\n").parent
    assert list(dataset_stats("canard", folder).splits) == ["test", "all"]


def test_no_part_at_all_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"expected test\.json or test\.txt in this folder"):
        dataset_stats("canard", tmp_path)


def test_strict_and_options_reach_the_reader(write, task_file):
    with pytest.raises(DataError, match="1 malformed in all"):
        dataset_stats("rewrite", rewrite_corpus(write), strict=True)
    turns = [("Where is it ?", "Where ?", "Where it ?", "There.")]
    file = task_file([(number, turns) for number in (*range(20), 600)])
    counts = [dataset_stats("task", file, forms=forms).splits["all"].rows for forms in ("one", "both")]
    assert counts == [21, 42]
