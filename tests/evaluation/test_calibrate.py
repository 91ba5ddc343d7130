"""calibrate: the curve, the threshold, and what they do to each set, with a scripted pipeline."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripted import ScriptedGenerator, stages_of
from teo.abstain import Calibration, Thresholds
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.evaluation.calibrate import CalibrationSet, Outcome, calibrate, choose_thresholds
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


def test_the_threshold_keeps_complete_utterances(model: Path) -> None:
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure(), share=0.0)])
    (one,) = report.sets
    assert (one.rows, report.rows) == (101, 100), "a greeting is kept by rule and asks no model"
    assert one.em_without == pytest.approx(61 / 101)
    assert one.em == pytest.approx(1.0)
    assert one.complete_changed == 0.0
    assert one.incomplete_kept == 0.0
    assert report.half_risk == 0.0
    assert report.calibration_error < 0.05
    stored = json.loads((model / "teo.json").read_text())["extra"]
    assert stored["kept"] == 1
    assert stored["calibration"]["direct"]["threshold"] == report.threshold > 0
    assert stored["calibration"]["direct"]["thresholds"] == {"en": report.threshold}


def test_a_set_without_a_share_does_not_decide(model: Path) -> None:
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure())])
    assert (report.threshold, report.thresholds) == (0.0, {})
    assert report.sets[0].complete_changed == 40 / 41


def test_a_set_without_complete_rows_has_no_share_of_them(model: Path) -> None:
    rows = [row(k, f"fix {k / 100}", f"x fix {k / 100}") for k in range(50)]
    report = calibrate(model, [CalibrationSet("dev", rows, share=0.1)])
    assert report.sets[0].complete_changed is None
    assert report.threshold == 0.0


def outcomes(language: str, *scores: float, **flags: bool) -> list[Outcome]:
    """Complete utterances that would be changed, wrongly, unless flags say otherwise."""
    settings = {"right": False, "complete": True, "changed": True, **flags}
    return [Outcome(score, language=language, **settings) for score in scores]


EVEN = Calibration((-10.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("sets", "expected", "why"),
    [
        (
            [(0.25, outcomes("en", -8, -7, -6, -5)), (0.0, outcomes("zh", -3, -2))],
            Thresholds(0.8001, {"en": 0.4001, "zh": 0.8001}),
            "each language by its own set; for any other the highest",
        ),
        (
            [(0.0, outcomes("en", -8)), (0.0, outcomes("en", -4)), (0.0, outcomes("en", -6))],
            Thresholds(0.6001, {"en": 0.6001}),
            "of sets in one language the strictest",
        ),
        ([(None, outcomes("en", -1)), (1.0, outcomes("zh", -1))], Thresholds(0.0, {"zh": 0.0}), "all may be changed"),
        (
            [(0.0, [*outcomes("zh", -8, -7), *outcomes("en", -1)])],
            Thresholds(0.3001, {"zh": 0.3001}),
            "a set has the language of most of its rows",
        ),
        (
            [(0.5, [*outcomes("en", -5), *outcomes("en", 0.0, asked=False, changed=False, right=True)])],
            Thresholds(0.0, {"en": 0.0}),
            "what a rule keeps is complete and not changed",
        ),
        ([(0.0, outcomes("en", -1, complete=False, right=True))], Thresholds(0.0, {"en": 0.0}), "nothing complete"),
        ([(0.1, [])], Thresholds(0.0, {}), "no rows"),
    ],
)
def test_thresholds_by_hand(sets: list[tuple[float | None, list[Outcome]]], expected: Thresholds, why: str) -> None:
    named = [(CalibrationSet("dev", [], share), found) for share, found in sets]
    assert choose_thresholds(EVEN, named) == expected, why


@pytest.mark.parametrize(
    ("wrong", "expected", "why"),
    [
        (None, 0.0, "no limit"),
        (0.5, 0.3001, "two of four may be wrong: the surer ones stay"),
        (0.0, 0.9001, "none may"),
        (0.75, 0.0, "three of four are wrong at all"),
    ],
)
def test_incomplete_utterances_that_become_wrong_have_a_limit(wrong: float | None, expected: float, why: str) -> None:
    made_wrong = outcomes("en", -7, -5, -1, complete=False, right=False)
    part = CalibrationSet("dev", [], None, wrong)
    assert choose_thresholds(EVEN, [(part, [*made_wrong, *outcomes("en", -2, complete=False, right=True)])]) == (
        Thresholds(expected, {"en": expected} if wrong is not None else {})
    ), why


@given(
    rows=st.lists(
        st.tuples(st.floats(-10, 0), st.booleans(), st.booleans(), st.sampled_from(["en", "zh"])),
        min_size=1,
        max_size=60,
    ),
    share=st.floats(0, 1),
)
def test_every_limit_holds_for_its_language(rows: list[tuple[float, bool, bool, str]], share: float) -> None:
    judged = [Outcome(score, False, complete, changed, language) for score, complete, changed, language in rows]
    limits = CalibrationSet("dev", [], share, share)
    sets = [(limits, [one for one in judged if one.language == language]) for language in ("en", "zh")]
    found = choose_thresholds(EVEN, sets)
    for _, part in sets:
        for complete in (True, False):
            own = [one for one in part if one.complete == complete]
            harmed = [
                one for one in own if one.changed and EVEN.confidence(one.score) >= found.of_language(one.language)
            ]
            assert len(harmed) <= share * len(own) + 1e-9


def test_two_languages_have_two_thresholds(model: Path) -> None:
    english = [row(k, f"fix {k % 7 / 10}", f"x fix {k % 7 / 10}") for k in range(60)]
    english += [row(k, f"wrong {5 + k % 5 / 10}", f"wrong {5 + k % 5 / 10}") for k in range(20)]
    chinese = [row(k, f"改 {k % 7 / 10}", f"x 改 {k % 7 / 10}") for k in range(60)]
    chinese += [row(k, f"错 {2 + k % 5 / 10}", f"错 {2 + k % 5 / 10}") for k in range(20)]
    report = calibrate(model, [CalibrationSet("a", english, 0.0), CalibrationSet("b", chinese, 0.0)])
    assert [one.language for one in report.sets] == ["en", "zh"]
    assert [one.complete_changed for one in report.sets] == [0.0, 0.0]
    assert report.thresholds["en"] < report.thresholds["zh"] == report.threshold
    rewriter = Rewriter.from_pretrained(model)
    assert rewriter.thresholds == report.thresholds


def test_the_figures_are_numbers_that_can_be_drawn_again(model: Path) -> None:
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure(), share=0.0)])
    stored = json.loads(json.dumps(report.to_dict()))
    bins, points = stored["reliability"], stored["risk_coverage"]
    assert sum(one["share"] for one in bins) == pytest.approx(1)
    gaps = sum(one["share"] * abs(one["confidence"] - one["accuracy"]) for one in bins)
    assert stored["calibration_error"] == pytest.approx(gaps)
    assert points[-1][1:] == [1.0, 0.4], "all rows answered, 40 of 100 wrong"
    assert [point[1] for point in points] == sorted(point[1] for point in points)
    # The 60 sure rows are right, the 40 unsure ones wrong: risk is 0 up to 60 rows, then (k - 60) / k, in steps.
    least, most = sum((k - 60) / k for k in range(61, 101)) / 100, 0.4 * 0.4
    assert least <= stored["risk_area"] <= most


def test_a_report_has_both_figures(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure(), share=0.02), CalibrationSet("few", [])])
    out, log = tmp_path / "a" / "report", io.StringIO()
    write_report(report, out, log)
    assert sorted(file.name for file in out.iterdir()) == [
        "calibration.json",
        "calibration.md",
        "reliability.png",
        "risk_coverage.png",
    ]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in out.glob("*.png"))
    assert json.loads((out / "calibration.json").read_text())["risk_area"] == report.risk_area
    text = (out / "calibration.md").read_text()
    assert f"Expected calibration error: {report.calibration_error:.4f}." in text
    assert f"Area under the risk-coverage curve: {report.risk_area:.4f}." in text
    assert "![reliability diagram](reliability.png)" in text
    assert "![risk-coverage curve](risk_coverage.png)" in text
    assert f"| en | {report.threshold:.4f} |" in text
    assert "| few | - | 0 | 0.0 | 0.0 | - | - | - |" in text
    assert "| 100.0 | " in text
    assert log.getvalue() == ""


def test_without_matplotlib_only_the_pictures_are_missing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report, log = calibrate(model, [CalibrationSet("dev", sure_and_unsure())]), io.StringIO()
    write_report(report, tmp_path / "out", log)
    assert (
        "reliability.png is not drawn: drawing the reliability diagram needs the library 'matplotlib'" in log.getvalue()
    )
    assert "risk_coverage.png is not drawn" in log.getvalue()
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["calibration.json", "calibration.md"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be made the output folder"):
        write_report(report, tmp_path / "file", log)


def test_too_few_rows_are_refused(model: Path) -> None:
    with pytest.raises(InputError, match="expected at least 40 rows that the model is asked, found 1"):
        calibrate(model, [CalibrationSet("dev", [row(1, "fix 1", "x fix 1")])])
    assert "calibration" not in json.loads((model / "teo.json").read_text())["extra"]


def test_the_command_reads_files_and_shares(model: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from teo.cli.app import app

    file = tmp_path / "dev.jsonl"
    file.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in sure_and_unsure()))
    done = CliRunner().invoke(app, ["calibrate", str(model), f"{file}:0.0"], catch_exceptions=False)
    assert "dev (en): 101 rows, EM 0.6040 without threshold, 1.0000 with it; complete changed 0.0%" in done.stdout
    assert done.stdout.startswith("direct: thresholds en 0.")
    assert "expected calibration error 0." in done.stdout
    out = tmp_path / "out"
    CliRunner().invoke(app, ["calibrate", str(model), f"{file}:0.0", "--out", str(out)], catch_exceptions=False)
    assert (out / "calibration.md").read_text().startswith("# Confidence of direct\n")
    as_json = CliRunner().invoke(app, ["calibrate", str(model), str(file), "--json"], catch_exceptions=False)
    assert json.loads(as_json.stdout)["sets"][0]["name"] == "dev"
    with pytest.raises(InputError, match="expected shares from 0 to 1 after the colons, found 3"):
        CliRunner().invoke(app, ["calibrate", str(model), f"{file}:3"], catch_exceptions=False)
