"""`teo demo` and `teo export`, with a scripted rewriter and exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from teo.alignment import derive_edits
from teo.cli.demo import SAMPLES, demo
from teo.cli.export import export
from teo.loading import has_default
from teo.result import Rewrite
from teo.rewriter import Rewriter
from teo.rules import reason_unchanged
from teo.units import is_cjk

BY_HAND: tuple[str, ...] = (
    "When was Frank Herbert born?",
    "What is the phone number of Da Vinci Pizzeria?",
    "When did Pierre Curie die?",
    "Thank you very much!",
    "周杰伦还唱过什么歌",
    "小米14有几种颜色",
    "流浪地球是谁导演的",
)
"""A person's rewrite of each sample."""


class Asking:
    """A rewriter that adds a question mark."""

    name, variant = "asking", "fused"

    def rewrite(self, history: list[str], utterance: str) -> Rewrite:
        if utterance.endswith("!"):
            return Rewrite(utterance, reason="reaction")
        edits = derive_edits(utterance, utterance + " really?")
        return Rewrite(edits.apply(utterance), True, edits, "[I] really?", 0.75)


def app_of(command: Any) -> typer.Typer:
    app = typer.Typer()
    app.command()(command)
    return app


def test_every_sample_is_shown_with_its_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rewriter, "from_pretrained", lambda *args, **settings: Asking())
    result = CliRunner().invoke(app_of(demo), [])
    assert result.exit_code == 0
    for *history, utterance in SAMPLES:
        assert all(turn in result.stdout for turn in history)
        assert f"> {utterance}" in result.stdout
    assert "= When was he born? really?\n    confidence 0.75  [I] really?" in result.stdout
    assert "= Thank you very much!\n    unchanged: it only reacts\n" in result.stdout
    assert "asking, fused: loaded in" in result.stderr
    assert "\x1b" not in result.stdout, "no colour off a terminal"


@pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")
def test_the_embedded_model_gets_every_sample_right() -> None:
    rewriter = Rewriter.from_pretrained()
    rewrites = [rewriter.rewrite(history, utterance).rewrite for *history, utterance in SAMPLES]
    assert rewrites == list(BY_HAND)


def test_the_samples_are_of_both_languages_and_of_both_kinds() -> None:
    from teo.dialogue import Dialogue

    chinese = [any(map(is_cjk, sample[-1])) for sample in SAMPLES]
    assert 2 <= sum(chinese) <= len(SAMPLES) - 2
    kept = [reason_unchanged(Dialogue(tuple(history), utterance)) for *history, utterance in SAMPLES]
    assert kept.count("reaction") == 1
    assert kept.count(None) == len(SAMPLES) - 1


def test_export_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import teo.export.export as exporting

    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "1", "history": ["a"], "utterance": "b", "rewrite": "b"}) + "\n")
    loss = exporting.Loss(1, 1.0, 0.5, 0.25, 0.1)
    monkeypatch.setattr(
        exporting, "export_model", lambda model, out, quantize: exporting.Exported(out, quantize, 1234567, 57_000_000)
    )
    monkeypatch.setattr(exporting, "measure_loss", lambda before, after, given: loss)
    plain = CliRunner().invoke(app_of(export), [str(tmp_path), str(tmp_path / "out"), "--compare", str(rows)])
    assert "1,234,567 parameters, 57.0 MB, form int8" in plain.stdout
    assert "1 rows: EM 1.0000 before, 0.5000 after; 25.0% of the rewrites are the same" in plain.stdout
    shown = CliRunner().invoke(app_of(export), [str(tmp_path), "o", "--quantize", "none", "--json"])
    assert json.loads(shown.stdout) == {"path": "o", "form": "none", "parameters": 1234567, "megabytes": 57.0}
