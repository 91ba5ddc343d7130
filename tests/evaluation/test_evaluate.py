"""The whole way, on a tiny model of random weights: every variant, every file."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from teo.errors import DataError, InputError, MissingExtraError, ModelError, TeoError
from teo.evaluation.__main__ import main
from teo.evaluation.evaluate import Request, evaluate
from teo.evaluation.plots import draw_flow
from teo.evaluation.report import format_report
from teo.evaluation.summary import read_options
from teo.files import write_text
from teo.metrics import StageFlow
from teo.pipelines import VARIANTS

PNG = b"\x89PNG"


def request(model: Path, rows: Path, out: Path, **settings: object) -> Request:
    return Request(data="jsonl", path=rows, out=out, model=model, device="cpu", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_every_file(variant: str, model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    metrics = evaluate(request(model_folder, rows_file, out, variant=variant), io.StringIO())
    assert json.loads((out / "metrics.json").read_text(encoding="utf-8")) == json.loads(json.dumps(metrics))
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["1", "2", "3", "4"]
    assert metrics["settings"]["model"] == "tiny"
    assert len(metrics["settings"]["data_hash"]) == len(metrics["settings"]["model_hash"]) == 32
    report = (out / "report.md").read_text(encoding="utf-8")
    assert report.startswith(f"# {variant} on jsonl (test)\n")
    has_flow = variant != "direct"
    assert (metrics["stage_flow"] is not None) == has_flow == (out / "flow.png").exists()
    if has_flow:
        pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
        assert (out / "flow.png").read_bytes().startswith(PNG)
    if variant == "gold":
        assert metrics["stage_flow"]["stage1_em"] == 1.0
    assert not list(out.glob(".*"))


def test_a_second_run_asks_no_model(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    first = evaluate(request(model_folder, rows_file, tmp_path / "out", limit=2), io.StringIO())
    assert first["n"] == 2
    log = io.StringIO()
    second = evaluate(request(model_folder, rows_file, tmp_path / "out"), log)
    assert second["n"] == 4
    assert "2 of 4 rows are there already" in log.getvalue()


def test_without_matplotlib_only_the_picture_is_missing(
    model_folder: Path, rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    log = io.StringIO()
    evaluate(request(model_folder, rows_file, tmp_path / "out"), log)
    assert "flow.png is not drawn: drawing the stage flow needs the library 'matplotlib'" in log.getvalue()
    assert (tmp_path / "out" / "report.md").exists()
    with pytest.raises(MissingExtraError, match=r"pip install 'teo\[plots\]'"):
        draw_flow(StageFlow(1, 2, 3, 4), tmp_path / "flow.png")


def test_bad_input_is_one_clear_line(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    table: list[tuple[Request, type[TeoError], str]] = [
        (request(model_folder, rows_file, out, variant="teoo"), InputError, "did you mean 'teo'?"),
        (request(tmp_path, rows_file, out), ModelError, "expected a teo model folder, found no teo.json"),
        (request(model_folder, rows_file, out, limit=0), InputError, "limit: expected a number of rows from 1 on"),
        (request(model_folder, rows_file, out, batch_size=0), InputError, "batch-size: expected a number of rows"),
        (request(model_folder, rows_file, out, split="dve"), InputError, "split: "),
        (request(model_folder, rows_file, out, options={"history": "none"}), InputError, "history: "),
        (request(model_folder, rows_file, out, bf16=True), InputError, "bf16: expected a CUDA device, found 'cpu'"),
        (Request("rewrite", rows_file, out, model=model_folder, device="cpu"), DataError, "test.jsonl: expected"),
        (Request("jsonl", rows_file, out, model=model_folder, device="cuda:9"), InputError, "use --device cpu"),
    ]
    for one, kind, message in table:
        with pytest.raises(kind) as caught:
            evaluate(one, io.StringIO())
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_module_runs_without_the_command_line_libraries(
    model_folder: Path, rows_file: Path, tmp_path: Path
) -> None:
    code = (
        "import sys\n"
        "for name in ('typer', 'pydantic', 'rapidfuzz', 'matplotlib', 'onnxruntime'): sys.modules[name] = None\n"
        "import torch; torch.set_num_threads(1)\n"
        "from teo.evaluation.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["--data", "jsonl", "--path", rows_file, "--model", model_folder, "--device", "cpu"]
    arguments += ["--variant", "rerank", "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("rerank on jsonl (test), 4 rows, in percent\nEM ")
    assert "flow.png is not drawn" in done.stderr


def test_the_modules_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", "jsonl", "--path", str(tmp_path), "--out", str(tmp_path / "o"), "--device", "cpu"]
    assert main([*arguments, "--variant", "teo2"]) == 2
    assert capsys.readouterr().err.startswith("teo: variant: expected one of teo, ")


def test_the_module_prints_json_on_request(
    model_folder: Path, rows_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", "jsonl", "--path", str(rows_file), "--out", str(tmp_path / "o"), "--device", "cpu", "--json"]
    assert main([*arguments, "--model", str(model_folder), "--variant", "direct"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 4


def test_options_are_name_and_value() -> None:
    assert read_options(["history=last-two", "forms=both"]) == {"history": "last-two", "forms": "both"}
    with pytest.raises(InputError, match="option: expected NAME=VALUE such as history=last-two, found 'history'"):
        read_options(["history"])


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.md"
    write_text(file, "old")

    def full(path: Path, text: str, **_: object) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(TeoError, match=r"report\.md: cannot be written: No space left on device"):
        write_text(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_report_shows_text_as_it_is(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in rows_file.read_text().splitlines()]
    rows[0]["rewrite"] = "is | *ben* [I]"
    rows_file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    metrics = evaluate(request(model_folder, rows_file, out), io.StringIO())
    records = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    report = format_report(metrics, records)
    assert r"- reference: is \| \*ben\* \[I\]" in report
    assert "is the final EM" in report
    assert "- `EM|units:teo|case:lower|" in report
