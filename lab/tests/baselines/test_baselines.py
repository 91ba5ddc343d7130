"""The baselines on a tiny backbone: they learn the copy task, are stored, loaded, and evaluated as any system."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError, ModelError
from teo.training.backbones import build_random, load_base
from teo.training.config import RandomModel
from teo.training.saving import save_weights
from teo.training.synthetic import generate_rows, write_rows
from teo.units import split_units
from teo_lab.baselines.baseline import encode_dialogue
from teo_lab.baselines.experiment import count_expressible
from teo_lab.baselines.storing import BASELINES, load_baseline, make_baseline
from teo_lab.baselines.training import BaselineTraining, exact_match, train_baseline
from teo_lab.cli.evaluate import evaluate
from teo_lab.cli.reproduce import reproduce
from verbs import run_verb

pytestmark = pytest.mark.train
EPOCHS = {"matrix": 4, "locate-fill": 12}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return generate_rows(400, seed=3)


@pytest.fixture(scope="module")
def base(rows: Sequence[Row], tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    texts = [text for row in rows for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)]
    folder = tmp_path_factory.mktemp("base") / "tiny"
    save_weights(*build_random(RandomModel(family="teo", width=48, layers=2, heads=4, dropout=0.0), texts), folder)
    return folder


@pytest.fixture(scope="module", params=list(BASELINES))
def trained(
    request: pytest.FixtureRequest, base: Path, rows: Sequence[Row], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder: Path = tmp_path_factory.mktemp("baselines") / str(request.param)
    settings = BaselineTraining(
        epochs=EPOCHS[request.param], batch_size=32, learning_rate=3e-3, dropout=0.0, evaluations=1, device="cpu"
    )
    train_baseline(request.param, str(base), rows[:320], rows[320:], folder, settings)
    return folder


def test_a_baseline_learns_the_copy_task(trained: Path, base: Path, rows: Sequence[Row]) -> None:
    complete = sum(row.is_complete for row in rows[320:]) / 80
    baseline = load_baseline(trained, "cpu")
    torch.manual_seed(0)
    assert exact_match(make_baseline(baseline.name, *load_base(str(base))), rows[320:], 32) <= complete, "untrained"
    assert exact_match(baseline, rows[320:], 32) > complete + 0.25


def test_dialogues_without_history_give_a_matrix_nothing_to_learn(base: Path) -> None:
    baseline = make_baseline("matrix", *load_base(str(base)))
    example = baseline.prepare(Row("1", Dialogue((), "Ben is here"), "Ben is here"))
    assert example is not None
    loss = baseline.loss([example, example])
    assert loss.item() == 0, "the mean over no cells would be no number"
    loss.backward()


def test_the_stored_baseline_is_the_one_that_was_measured(trained: Path, rows: Sequence[Row]) -> None:
    record = json.loads((trained / "baseline.json").read_text())["training"]
    assert record["dev_em"] == [
        {"epoch": record["settings"]["epochs"], "em": exact_match(load_baseline(trained, "cpu"), rows[320:], 16)}
    ]
    assert (record["train_rows"], record["not_expressed"], record["dev_rows"]) == (320, 0, 80)


def test_predictions_do_not_depend_on_the_batch_and_carry_their_edits(trained: Path, rows: Sequence[Row]) -> None:
    baseline = load_baseline(trained, "cpu")
    dialogues = [row.dialogue for row in rows[320:340]] + [Dialogue((), "why"), Dialogue(("anna likes tea",), "")]
    together = baseline.predict(dialogues, 32)
    alone = [baseline.predict([dialogue], 1)[0] for dialogue in dialogues]
    assert [item.rewrite for item in together] == [item.rewrite for item in alone]
    for dialogue, prediction in zip(dialogues, together, strict=True):
        assert prediction.edits.apply(dialogue.utterance) == prediction.rewrite
        assert prediction.scores["operations"] <= 0


def test_every_unit_has_its_tokens(base: Path) -> None:
    _, codec = load_base(str(base))
    dialogue = Dialogue(("don't  likes3.5我anna(ok)",), "it's tea")
    encoded = encode_dialogue(codec, dialogue)
    source = ("[CLS]", dialogue.history[0], "[SEP]", dialogue.utterance, "[SEP]")
    assert len(encoded.ids) == sum(1 if text.startswith("[") else len(codec.encode_text(text)) for text in source)
    assert len(encoded.history) == len(split_units(dialogue.history[0]))
    assert len(encoded.utterance) == len(split_units(dialogue.utterance)) + 1
    (first, last), end = encoded.utterance[-2], len(encoded.ids) - 1
    assert codec.decode(encoded.ids[first : last + 1]) == ("tea",)
    assert encoded.utterance[-1] == (end, end)
    assert all(first <= last < end for first, last in (*encoded.history, *encoded.utterance[:-1]))


def test_rows_that_no_matrix_expresses_are_counted_and_refused(base: Path, tmp_path: Path) -> None:
    told, untold = (Row(word, Dialogue(("anna likes tea",), "why"), f"why {word}") for word in ("tea", "books"))
    assert count_expressible([told, untold]) == {"matrix": 0.5, "locate-fill": 1.0}
    with pytest.raises(DataError, match="rows that the baseline matrix can express, found none of 1"):
        train_baseline("matrix", str(base), [untold], [], tmp_path / "out", BaselineTraining(device="cpu"))


def test_what_is_no_baseline_is_said(tmp_path: Path, base: Path) -> None:
    with pytest.raises(InputError, match="baseline: expected one of matrix, locate-fill; found 'other'"):
        make_baseline("other", *load_base(str(base)))
    (tmp_path / "baseline.json").write_text('{"format": 9, "baseline": "matrix"}')
    with pytest.raises(ModelError, match="expected format 1 and a baseline of matrix, locate-fill, found 9 and matrix"):
        load_baseline(tmp_path)


def test_a_baseline_is_evaluated_as_any_model(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "data", seed=5, rows={"train": 4, "dev": 4, "test": 12})
    words = ["--data", "jsonl", "--path", str(data), "--model", str(trained), "--device", "cpu"]
    assert run_verb(monkeypatch, evaluate, *words, "--out", str(tmp_path / "out")) == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (metrics["n"], metrics["settings"]["variant"]) == (12, trained.name)
    assert metrics["stage_flow"]["n"] == 12, "its edits are operations"
    assert metrics["run"]["latency"]["rows"] == 12
    assert "on jsonl (test), 12 rows, in percent" in capsys.readouterr().out


def write_task(folder: Path) -> None:
    """Write rows of the copy task in the form of TASK: 40 dialogues for training, 6 for testing."""
    names = ("transcript_complete", "transcript_with_ellipsis", "transcript_with_coreference")
    dialogues = []
    for number, row in enumerate(generate_rows(46, seed=1)):
        first, second = row.dialogue.history
        asked = (row.rewrite, "" if row.is_complete else row.dialogue.utterance, "")
        turns = [
            {"usr": dict(zip(names, (first, "", ""), strict=True)), "sys": {"sent": second}},
            {"usr": dict(zip(names, asked, strict=True)), "sys": {"sent": "ok"}},
        ]
        dialogues.append({"dialogue_id": 500 + number, "dial": turns})
    folder.mkdir(parents=True)
    (folder / "CamRest676_annotated.json").write_text(json.dumps(dialogues))


def test_reproduce_baselines_stores_results_without_text_and_does_nothing_twice(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    write_task(data / "task")
    places = ["--data", str(data), "--out", str(out), "--runs", str(tmp_path / "runs"), "--base", str(base)]
    words = ["baselines", *places]
    tiny = ["epochs=1", "device=cpu"]
    assert run_verb(monkeypatch, reproduce, *words, *tiny, "--dry-run") == 0
    assert "task-matrix: to train; to evaluate: dev, test" in capsys.readouterr().out
    assert run_verb(monkeypatch, reproduce, *words, *tiny) == 0
    page = capsys.readouterr().out
    assert "| Locate-Fill | 75.0 |" in page
    assert "**matrix, after RUN, MIUR, RAU**" in page
    stored = sorted(file.name for file in out.iterdir())
    assert stored == sorted(
        [
            f"task-{split}-{baseline}{end}"
            for split in ("dev", "test")
            for baseline in BASELINES
            for end in (".json", ".rows.jsonl.gz")
        ]
        + ["baselines.json", "baselines.md"]
    )
    assert "likes" not in "".join((out / name).read_text() for name in stored if name.endswith((".json", ".md")))
    (tmp_path / "runs").rename(tmp_path / "gone")
    assert run_verb(monkeypatch, reproduce, *words, *tiny) == 0, "what is stored needs no model"
    assert capsys.readouterr().out == page
    assert run_verb(monkeypatch, reproduce, *words, "epochs=2", "device=cpu") == 2
    assert "epochs: " in capsys.readouterr().err
