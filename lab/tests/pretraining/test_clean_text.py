"""Clean text: cutting of long turns, and which lines and sources become which shard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teo.errors import DataError
from teo_lab.pretraining import clean_text


@pytest.mark.parametrize(
    ("turns", "expected", "why"),
    [
        (["a b"], ["a b"], "short"),
        ([" ", "a"], ["a"], "blank turns go"),
        (["One two. Three four."], ["One two.", "Three four."], "at the end of a sentence"),
        (["x" * 25], ["x" * 12, "x" * 12, "x"], "no sentence ends in time"),
        (["一二三四五六。七八九十一二"], ["一二三四五六。", "七八九十一二"], "Chinese"),
    ],
)
def test_long_turns_are_cut(turns: list[str], expected: list[str], why: str) -> None:
    assert clean_text.clip(turns, 12) == expected, why


def test_shards_of_some_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(name: str, *rows: dict[str, object]) -> None:
        (tmp_path / f"{name}.jsonl.xz").write_text("".join(json.dumps(row) + "\n" for row in rows))

    monkeypatch.setattr(clean_text, "open_text", lambda path: path.open(encoding="utf-8"))
    monkeypatch.setattr(clean_text, "hand_written_rows", lambda language: ())
    monkeypatch.setattr(clean_text, "_traditional", lambda shards, rng: iter([["甲", "乙"]]))
    monkeypatch.setattr(clean_text, "CLEAN_LINES", {"zh_smile": ("a", ((1, 1),)), "zh_smile_more": ("b", ((2, 2),))})
    talk, prose = (
        {"turns": [name, name], "source": source} for name, source in (("t", "audreyt/transcript"), ("p", "x"))
    )
    put("en_clean", talk, prose)
    put("zh_clean", prose)
    put("a", {"turns": ["1", "1"]}, {"turns": ["2", "2"]})
    put("b", {"turns": ["3", "3"]}, {"turns": ["4", "4"]})
    put("sampled", *({"history": ["h"], "rewrite": name, "opening": name} for name in ("own", "free", "corpus")))
    counts = clean_text.write_clean_shards(tmp_path, tmp_path / "sampled.jsonl.xz", tmp_path / "out")
    assert counts["en_talk"] == counts["en_prose"] == counts["zh_prose"] == counts["zh_trad"] == 1
    assert (counts["zh_talk"], counts["zh_smile"], counts["en_sampled"]) == (0, 2, 2)
    found = sorted(json.loads(line)["turns"][0] for line in (tmp_path / "out" / "zh_smile.jsonl").open())
    assert found == ["1", "4"], "the clean lines alone"


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"en_clean\.jsonl\.xz: no such file"):
        clean_text.write_clean_shards(tmp_path, tmp_path, tmp_path / "out")
