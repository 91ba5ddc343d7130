"""calibrate: the curve, the threshold, and what they do to each set, with a scripted pipeline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.evaluation import calibrate as module
from teo.evaluation.calibrate import CalibrationSet, calibrate
from teo.evaluation.system import System
from teo.folder import ModelFolder, Role
from teo.layouts import Pieces
from teo.runtime.base import Generated


class Scripted:
    """Writes "x <utterance>" for some sources and copies the others; longer utterances are less sure."""

    source_limit = 100

    def measure(self, text: str) -> int:
        return len(text.split()) + 1

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        written = []
        for source in sources:
            utterance = source[-2]
            score = -float(utterance.rpartition(" ")[2])
            text = utterance if utterance.startswith("keep") else f"x {utterance}"
            written.append(Generated((text,), (score,)))
        return written

    def score(self, *_: object, **__: object) -> list[float]:
        raise AssertionError("the direct pipeline scores nothing")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = ModelFolder({"direct": Role("weights")}, variant="direct", extra={"kept": 1})
    folder.save(tmp_path)
    monkeypatch.setattr(
        module.System, "load", classmethod(lambda cls, path: System(path, ModelFolder.load(path), lambda _: Scripted()))
    )
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
    assert one.rows == 100, "a greeting is kept by rule and asks no model"
    assert one.em_without == pytest.approx(0.6)
    assert one.em == pytest.approx(1.0)
    assert one.complete_changed == 0.0
    assert one.incomplete_kept == 0.0
    assert report.half_risk == 0.0
    assert report.calibration_error < 0.05
    stored = json.loads((model / "teo.json").read_text())["extra"]
    assert stored["kept"] == 1
    assert stored["calibration"]["direct"]["threshold"] == report.threshold


def test_a_set_without_a_share_does_not_decide(model: Path) -> None:
    report = calibrate(model, [CalibrationSet("dev", sure_and_unsure())])
    assert report.threshold == 0.0
    assert report.sets[0].complete_changed == 1.0


def test_a_set_without_complete_rows_has_no_share_of_them(model: Path) -> None:
    rows = [row(k, f"fix {k / 100}", f"x fix {k / 100}") for k in range(50)]
    report = calibrate(model, [CalibrationSet("dev", rows, share=0.1)])
    assert report.sets[0].complete_changed is None
    assert report.threshold == 0.0


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
    assert "dev: 100 rows, EM 0.6000 without threshold, 1.0000 with it; complete changed 0.0%" in done.stdout
    as_json = CliRunner().invoke(app, ["calibrate", str(model), str(file), "--json"], catch_exceptions=False)
    assert json.loads(as_json.stdout)["sets"][0]["name"] == "dev"
    with pytest.raises(InputError, match="expected a share from 0 to 1 after the colon, found 3"):
        CliRunner().invoke(app, ["calibrate", str(model), f"{file}:3"], catch_exceptions=False)
