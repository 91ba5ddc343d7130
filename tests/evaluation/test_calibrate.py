"""calibrate: the functions, the labels, and what each setting does to each set, with a scripted pipeline."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripted import ScriptedGenerator, stages_of
from teo.data.row import MeaningKeys, Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.evaluation.calibrate import CalibrationSet, calibrate, is_right
from teo.evaluation.calibration_report import write_report
from teo.layouts import Pieces
from teo.loading import Model, ModelFolder, Role
from teo.rewriter import Rewriter


def model_text(source: Pieces, _prompt: Pieces) -> Pieces:
    """Return "x <utterance>" for some sources and a copy of the others."""
    utterance = source[-2]
    return (utterance if utterance.startswith("keep") else f"x {utterance}",)


def doubt(source: Pieces) -> tuple[float, ...]:
    """Return the score that the utterance's last word says."""
    return (-float(source[-2].rpartition(" ")[2]),)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = ModelFolder({"direct": Role("weights")}, variant="direct", extra={"kept": 1})
    folder.save(tmp_path)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "graphs.json").touch()
    generator = ScriptedGenerator(model_text, doubt)
    monkeypatch.setattr(Model, "load", lambda self, roles: stages_of(**dict.fromkeys(roles, generator)))
    return tmp_path


def row(number: int, utterance: str, rewrite: str) -> Row:
    return Row(str(number), Dialogue(("before",), utterance), rewrite)


def sure_and_unsure() -> list[Row]:
    """Surely right rewrites of incomplete rows, and unsure changes of complete ones."""
    rows = [row(k, f"fix {k % 7 / 10}", f"x fix {k % 7 / 10}") for k in range(60)]
    rows += [row(100 + k, f"wrong {2 + k % 5 / 10}", f"wrong {2 + k % 5 / 10}") for k in range(40)]
    return [*rows, row(999, "hello", "hello")]


def test_confidence_tells_right_from_wrong(model: Path) -> None:
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure())])
    by_setting = {part.prefer: part for part in report.sets}
    balanced = by_setting["balanced"]
    assert (balanced.incomplete, balanced.complete) == (60, 40), "a greeting stays unchanged by rule: no model call"
    assert (balanced.right, balanced.wrong, balanced.missed, balanced.kept) == (1.0, 0.0, 0.0, 1.0)
    assert by_setting["careful"].kept == 1.0
    (english,) = report.languages
    assert (english.language, english.rows, english.right) == ("en", 100, 0.6)
    assert english.calibration_error < 0.1
    assert sum(part.share for part in english.reliability) == pytest.approx(1)
    assert english.risk_coverage[-1][1:] == (1.0, 0.4), "all rows answered, 40 of 100 wrong"
    stored = json.loads((model / "teo.json").read_text())["extra"]
    assert stored["kept"] == 1
    assert stored["calibration"]["direct"] == json.loads(json.dumps(report.functions))
    rewriter = Rewriter.from_pretrained(model)
    assert rewriter.rewrite(["before"], "fix 0.1").changed
    assert rewriter.rewrite(["before"], "wrong 2.2").reason == "unsure"


def test_each_language_has_its_own_function(model: Path) -> None:
    english = [row(k, f"fix {k % 7 / 10}", f"x fix {k % 7 / 10}") for k in range(60)]
    english += [row(k, f"wrong {5 + k % 5 / 10}", f"wrong {5 + k % 5 / 10}") for k in range(40)]
    chinese = [row(k, f"改 {k % 7 / 10}", f"x 改 {k % 7 / 10}") for k in range(60)]
    chinese += [row(k, f"错 {2 + k % 5 / 10}", f"错 {2 + k % 5 / 10}") for k in range(40)]
    report = calibrate(model, [CalibrationSet("a", english), CalibrationSet("b", chinese)])
    assert set(report.functions["changed"]) == {"en", "zh", "any"}
    assert [part.kept for part in report.sets if part.prefer == "balanced"] == [1.0, 1.0]
    assert [part.language for part in report.languages] == ["en", "zh"]


KEYED = Row(
    "k",
    Dialogue(("Who wrote Dune?", "Frank Herbert."), "When was he born?"),
    "When was Frank Herbert born?",
    (),
    MeaningKeys((("Herbert",), ("born", "birth")), ("he",)),
)


