import pytest

from teo.data import load_rows

TURNS = [
    ("Find a cheap place .", "", "", "There are two . "),
    (" Where is the cheap place ? ", "Where ?", "Where is it ?", "In the south."),
    ("Is the cheap place open ?", "", "Is it open ?", "Yes."),
]


def test_history_is_complete_turns_and_answers(task_file):
    rows = load_rows("task", task_file([(3, TURNS)]), "train+dev").rows
    assert [row.id for row in rows] == ["task-003-0", "task-003-1", "task-003-2"]
    assert [row.dialogue.utterance for row in rows] == ["Find a cheap place .", "Where ?", "Is it open ?"]
    assert [row.rewrite for row in rows] == [
        "Find a cheap place .",
        "Where is the cheap place ?",
        "Is the cheap place open ?",
    ]
    assert rows[0].dialogue.history == ()
    assert rows[2].dialogue.history == (
        "Find a cheap place .",
        "There are two .",
        "Where is the cheap place ?",
        "In the south.",
    )


@pytest.mark.parametrize(
    ("options", "lengths", "reason"),
    [
        ({}, [0, 2, 4], "the default is the full history, one form"),
        ({"history": "last-two"}, [0, 2, 2], "the last two turns only"),
        ({"forms": "both"}, [0, 2, 2, 4], "two incomplete forms are two rows"),
        ({"forms": "both", "history": "last-two"}, [0, 2, 2, 2], "both options"),
    ],
)
def test_options(task_file, options, lengths, reason):
    rows = load_rows("task", task_file([(3, TURNS)]), "train+dev", **options).rows
    assert [len(row.dialogue.history) for row in rows] == lengths, reason


def test_both_forms_have_ids_and_one_target(task_file):
    rows = load_rows("task", task_file([(3, TURNS)]), "train+dev", forms="both").rows
    assert [(row.id, row.dialogue.utterance) for row in rows[1:]] == [
        ("task-003-1-ellipsis", "Where ?"),
        ("task-003-1-coreference", "Where is it ?"),
        ("task-003-2-coreference", "Is it open ?"),
    ]
    assert rows[1].rewrite == rows[2].rewrite


def test_dialogues_from_540_on_are_test(task_file):
    file = task_file([(540, TURNS[:1]), (0, TURNS[:1]), (539, TURNS[:1]), (675, TURNS[:1])])
    assert [row.id for row in load_rows("task", file, "test").rows] == ["task-540-0", "task-675-0"]
    assert [row.id for row in load_rows("task", file.parent, "train+dev").rows] == ["task-000-0", "task-539-0"]


def test_a_dialogue_is_on_one_side_of_the_carved_split(task_file):
    file = task_file([(number, TURNS) for number in range(200)])
    sides = [{row.id[:8] for row in load_rows("task", file, split).rows} for split in ("train", "dev")]
    assert sides[0].isdisjoint(sides[1])
    assert len(sides[0]) + len(sides[1]) == 200


def test_malformed_turn_ends_its_dialogue(task_file):
    broken = {"dialogue_id": 1, "dial": [{"usr": {"transcript_complete": "Hi"}, "sys": {"sent": "Hello"}}, {}]}
    file = task_file([broken, (2, TURNS), {"dialogue_id": "3", "dial": []}, ["no dialogue"]])
    loaded = load_rows("task", file, "train+dev")
    assert len(loaded.rows) == 3
    turn, number, kind = (str(item) for item in loaded.skipped)
    assert turn == (
        f"{file}:[0].dial[0]: expected usr with transcript_complete, transcript_with_ellipsis, "
        "transcript_with_coreference and sys with sent; this turn and the 1 after it are left out"
    )
    assert number == f"{file}:[2]: expected an object with a number dialogue_id and a list dial"
    assert kind.startswith(f"{file}:[3]: expected an object")
