"""The whole way, on a tiny model of random weights: every variant, every file."""

import io
import json
import sys
from pathlib import Path

import pytest

from teo.cli.evaluate import read_options
from teo.data.row import MeaningKeys, Row
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError, MissingExtraError, ModelError, TeoError
from teo.evaluation.ablations import VARIANTS
from teo.evaluation.evaluate import Request, evaluate, evaluate_every
from teo.evaluation.plots import draw_flow
from teo.evaluation.report import summarise
from teo.files import write_jsonl, write_text
from teo.loading import has_default
from teo.metrics import StageFlow
from teo.pipelines import PIPELINES
from teo.rewriter import Rewriter

PNG = b"\x89PNG"


def request(model: Path, rows: Path, out: Path, **settings: object) -> Request:
    return Request(data="jsonl", path=rows, out=out, model=model, device="cpu", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_every_file(variant: str, model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    metrics = evaluate(request(model_folder, rows_file, out, variant=variant), io.StringIO()).to_dict()
    assert json.loads((out / "metrics.json").read_text(encoding="utf-8")) == json.loads(json.dumps(metrics))
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["1", "2", "3", "4"]
    assert metrics["settings"]["model"] == "tiny"
    assert len(metrics["settings"]["data_hash"]) == len(metrics["settings"]["model_hash"]) == 32
    report = (out / "report.md").read_text(encoding="utf-8")
    alone = f"pipeline: {variant} alone, without the rules and thresholds of `teo rewrite`"
    assert report.startswith(f"# {variant} on jsonl (test)\n\n{alone}\n")
    has_flow = variant not in ("direct", "copy")
    assert (metrics["stage_flow"] is not None) == has_flow == (out / "flow.png").exists()
    if has_flow:
        pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
        assert (out / "flow.png").read_bytes().startswith(PNG)
    if variant == "gold":
        assert metrics["stage_flow"]["stage1_em"] == 1.0
    assert not list(out.glob(".*"))


def test_a_second_run_asks_no_model(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    first = evaluate(request(model_folder, rows_file, tmp_path / "out", limit=2), io.StringIO())
    assert first.measures.scores.n == 2
    log = io.StringIO()
    second = evaluate(request(model_folder, rows_file, tmp_path / "out"), log)
    assert second.measures.scores.n == 4
    assert "2 of 4 rows are there already" in log.getvalue()


def test_without_matplotlib_only_the_picture_is_missing(
    model_folder: Path, rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    log = io.StringIO()
    evaluate(request(model_folder, rows_file, tmp_path / "out"), log)
    assert "flow.png is not drawn: drawing the stage flow needs the library 'matplotlib'" in log.getvalue()
    assert (tmp_path / "out" / "report.md").exists()
    with pytest.raises(MissingExtraError, match=r"pip install 'teo-rewriter\[plots\]'"):
        draw_flow(StageFlow(1, 2, 3, 4), tmp_path / "flow.png")


def test_bad_input_is_one_clear_line(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for settings, words in (
        ({"limit": 0}, "limit: expected a number of rows from 1 on"),
        ({"batch_size": 0}, "batch-"),
    ):
        with pytest.raises(InputError, match=words):
            request(model_folder, rows_file, out, **settings)
    table: list[tuple[Request, type[TeoError], str]] = [
        (request(model_folder, rows_file, out, variant="teoo"), InputError, "did you mean 'teo'?"),
        (request(model_folder, rows_file, out, variant="gold", abstain=True), InputError, "that `teo rewrite` runs"),
        (request(tmp_path, rows_file, out), ModelError, "expected a teo model folder, found no teo.json"),
        (request(model_folder, rows_file, out, split="dve"), InputError, "split: "),
        (request(model_folder, rows_file, out, options={"history": "none"}), InputError, "history: "),
        (request(model_folder, rows_file, out, bf16=True), InputError, "bfloat16: expected a CUDA device, found 'cpu'"),
        (Request("rewrite", rows_file, out, model=model_folder, device="cpu"), DataError, "test.jsonl: expected"),
        (Request("jsonl", rows_file, out, model=model_folder, device="cuda:9"), InputError, "use --device cpu"),
    ]
    for one, kind, message in table:
        with pytest.raises(kind) as caught:
            evaluate(one, io.StringIO())
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


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
    evaluate(request(model_folder, rows_file, out), io.StringIO())
    report = (out / "report.md").read_text(encoding="utf-8")
    assert r"- reference: is \| \*ben\* \[I\]" in report
    assert "is the final EM" in report
    assert "- `EM|units:teo|case:lower|" in report


def test_without_a_variant_it_is_the_rewriter_that_is_measured(
    model_folder: Path, rows_file: Path, tmp_path: Path
) -> None:
    rewriter = Rewriter.from_pretrained(model_folder, runtime="torch")
    own = evaluate(request(model_folder, rows_file, tmp_path / "own"), io.StringIO())
    assert own.settings.variant == f"{rewriter.variant}+threshold" == "teo+threshold"
    assert own.pipeline == "teo with rules and thresholds, as `teo rewrite`"
    assert f"pipeline: {own.pipeline}\n" in (tmp_path / "own" / "report.md").read_text(encoding="utf-8")
    other = evaluate(request(model_folder, rows_file, tmp_path / "d", variant="direct", abstain=True), io.StringIO())
    assert other.pipeline == "direct with rules and thresholds, as `teo rewrite --variant direct`"
    for folder, variant in (("own", None), ("d", "direct")):
        rewriter = Rewriter.from_pretrained(model_folder, runtime="torch", variant=variant)
        lines = (tmp_path / folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
        for line in map(json.loads, lines):
            record = rewriter.rewrite(line["history"], line["current"])
            assert line["prediction"] == record.rewrite
            assert line["truncated"] == record.to_dict()["truncated"]


@pytest.mark.slow
@pytest.mark.skipif(not has_default(), reason="this installation has no embedded model")
@pytest.mark.parametrize("variant", [None, "fast"])
def test_an_evaluation_of_the_embedded_model_is_what_its_rewriter_says(variant: str | None, tmp_path: Path) -> None:
    dialogues = [
        Dialogue(("Who wrote Dune?", "Frank Herbert."), "When was he born?"),
        Dialogue(("你喜欢周杰伦吗", "喜欢"), "他哪年出生的"),
        Dialogue(("Do you like tea?", "Yes."), "Thank you!"),
        Dialogue(("西安天气怎么样", "今天多云"), "明天呢"),
        Dialogue(("so",), "word " * 300),
    ]
    rows = [Row(str(k), dialogue, dialogue.utterance).to_dict() for k, dialogue in enumerate(dialogues)]
    write_jsonl(tmp_path / "test.jsonl", rows)
    rewriter = Rewriter.from_pretrained(variant=variant)
    asked = Request("jsonl", tmp_path / "test.jsonl", tmp_path / "out", variant=variant, abstain=variant is not None)
    evaluation = evaluate(asked, io.StringIO())
    assert (evaluation.settings.variant, evaluation.settings.precision) == (f"{rewriter.variant}+threshold", "int8")
    written = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").read_text("utf-8").splitlines()]
    records = rewriter.rewrite_many(dialogues)
    assert [line["prediction"] for line in written] == [record.rewrite for record in records]
    if rewriter.variant == "fast":  # `direct` writes none: a record has those of its edits
        assert [line["operations"] for line in written] == [record.operations for record in records]
    assert [line["truncated"] for line in written] == [record.to_dict()["truncated"] for record in records]


def test_every_variant_that_a_model_can_run(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    done = evaluate_every(request(model_folder, rows_file, tmp_path / "all", limit=2, abstain=True), io.StringIO())
    assert list(done) == list(PIPELINES), "ablations have no thresholds"
    stored = json.loads((tmp_path / "all" / "variants.json").read_text())
    assert list(stored["fast"]) == ["n", "em", "bleu4", "run_f1", "breakdown", "stage_flow"]
    table = (tmp_path / "all" / "variants.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == [f"| {name}" for name in PIPELINES]


def test_em_counts_a_match_with_any_accepted_rewrite(model_folder: Path, rows_file: Path, tmp_path: Path) -> None:
    first = evaluate(request(model_folder, rows_file, tmp_path / "first", variant="direct"), io.StringIO())
    lines = [json.loads(line) for line in (tmp_path / "first" / "predictions.jsonl").read_text("utf-8").splitlines()]
    assert first.measures.scores["em"] == 0.0, "a model of random weights"
    assert not any("references" in line for line in lines)
    rows = [json.loads(line) for line in rows_file.read_text(encoding="utf-8").splitlines()]
    for row, line in zip(rows[:2], lines, strict=False):
        row["rewrites"] = [row["rewrite"], line["prediction"]]
    write_jsonl(rows_file, rows)
    for _ in range(2):  # the second time from the file
        again = evaluate(request(model_folder, rows_file, tmp_path / "again", variant="direct"), io.StringIO())
        assert again.measures.scores["em"] == 2 / len(rows)
        assert again.measures.errors.rows == len(rows) - 2
    lines = [json.loads(line) for line in (tmp_path / "again" / "predictions.jsonl").read_text("utf-8").splitlines()]
    assert [line.get("references") for line in lines[:3]] == [[row["rewrites"][1]] for row in rows[:2]] + [None]


def test_rows_with_keys_are_judged_by_meaning_too(model_folder: Path, tmp_path: Path) -> None:
    keyed = Row("1", Dialogue(("Who wrote Dune?",), "Is it old?"), "Is Dune old?", (), MeaningKeys((("Dune",),), ()))
    complete = Row("2", Dialogue(("hi",), "Is Dune old?"), "Is Dune old?")
    file = tmp_path / "test.jsonl"
    write_jsonl(file, [keyed.to_dict(), complete.to_dict()])
    out = tmp_path / "out"
    evaluation = evaluate(request(model_folder, file, out, variant="copy"), io.StringIO())
    counts = evaluation.to_dict()["meaning"]["counts"]
    assert (counts["missed"], counts["kept"], sum(counts.values())) == (1, 1, 2)
    lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["meaning"] for line in lines] == ["missed", "kept"]
    assert "| missed | 1 | 100.0 |" in (out / "report.md").read_text(encoding="utf-8")
    assert "by meaning: right 0.0  partly 0.0  wrong 0.0  missed 100.0" in summarise(evaluation, out)


@pytest.mark.parametrize("variant", [None, "copy", "teo", "fast"])
def test_half_an_emoji_is_measured_and_every_file_is_utf8(
    variant: str | None, model_folder: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "test.jsonl", tmp_path / "out"
    write_jsonl(file, [Row("1", Dialogue(("tea \ud83d",), "why \ud83d"), "why tea \ud83d").to_dict()])
    for _ in range(2):  # the second time from the file
        assert evaluate(request(model_folder, file, out, variant=variant), io.StringIO()).measures.scores.n == 1
    for name in ("predictions.jsonl", "metrics.json", "report.md"):
        assert (out / name).read_bytes().decode("utf-8")
    assert json.loads((out / "predictions.jsonl").read_text("utf-8"))["current"] == "why \ud83d"
