"""Complete utterances made from the datasets' rows: rewrites that come again, and reactions."""

from __future__ import annotations

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.training.config import UnchangedSettings
from teo.training.unchanged import identity_rows, reaction_rows, unchanged_rows
from teo.units import holds_cjk


def _row(name: str, history: str, utterance: str, rewrite: str) -> Row:
    return Row(name, Dialogue(tuple(history.split(" | ")), utterance), rewrite)


ROWS = [
    _row("a", "Who wrote Dune? | Frank Herbert.", "When did he die?", "When did Frank Herbert die?"),
    _row("b", "Is it raining?", "Thanks.", "Thanks."),
    _row("c", "北京天气怎么样 | 晴", "上海呢", "上海天气怎么样"),
    _row("d", "周杰伦是谁 | 歌手", "他多大了", "周杰伦多大了"),
    _row("e", "Do you like tea?", "Why?", "Why do you like tea?"),
]


def test_identity_rows_keep_the_rewrites_of_changed_rows() -> None:
    made = list(identity_rows(ROWS, share=1.0, foreign=1.0, seed=3))
    assert all(row.is_complete for row in made)
    assert {row.id for row in made} == {
        f"{kind}:{name}" for kind in ("identity", "identity-foreign") for name in "acde"
    }
    own = {row.id: row for row in ROWS}
    for row in made:
        source = own[row.id.rpartition(":")[2]]
        assert row.rewrite == source.rewrite
        if row.id.startswith("identity:"):
            assert row.dialogue.history == source.dialogue.history
        else:
            assert row.dialogue.history != source.dialogue.history
            assert holds_cjk("".join(row.dialogue.history)) == holds_cjk(row.rewrite)


def test_identity_rows_depend_on_the_row_and_the_seed_alone() -> None:
    many = [_row(str(number), "Who?", "He?", f"Number {number}?") for number in range(400)]
    made = {row.id for row in identity_rows(many, 0.25, 0.0, 1)}
    assert made == {row.id for row in identity_rows(many[::-1], 0.25, 0.0, 1)}
    assert made != {row.id for row in identity_rows(many, 0.25, 0.0, 2)}
    assert 70 <= len(made) <= 130


def test_no_other_history_gives_no_foreign_row() -> None:
    assert [row.id for row in identity_rows(ROWS[:1], share=0.0, foreign=1.0)] == []


def test_reactions_come_after_dialogues_of_their_language() -> None:
    made = list(reaction_rows(ROWS, 40, seed=2))
    assert len({row.id for row in made}) == 40
    histories = {(*row.dialogue.history, row.rewrite) for row in ROWS}
    for row in made:
        assert row.is_complete
        assert row.dialogue.history in histories, "the utterance before is complete, not as it was said"
        assert holds_cjk(row.rewrite) == holds_cjk("".join(row.dialogue.history))
    assert sum(holds_cjk(row.rewrite) for row in made) == 20, "the languages take turns"
    assert made == list(reaction_rows(ROWS, 40, seed=2)) != list(reaction_rows(ROWS, 40, seed=3))
    assert not list(reaction_rows([], 40))
    assert not any(holds_cjk(row.rewrite) for row in reaction_rows(ROWS[:2], 10)), "no Chinese rows, none added"


def test_a_kind_of_none_is_left_out() -> None:
    def kinds(**settings: float) -> set[str]:
        made = unchanged_rows(ROWS, UnchangedSettings(**settings))  # type: ignore[arg-type]
        return {row.id.split(":")[0].split("-0")[0] for row in made}

    assert kinds() == set()
    assert kinds(identity=1.0) == {"identity"}
    assert kinds(foreign=1.0) == {"identity-foreign"}
    assert kinds(reactions=1) == {"reaction"}
    assert kinds(identity=1.0, foreign=1.0, reactions=1) == {"identity", "identity-foreign", "reaction"}
