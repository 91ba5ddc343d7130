import json

import pytest

from teo.data import load_rows, split_names
from teo.errors import DataError

TEXT = "A Town\tHistory\tWhen was it built?\tIn 1900.\tBy whom?\tBy whom was A Town built?\n"
ITEM = {
    "History": ["A Town", "History", "When was it built?", "In 1900."],
    "QuAC_dialog_id": "C_1_0",
    "Question": "By whom?",
    "Question_no": 2,
    "Rewrite": "By whom was A Town built?",
}


def partial(write, questions, rewrites, answers, folder="train_partial"):
    for name, lines in (("question", questions), ("rewrite", rewrites), ("answer.tokens", answers)):
        file = write(f"{folder}/train.{name}.tsv", "\n".join(lines) + "\n")
    return file.parent


def test_json_and_text_give_the_same_dialogue(write):
    write("dev.json", json.dumps([ITEM]))
    folder = write("test.txt", TEXT).parent
    [from_json], [from_text] = (load_rows("canard", folder, split).rows for split in ("dev", "test"))
    assert from_json.dialogue == from_text.dialogue
    assert from_json.dialogue.history == ("A Town", "History", "When was it built?", "In 1900.")
    assert from_json.rewrite == from_text.rewrite == "By whom was A Town built?"
    assert (from_json.id, from_text.id) == ("C_1_0_q#1", "canard-test-00001"), (
        "JSON counts questions from 1, ids from 0"
    )


def test_json_is_preferred_to_text(write):
    write("dev.txt", TEXT)
    folder = write("dev.json", json.dumps([ITEM])).parent
    assert load_rows("canard", folder, "dev").rows[0].id == "C_1_0_q#1"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "A Town\tHistory\tWhy?",
            "expected an even number of filled tab columns in UTF-8, at least 4; found 3 filled of 3",
        ),
        ("A Town\tHistory", "expected an even number of filled tab columns in UTF-8, at least 4; found 2 filled of 2"),
        (
            "A Town\tHistory\t\tWhy?",
            "expected an even number of filled tab columns in UTF-8, at least 4; found 3 filled of 4",
        ),
        ("A Town\tHistory\tWhy?\t12", "expected a rewritten question in the last column, found '12'"),
    ],
)
def test_malformed_text_line_is_skipped(write, line, reason):
    file = write("dev.txt", f"{TEXT}{line}\n")
    loaded = load_rows("canard", file, "dev")
    assert len(loaded.rows) == 1
    assert [str(item) for item in loaded.skipped] == [f"{file}:2: {reason}"]


@pytest.mark.parametrize(
    "item",
    [
        {**ITEM, "Question_no": "two"},
        {key: value for key, value in ITEM.items() if key != "Rewrite"},
        {**ITEM, "History": None},
        {**ITEM, "Question": 7},
        "no object",
    ],
)
def test_malformed_json_item_is_skipped(write, item):
    file = write("dev.json", json.dumps([ITEM, item]))
    loaded = load_rows("canard", file, "dev")
    assert len(loaded.rows) == 1
    assert str(loaded.skipped[0]) == (
        f"{file}:[1]: expected an object with QuAC_dialog_id, Question_no, History (a list), Question and Rewrite"
    )


def test_partial_train_files_give_questions_and_key_words_as_history(write):
    folder = partial(
        write,
        ["C_1_0_q#0\twhen was it built", "C_1_0_q#1\tby whom", "C_1_0_q#2\twhy", "C_2_0_q#0\twhere"],
        ["C_1_0_q#0\tWhen was it built?", "C_1_0_q#1\tBy whom was it built?", "C_1_0_q#2\tWhy?", "C_2_0_q#0\tWhere?"],
        ["C_1_0_q#0\ttown | year", "C_1_0_q#1\t"],
    )
    expected = [
        (),
        ("when was it built", "town year"),
        ("when was it built", "town year", "by whom"),  # an answer without key words is no turn
        (),  # another dialogue
    ]
    for path in (folder, folder.parent):
        assert [row.dialogue.history for row in load_rows("canard", path, "train").rows] == expected


def test_partial_question_without_rewrite_is_skipped(write):
    folder = partial(
        write, ["C_1_0_q#0\twhere", "C_1_0_q#1\twhy", "odd\twho"], ["C_1_0_q#0\tWhere?", "odd\tWho?"], ["x\t"]
    )
    loaded = load_rows("canard", folder, "train")
    assert [row.id for row in loaded.rows] == ["C_1_0_q#0"]
    reason = "expected an id C_..._q#n with a question, and its rewrite in train.rewrite.tsv"
    file = folder / "train.question.tsv"
    assert [str(item) for item in loaded.skipped] == [f"{file}:C_1_0_q#1: {reason}", f"{file}:odd: {reason}"]


def test_grounded_rows_take_their_words_from_the_dialogue(write):
    folder = partial(
        write,
        ["C_1_0_q#0\twhere did unitas play", "C_1_0_q#1\twhy there", "C_1_0_q#2\tWho won?", "C_1_0_q#3\todd"],
        [
            "C_1_0_q#0\tWhere did Johnny Unitas play?",
            "C_1_0_q#1\tWhy did Unitas play for the colts there?",
            "C_1_0_q#2\tWho won?",
        ],
        ["C_1_0_q#0\tthe Colts | for"],
    )
    loaded = load_rows("canard", folder, "train", rows="grounded")
    assert [(row.id, row.dialogue.utterance, row.rewrite) for row in loaded.rows] == [
        # q#0 is left out: "Johnny" stands nowhere; case is the dialogue's, the question gets the final mark
        ("C_1_0_q#1", "why there?", "why did unitas play for the Colts there?"),
        ("C_1_0_q#2", "Who won?", "Who won?"),
    ]
    assert len(loaded.skipped) == 1, "a malformed row is reported in this form too"


def test_partial_line_without_tab_is_an_error(write):
    folder = partial(write, ["C_1_0_q#0\twhere", "no tab"], ["C_1_0_q#0\tWhere?"], ["C_1_0_q#0\tx"])
    with pytest.raises(
        DataError, match=r"train\.question\.tsv:2: expected an id, a tab and text in UTF-8; get the file"
    ):
        load_rows("canard", folder, "train")


def test_all_is_every_part_that_is_there(write):
    folder = write("test.txt", TEXT).parent
    assert len(load_rows("canard", folder, "all").rows) == 1
    write("dev.txt", TEXT)
    assert len(load_rows("canard", folder, "all").rows) == 2
    assert split_names("canard", folder) == ("train", "dev", "train+dev", "test", "all")


def test_file_of_another_name_is_carved(write):
    file = write("mine.txt", "".join(TEXT.replace("A Town", f"Town {n}") for n in range(50)))
    sizes = {split: len(load_rows("canard", file, split).rows) for split in split_names("canard", file)}
    assert sizes["train"] + sizes["dev"] + sizes["test"] == sizes["all"] == 50
    assert sizes["train+dev"] == 50 - sizes["test"] < 50
    assert sizes["dev"] > 0
