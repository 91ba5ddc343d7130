"""The latency benchmark: what it measures and how it says it, with scripted systems and a tiny model."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from latency import main
from race import Ours, Report, Speed, Work, make_work, measure_process, race
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import InputError, TeoError

ROWS = [
    {"id": "1", "history": ["Ben is here"], "utterance": "is he", "rewrite": "is Ben"},
    {"id": "2", "history": ["Ben is here", "why"], "utterance": "why", "rewrite": "why is Ben here"},
    {"id": "3", "history": ["乔峰在这里"], "utterance": "在吗", "rewrite": "乔峰在吗"},
]


class Sleeper:
    """A system that takes so long per row."""

    def __init__(self, name: str, seconds: float, log: list[str]) -> None:
        self.name, self.seconds, self.log = name, seconds, log

    def do(self, rows: Sequence[Work]) -> None:
        self.log.append(f"{self.name}{len(rows)}")
        time.sleep(self.seconds * len(rows))


def test_systems_take_turns_and_are_compared_within_the_run() -> None:
    log: list[str] = []
    work = [Work((1, 2), 1, 2, 1)] * 5
    report = race([Sleeper("a", 0.004, log), Sleeper("b", 0.016, log)], work, rounds=3, batch_size=4)
    assert log == ["a1", "b1", *["a1", "a4", "b1", "b4"], *["a1", "a1", "b1", "b1"], *["a1", "a4", "b1", "b4"]]
    fast, slow = report.speeds
    assert 3 < fast.latency_ms < 12
    assert 2 < report.ratios()["b"]["latency"] < 5.5
    assert report.ratios()["a"] == {"latency": 1.0, "throughput": 1.0}
    assert slow.rows_per_s < fast.rows_per_s < 260
    with pytest.raises(InputError, match="expected at least one system, one row and one round"):
        race([], work)


def test_the_tables() -> None:
    report = Report(
        64,
        5,
        [Speed("ours", 20.0, 80.0, 32), Speed("theirs", 400.0, 8.0, 32)],
        {"machine": "a machine"},
        [{"name": "ours", "seconds": 0.5, "peak_mb": 200.4}],
        {"tokens of the dialogue": [(16, 10.0), (32, 12.5)]},
    )
    text = report.to_markdown()
    assert "64 rows, 5 interleaved rounds, medians; a machine" in text
    assert "| theirs | 400.0 | 20.0 | 8.0 | 10.0 |" in text
    assert "| ours | 0.50 | 200 |" in text
    assert "| 32 | 12.5 |" in text
    assert json.loads(json.dumps(report.to_dict()))["ratios"]["theirs"] == {"latency": 20.0, "throughput": 10.0}


@pytest.mark.process
def test_a_process_is_measured_from_its_start() -> None:
    found = measure_process("sleeper", "import time; time.sleep(0.2); data = b'x' * 50_000_000")
    assert found["name"] == "sleeper"
    assert 0.2 < found["seconds"] < 20
    assert 50 < found["peak_mb"] < 400
    with pytest.raises(TeoError, match=r"the process 'broken' failed: ZeroDivisionError"):
        measure_process("broken", "1 / 0")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="exporting a model needs torch")
    pytest.importorskip("transformers", reason="exporting a model needs transformers")
    pytest.importorskip("onnx", reason="exporting a model needs onnx")
    from teo.export.export import export_model
    from teo.loading import ModelFolder, Role
    from teo.models import TeoConfig, TeoForConditionalGeneration
    from teo.models.tokenizer import train_tokenizer, wrap_tokenizer

    torch.manual_seed(0)
    tokenizer = train_tokenizer([row["rewrite"] for row in ROWS], size=320)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "heads": 2, "d_ff": 32}
    path = tmp_path_factory.mktemp("models") / "tiny"
    TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **sizes)).save_pretrained(path / "w")
    wrap_tokenizer(tokenizer).save_pretrained(path / "w")
    ModelFolder({"fused": Role("w", ("[E]",))}, source_limit=64, variant="fused").save(path)
    return export_model(path, path.with_name("exported")).path


def test_the_work_is_the_rows_true_lengths(model: Path) -> None:
    generator = Ours(model, 1).generator
    row = Row("1", Dialogue(("乔峰在吗",), "在吗"), "乔峰在吗")
    [work] = make_work(generator, [row])
    assert len(work.source) == 1 + 5 + 3, "[CLS], four characters and [SEP], two and [SEP]"
    assert (work.operations, work.rewrite) == (4, 5), "[I] 乔 峰 [SEP], then four characters and the end"
    assert work.placed == 5, "[P] [I] 乔 峰 and the end"


@pytest.mark.slow
def test_the_script_writes_and_prints(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "test.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    options = ["--model", str(model), "--rounds", "2", "--batch-size", "2", "--threads", "1", "--variants", "fused"]
    extra = ["--trained", str(model.with_name("tiny")), "--growth", "--processes", "--out", str(tmp_path / "out")]
    main([f"jsonl={rows}", *options, *extra])
    stored = json.loads((tmp_path / "out" / "jsonl" / "bench.json").read_text())
    assert [speed["name"] for speed in stored["speeds"]] == [
        "teo fused, int8, 1 thread",
        "teo, torch fp32, 1 thread",
    ]
    assert stored["rows"] == 3
    assert stored["facts"]["model"] == "exported"
    assert [x for x, _ in stored["growth"]["tokens of the dialogue"]] == [16, 32, 64]
    assert stored["processes"][0]["peak_mb"] > 20
    shown = capsys.readouterr()
    assert (tmp_path / "out" / "jsonl" / "bench.md").read_text() in shown.out
    assert "round 2 of 2" in shown.err
    assert (tmp_path / "out" / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_dataset_is_a_name_and_a_path(model: Path) -> None:
    with pytest.raises(InputError, match="dataset: expected NAME=PATH such as task=data/task, found 'task'"):
        main(["task", "--model", str(model)])
