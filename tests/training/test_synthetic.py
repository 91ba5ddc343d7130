"""The copy task: reproducible, solvable from the dialogue, and never the same dialogue in two splits."""

from __future__ import annotations

from pathlib import Path

from teo.alignment import derive_edits
from teo.data import load_rows
from teo.training.synthetic import SPLIT_ROWS, generate_rows, write_rows
from teo.units import unit_texts


def test_equal_seeds_give_equal_rows() -> None:
    assert generate_rows(50, seed=1) == generate_rows(50, seed=1)
    assert generate_rows(50, seed=1) != generate_rows(50, seed=2)


def test_every_word_of_a_rewrite_is_in_the_dialogue() -> None:
    for row in generate_rows(300):
        said = {word for turn in (*row.dialogue.history, row.dialogue.utterance) for word in unit_texts(turn)}
        assert set(unit_texts(row.rewrite)) <= said, row


def test_rows_need_insertions_replacements_both_or_nothing() -> None:
    kinds = set()
    for row in generate_rows(300):
        operations = derive_edits(row.dialogue.utterance, row.rewrite).operations
        kinds.add((any(one.is_insertion for one in operations), any(not one.is_insertion for one in operations)))
    assert kinds == {(True, False), (False, True), (True, True), (False, False)}


def test_ambiguous_rows_name_two_people_and_mean_either() -> None:
    rows = [row for row in generate_rows(2000, ambiguous=0.25) if row.id.startswith("ambiguous")]
    assert 400 < len(rows) < 600
    first = sum(row.rewrite.split()[1] == row.dialogue.history[0].split()[0] for row in rows)
    assert 0.4 < first / len(rows) < 0.6


def test_written_splits_share_no_dialogue(tmp_path: Path) -> None:
    write_rows(tmp_path)
    splits = {name: load_rows("jsonl", tmp_path, name).rows for name in SPLIT_ROWS}
    assert {name: len(rows) for name, rows in splits.items()} == SPLIT_ROWS
    dialogues = [row.dialogue for rows in splits.values() for row in rows]
    assert len(set(dialogues)) == len(dialogues)
