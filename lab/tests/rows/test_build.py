"""Rows made beside the datasets: what each kind takes, what a teacher's label must bear out, the file of a recipe."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import replace
from pathlib import Path

import pytest

from request_files import write_requests
from teo.data import load_rows
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import ConfigError, DataError
from teo.training.config import DataSettings
from teo.training.rows import read_rows
from teo.training.settings import read_settings
from teo.units import holds_cjk
from teo_lab.paths import EVERYDAY
from teo_lab.rows.build import build_rows, make_rows, read_answers
from teo_lab.rows.choices import LONG_REPLY, Language, draw_reply, reactions, replies, reply_length
from teo_lab.rows.labels import find_fault, points_outside, read_labels, read_sampled
from teo_lab.rows.mudoco import dialogue_id, mudoco_rows, part_of
from teo_lab.rows.settings import RowsRecipe
from teo_lab.rows.switches import reaction_rows, row_histories, switch_rows


def _row(name: str, history: str, utterance: str, rewrite: str) -> Row:
    return Row(name, Dialogue(tuple(history.split(" | ")), utterance), rewrite)


ROWS = [
    _row("a", "Who wrote Dune? | Frank Herbert.", "When did he die?", "When did Frank Herbert die?"),
    _row("b", "Is it raining?", "Thanks.", "Thanks."),
    _row("c", "北京天气怎么样 | 晴", "上海呢", "上海天气怎么样"),
    _row("d", "周杰伦是谁 | 歌手", "他多大了", "周杰伦多大了"),
    _row("e", "Do you like tea?", "Why?", "Why do you like tea?"),
]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_lists_are_long_and_some_replies_too(language: Language) -> None:
    assert len(set(reactions(language))) >= 80
    assert len({text for topic, texts in replies(language).items() if topic != "sentences" for text in texts}) >= 40
    rng = random.Random(0)
    lengths = [reply_length(draw_reply(language, "weather", rng), language) for _ in range(600)]
    assert 20 <= sum(length >= LONG_REPLY[language] for length in lengths) <= 90


def test_switches_and_reactions_stay_unchanged_in_the_language_of_their_history() -> None:
    texts = [
        "what is the capital of peru",
        "set an alarm for six",
        "who painted guernica",
        "法国的首都是哪里",
        "怎么做红烧肉",
        "今天星期几",
    ]
    made = list(switch_rows(row_histories(ROWS), texts, 300, seed=5))
    assert made == list(switch_rows(row_histories(ROWS), texts, 300, seed=5))
    assert made != list(switch_rows(row_histories(ROWS), texts, 300, seed=6))
    made += reaction_rows(row_histories(ROWS), 300, seed=5)
    assert len(made) == 600
    for row in made:
        assert row.is_complete
        assert row.dialogue.history
        assert row.dialogue.utterance not in row.dialogue.history
    for row in made[:300]:
        assert holds_cjk(row.dialogue.history[0]) == holds_cjk(row.dialogue.utterance)
    assert any("When did Frank Herbert die?" in row.dialogue.history for row in made)  # complete, not as it was said


@pytest.mark.parametrize(
    ("history", "utterance", "rewrite", "fault"),
    [
        ("Have you seen Dumbo?", "Is it short?", "Is Dumbo short?", None),
        ("Do you like this movie, Dumbo?", "Who made this movie?", "Who made Dumbo?", None),
        ("I like tea.", "Me too.", "Me too!", "only marks or case"),
        ("It is a big house.", "No.", "No big house.", "reaction"),
        ("It has wifi.", "I like the sound of that.", "I like the sound of wifi.", "idiom"),
        ("Which is best? | Tea.", "Coffee then.", "Which is best?", "copy of a turn"),
        ("Are you going to Rome?", "When?", "When to Rome", "marks"),
        ("It was the team.", "Yeah. They really needed it.", "Yeah. the team needed it.", "lost words"),
        ("My sister gets mad.", "How old is your sister?", "How old is your mad my sister?", "speaker"),
        ("Have you seen Dumbo?", "Is it short?", "Is Bambi short?", "word from nowhere"),
        ("have you seen dumbo?", "Is it short?", "Is DUMBO short?", "spelled otherwise"),
        ("She sings with Drake now.", "Did she sing with Drake?", "Did Drake now sing with Drake?", "said twice"),
        ("I like tea.", "Is it?", "Is that it?", "nothing new"),
    ],
)
def test_faults_of_labels(history: str, utterance: str, rewrite: str, fault: str | None) -> None:
    assert find_fault(Dialogue(tuple(history.split(" | ")), utterance), rewrite) == fault


def test_labels_are_taken_by_how_sure_the_teacher_is(tmp_path: Path) -> None:
    changed = {"history": ["Have you seen Dumbo?"], "utterance": "Is it short?", "rewrite": "Is Dumbo short?"}
    kept = {"history": ["Hello."], "utterance": "Who wrote Dune?", "rewrite": "Who wrote Dune?"}
    sure, unsure = {"logprob": -0.2, "lowest": -0.1}, {"logprob": -3.0, "lowest": -2.0}
    labels = [
        {**changed, **unsure},
        {**kept, **sure},
        {**changed, **sure},
        {**kept, **unsure},
        {**kept, **sure},
        {**kept, **sure},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(label) + "\n" for label in labels), encoding="utf-8")
    assert [row.id for row in read_labels(path)] == ["label-3", "label-5"], (
        "one changed row makes room for one kept row"
    )
    path.write_text('{"history": []}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"labels\.jsonl:1: expected the field logprob"):
        list(read_labels(path))


def test_sampled_rows_are_all_taken(tmp_path: Path) -> None:
    path = tmp_path / "sampled.jsonl"
    row = {"history": ["Have you seen Dumbo?"], "utterance": "Is it short?", "rewrite": "Is Dumbo short?"}
    path.write_text(2 * (json.dumps(row) + "\n"), encoding="utf-8")
    made = make_rows(RowsRecipe(sampled=str(path)))
    assert [(each.id, each.rewrite) for each in made] == [
        ("sampled-1", "Is Dumbo short?"),
        ("sampled-2", "Is Dumbo short?"),
    ]


def test_sampled_rows_that_come_with_the_lab() -> None:
    rows = make_rows(RowsRecipe(sampled="own"))
    assert len(rows) == 75_280, "of 76,107; the others point outside and are unchanged"
    assert sum(not row.is_complete for row in rows) == 56_100
    assert all(row.dialogue.history and row.rewrite for row in rows)
    assert len({(row.dialogue.history, row.dialogue.utterance) for row in rows}) == len(rows)


def test_mudoco_dialogues_are_in_one_part_only(tmp_path: Path) -> None:
    rows = [
        _row(f"calling-dial{number}-turn{turn}", "Call Ann.", "Stop.", "Stop.")
        for number in range(60)
        for turn in (2, 4)
    ]
    for name in ("dev", "train"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row.to_dict()) + "\n" for row in rows), encoding="utf-8")
    train, dev = (list(mudoco_rows(tmp_path / "dev.jsonl", part)) for part in ("train", "dev"))
    dialogues = [{dialogue_id(row.id.split(":")[1]) for row in part} for part in (train, dev)]
    assert not dialogues[0] & dialogues[1]
    assert len(train) + len(dev) == len(rows)
    assert 15 <= len(dialogues[0]) <= 45
    assert part_of("calling-dial3-turn2") == part_of("calling-dial3-turn14")
    assert len(list(mudoco_rows(tmp_path / "train.jsonl", "train"))) == len(rows)
    assert not list(mudoco_rows(tmp_path / "train.jsonl", "dev"))
    made = make_rows(RowsRecipe(mudoco=str(tmp_path), mudoco_copies=2))
    assert len({row.id for row in made}) == len(made) == 2 * (len(rows) + len(train))


def test_a_recipe_makes_what_is_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"question": "Why is the sky blue?", "answer": "It scatters light."}\n', encoding="utf-8")
    folder = str(write_requests(tmp_path))
    settings = RowsRecipe(
        identity=1.0,
        requests=folder,
        requests_en=8,
        requests_zh=5,
        switches=20,
        reactions=30,
        answers=str(answers),
        seed=2,
    )
    with caplog.at_level(logging.INFO):
        made = make_rows(settings, ROWS)
    kinds = ("identity:", "request-en-", "request-zh-", "switch-", "reaction-")
    assert [sum(row.id.startswith(kind) for row in made) for kind in kinds] == [4, 8, 5, 20, 30]
    assert made == make_rows(settings, ROWS)
    assert len({row.id for row in made}) == len(made)
    assert any(row.dialogue.history[0] == "Why is the sky blue?" for row in made)
    assert "20 rows of switches" in caplog.text
    assert make_rows(RowsRecipe(), ROWS) == []


def test_the_answers_of_the_lab_stand_between_a_question_and_its_follow_up() -> None:
    made = make_rows(RowsRecipe(everyday_en=400, answers="own", seed=3))
    answers = dict(read_answers("own"))
    assert len(answers) > 4_900
    found = [row for row in made if any(turn in answers.values() for turn in row.dialogue.history)]
    assert len(found) > 10, "the templates that need an answer get one"
    assert make_rows(RowsRecipe(everyday_en=400, seed=3)) != made


def test_answers_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'none.jsonl: no such file; expected JSON lines of .*, or "own"'):
        read_answers(str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("identity = 1.5", "identity: expected a number from 0 to 1, found 1.5"),
        ("reactions = -1", "reactions: expected a whole number of at least 0, found -1"),
        ("switches = 5", "requests: expected a folder of requests"),
        ('labels = "labels.jsonl"', "labels, labels_rows: expected both"),
        ("mudoco_copies = 2", "mudoco, mudoco_copies: expected both"),
        ("everday_en = 2", "everday_en: unknown key; the nearest known one is everyday_en"),
    ],
)
def test_a_recipe_refuses_what_cannot_be(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "rows.toml").write_text(line, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_settings(tmp_path / "rows.toml", RowsRecipe)


def test_the_file_of_a_recipe_is_a_dataset_like_any_other(tmp_path: Path) -> None:
    lenders = tmp_path / "lenders.jsonl"
    lenders.write_text("".join(json.dumps(row.to_dict()) + "\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "rows.toml").write_text(
        f"identity = 1.0\neveryday_en = 20\ncounting_zh = 10\nreactions = 6\nseed = 3\n"
        f'[[data]]\nname = "jsonl"\npath = "{lenders}"\ntrain = "all"\nrepeat = 4\n',
        encoding="utf-8",
    )
    recipe, out = read_settings(tmp_path / "rows.toml", RowsRecipe), tmp_path / "made" / "rows.jsonl"
    assert build_rows(recipe, out) == 4 + 20 + 10 + 6, "rows that lend are not written, and lend once"
    first = out.read_bytes()
    rows = load_rows("jsonl", out, "all").rows
    assert {row.id: row for row in rows} == {row.id: row for row in make_rows(recipe, ROWS)}
    kinds = [row.id.split("-")[0].split(":")[0] for row in rows]
    assert kinds != sorted(kinds, key=["identity", "everyday", "counting", "reaction"].index), "kinds are mixed"
    assert build_rows(recipe, out) == 40 and out.read_bytes() == first, "equal recipes give equal files"
    read = read_rows([DataSettings("jsonl", str(out), train="all", dev="")], tmp_path)
    assert (read.train, read.dev) == (list(rows), [])


def test_a_recipe_that_holds_every_row_out_is_refused() -> None:
    with pytest.raises(ConfigError, match="held: expected 0 or a number above 1, found 1"):
        RowsRecipe(held=1)


def test_rows_of_a_held_rewrite_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    recipe = RowsRecipe(everyday_en=400, unrelated=0.5, seed=3)
    whole = build_rows(recipe, tmp_path / "whole.jsonl")
    kept = build_rows(replace(recipe, held=5), tmp_path / "part.jsonl")
    part, held = (load_rows("jsonl", tmp_path / name).rows for name in ("part.jsonl", "part-held.jsonl"))
    assert len(part) == kept < whole and 0.1 * whole < whole - kept < 0.35 * whole
    assert not {row.rewrite for row in part} & {row.rewrite for row in held}
    rows = load_rows("jsonl", tmp_path / "whole.jsonl").rows
    assert {row.rewrite for row in rows} == {row.rewrite for row in (*part, *held)}


def test_sampled_rows_that_are_close_to_the_benchmark_are_left_out(tmp_path: Path) -> None:
    known = json.loads((EVERYDAY / "held" / "en.jsonl").read_text(encoding="utf-8").splitlines()[0])
    other = {"history": ["My kayak has a leak."], "utterance": "Is it old?", "rewrite": "Is the kayak old?"}
    lines = [{**other, "history": known["history"], "utterance": known["utterance"]}, other]
    file = tmp_path / "sampled.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert [row.rewrite for row in make_rows(RowsRecipe(sampled=str(file)))] == ["Is the kayak old?"]


@pytest.mark.parametrize(
    ("utterance", "outside"),
    [
        ("He just shook his head.", True),
        ("I'll call him tonight.", True),
        ("Their loss.", True),
        ("My colleague Anna says she cannot log in.", False),
        ("I hope Rosa likes her present.", False),
        ("Everyone brings their own chair.", False),
        ("Mine's called Zoe.", True),
        ("I need a new one.", True),
        ("Is the first one free?", True),
        ("It's cold up there.", True),
        ("Does this cardigan run small?", True),
        ("I'd rather do it myself.", True),
        ("You could have told me.", True),
        ("One of my sisters lives in Graz.", False),
        ("I have no time this week.", False),
        ("It's raining again.", False),
        ("What is the capital of Germany?", False),
    ],
)
def test_a_pronoun_without_a_name_before_it_points_outside(utterance: str, outside: bool) -> None:
    assert points_outside(utterance) is outside


def test_rewrites_that_the_teacher_is_not_sure_of_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "sampled.jsonl"
    texts = [("Is it?", "Is Tom?", -0.31), ("Is it?", "Is Anna?", -0.3), ("Tom is late.", "Tom is late.", -0.9)]
    rows = [{"history": ["Hi."], "utterance": old, "rewrite": new, "logprob": sure} for old, new, sure in texts]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    made = make_rows(RowsRecipe(sampled=str(path), sampled_logprob=-0.3))
    assert [row.rewrite for row in made] == ["Is Anna?", "Tom is late."]
    with pytest.raises(ConfigError, match=r"sampled_logprob: expected 0 or less, found 0\.3"):
        RowsRecipe(sampled_logprob=0.3)


def test_reactions_come_after_hand_written_dialogues_too() -> None:
    rows = make_rows(RowsRecipe(dialogues_en=1, dialogues_zh=1, reactions=200))
    histories = {row.dialogue.history for row in rows if row.id.startswith("reaction-")}
    assert len(histories) > 190
    chinese = [turns for turns in histories if holds_cjk("".join(turns))]
    assert 90 < len(chinese) < 110


def test_unchanged_rows_that_point_outside_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "sampled.jsonl"
    texts = [("He is late.", "He is late."), ("He is late.", "Tom is late."), ("Tom is late.", "Tom is late.")]
    rows = [{"history": ["Where is Tom?"], "utterance": old, "rewrite": new} for old, new in texts]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [row.rewrite for row in read_sampled(path)] == ["Tom is late.", "Tom is late."]
