"""benchmarks/robustness.py: what each kind changes, what the rewrite should then be, and what is counted."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import robustness
from scripted import ScriptedGenerator, rewriter_of
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.layouts import Pieces
from teo.rewriter import Rewriter

DUNE = Row("a", Dialogue(("Who wrote Dune?", "Frank Herbert."), "When was he born?"), "When was Frank Herbert born?")
TEA = Row("b", Dialogue(("Do you like tea?", "Yes."), "Why?"), "Why do you like tea?")
SINGER = Row("c", Dialogue(("谁唱的青花瓷？", "周杰伦唱的。"), "他多大了？"), "周杰伦多大了？")
ROWS = [DUNE, TEA, SINGER]


def vary(kind: str, row: Row) -> Row | None:
    return robustness.make_kinds(ROWS)[kind](row, random.Random(2))


@pytest.mark.parametrize(
    ("kind", "row", "turns", "rewrite"),
    [
        ("one unrelated turn in front", TEA, ("When was he born?", "Do you like tea?", "Yes.", "Why?"), TEA.rewrite),
        (
            "two unrelated turns in front",
            SINGER,
            ("When was he born?", "Why?", *SINGER.dialogue.history, "他多大了？"),
            None,
        ),
        ("a greeting in front", TEA, (robustness.GREETINGS[False][0], "Do you like tea?", "Yes.", "Why?"), TEA.rewrite),
        ("a greeting in front", SINGER, (robustness.GREETINGS[True][0], *SINGER.dialogue.history, "他多大了？"), None),
        (
            "another name for a thing",
            DUNE,
            ("Who wrote Dune?", "Frank Zorvania.", "When was he born?"),
            "When was Frank Zorvania born?",
        ),
        ("another name for a thing", SINGER, ("谁唱的青花瓷？", "阿尔法唱的。", "他多大了？"), "阿尔法多大了？"),
        (
            "no final marks",
            DUNE,
            ("Who wrote Dune", "Frank Herbert.", "When was he born"),
            "When was Frank Herbert born",
        ),
        (
            "emoji and repeated marks",
            DUNE,
            (*DUNE.dialogue.history, "When was he born??? 😊"),
            "When was Frank Herbert born??? 😊",
        ),
        ("capitals throughout (English)", DUNE, (*DUNE.dialogue.history, "WHEN WAS HE BORN?"), DUNE.rewrite),
        (
            "odd spaces",
            SINGER,
            ("\u3000谁唱的青花瓷？\n", "\u3000周杰伦唱的。\n", "\u3000他多大了？\n"),
            "\u3000周杰伦多大了？\n",
        ),
        (
            "no capitals (English)",
            DUNE,
            ("who wrote dune", "Frank Herbert.", "when was he born"),
            "when was Frank Herbert born",
        ),
    ],
)
def test_what_a_kind_changes(kind: str, row: Row, turns: tuple[str, ...], rewrite: str | None) -> None:
    varied = vary(kind, row)
    assert varied is not None
    assert (*varied.dialogue.history, varied.dialogue.utterance) == turns
    assert varied.rewrite == (rewrite or row.rewrite)


def test_polite_words_and_typing_errors_stand_in_the_rewrite_too() -> None:
    for kind in ("polite words", "typing errors"):
        varied = vary(kind, DUNE)
        assert varied is not None
        assert varied.dialogue.utterance != DUNE.dialogue.utterance, kind
        assert varied.dialogue.utterance.replace(" he ", " Frank Herbert ") == varied.rewrite, kind


def test_traditional_characters_are_for_chinese_alone() -> None:
    pytest.importorskip("opencc", reason="the converter is no dependency: pip install opencc")
    varied = vary("Traditional characters (Chinese)", SINGER)
    assert varied is not None
    assert (varied.dialogue.history[1], varied.rewrite) == ("周杰倫唱的。", "周杰倫多大了？")
    assert vary("Traditional characters (Chinese)", DUNE) is None
    assert vary("no capitals (English)", SINGER) is None


def confused_by_turns() -> Rewriter:
    """Return a rewriter that fills in Frank Herbert unless more than two turns came before."""

    def answer(source: Pieces, _: Pieces) -> Pieces:
        utterance = str(source[-2])
        return (utterance.replace("he", "Frank Herbert") if len(source) <= 7 else utterance,)

    return rewriter_of(ScriptedGenerator(answer))


def test_only_changed_rewrites_are_counted() -> None:
    measured = robustness.measure(confused_by_turns(), [DUNE, TEA])
    assert (measured["rows"], measured["changed"]) == (2, 1)
    assert measured["kinds"]["one unrelated turn in front"] == {"rows": 1, "as_it_should_be": 0}
    assert measured["kinds"]["no final marks"] == {"rows": 1, "as_it_should_be": 1}
    assert measured["kinds"]["Traditional characters (Chinese)"] == {"rows": 0, "as_it_should_be": 0}
    text = robustness.show(measured)
    assert "1 of 2 utterances changed" in text
    assert "no final marks                    100.0% of 1" in text
    assert "Traditional" not in text, "a kind that applies to no row"


def test_counts_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = tmp_path / "rows.jsonl", tmp_path / "counts.json"
    data.write_text("\n".join(json.dumps(row.to_dict()) for row in (DUNE, TEA)), encoding="utf-8")
    monkeypatch.setattr(robustness.Rewriter, "from_pretrained", lambda _: confused_by_turns())
    robustness.main(["--data", "jsonl", "--path", str(data), "--split", "all", "--out", str(out)])
    stored = json.loads(out.read_text(encoding="utf-8"))
    assert stored["model"] == "scripted"
    assert stored["kinds"]["another name for a thing"] == {"rows": 1, "as_it_should_be": 0}