@pytest.mark.parametrize(
    ("row", "rewrite", "trust", "expected", "why"),
    [
        (KEYED, "When was Herbert born?", True, True, "keys accept other words"),
        (KEYED, "When was Dune born?", True, False, "keys refuse"),
        (replace(KEYED, keys=None), "When was Herbert born?", True, False, "no keys: exact match"),
        (replace(KEYED, keys=None), "When was Herbert born?", False, None, "others were judged, this was not"),
        (
            replace(KEYED, keys=None),
            "when was frank herbert born?",
            False,
            None,
            "an accepted rewrite was not judged either",
        ),
        (replace(KEYED, keys=None), "when was frank herbert born?", True, True, "an accepted rewrite"),
        (replace(KEYED, keys=None), "When was he born?", False, False, "unchanged though incomplete"),
        (
            replace(KEYED, keys=MeaningKeys(judged=(("When was Dune born?", True),))),
            "When was Dune born?",
            True,
            True,
            "a judgement comes first",
        ),
    ],
)
def test_what_is_right(row: Row, rewrite: str, trust: bool, expected: bool | None, why: str) -> None:
    assert is_right(row, rewrite, trust_exact_match=trust) is expected, why


def test_rewrites_that_nobody_judged_are_left_out(model: Path) -> None:
    rows = sure_and_unsure()
    judged = [
        replace(one, keys=MeaningKeys(judged=((f"x {one.dialogue.utterance}", k < 60),))) for k, one in enumerate(rows)
    ]
    report = calibrate(model, [CalibrationSet("dev", [*judged[10:], *rows[:10]])])
    assert report.left_out == 10, "though they equal their references"


def test_a_report_has_both_figures(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure()), CalibrationSet("few", [])])
    out, log = tmp_path / "a" / "report", io.StringIO()
    write_report(report, out, log)
    names = ["calibration.json", "calibration.md", "reliability_en.png", "risk_coverage_en.png"]
    assert sorted(file.name for file in out.iterdir()) == names
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in out.glob("*.png"))
    (english,) = report.languages
    text = (out / "calibration.md").read_text()
    assert f"Expected calibration error: {english.calibration_error:.4f}." in text
    assert "![reliability diagram](reliability_en.png)" in text
    assert "| dev | balanced | 60 | 100.0 | 0.0 | 0.0 | 40 | 100.0 |" in text
    assert "| few | careful | 0 | - | - | - | 0 | - |" in text
    assert log.getvalue() == ""


def test_without_matplotlib_only_the_pictures_are_missing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report, log = calibrate(model, [CalibrationSet("dev", sure_and_unsure())]), io.StringIO()
    write_report(report, tmp_path / "out", log)
    assert "reliability_en.png is not drawn: drawing the reliability diagram needs the library" in log.getvalue()
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["calibration.json", "calibration.md"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be used as the output folder"):
        write_report(report, tmp_path / "file", log)


def test_too_few_rows_are_refused(model: Path) -> None:
    with pytest.raises(InputError, match="expected at least 40 rewrites that were judged, found 1"):
        calibrate(model, [CalibrationSet("dev", [row(1, "fix 1", "x fix 1")])])
    assert "calibration" not in json.loads((model / "teo.json").read_text())["extra"]


def test_the_command_reads_files(model: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from teo.cli.app import app

    file = tmp_path / "dev.jsonl"
    file.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in sure_and_unsure()))
    done = CliRunner().invoke(app, ["calibrate", str(model), str(file)], catch_exceptions=False)
    assert done.stdout.startswith("direct, en: 100 rewrites, 60.0% right; expected calibration error 0.")
    assert "dev, balanced: right 100.0%, wrong 0.0%, missed 0.0% of 60 incomplete; kept 100.0% of 40" in done.stdout
    out = tmp_path / "out"
    command = ["calibrate", str(model), str(file), "--evidence", "score, lowest", "--out", str(out)]
    CliRunner().invoke(app, command, catch_exceptions=False)
    assert (out / "calibration.md").read_text().startswith("# Confidence of direct\n\nFitted to score, lowest.")
    as_json = CliRunner().invoke(app, ["calibrate", str(model), str(file), "--json"], catch_exceptions=False)
    assert json.loads(as_json.stdout)["sets"][0]["name"] == "dev"
    for limit in ("0", "-150"):
        with pytest.raises(InputError, match=rf"limit: expected a number of rows from 1 on, found {limit}"):
            CliRunner().invoke(app, ["calibrate", str(model), str(file), "--limit", limit], catch_exceptions=False)
    with pytest.raises(InputError, match=r"evidence: expected some of root_score, .*; found luck"):
        CliRunner().invoke(app, ["calibrate", str(model), str(file), "--evidence", "luck"], catch_exceptions=False)
