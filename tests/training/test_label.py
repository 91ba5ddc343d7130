"""Rows from plain dialogues: what is drawn, what is kept, and the mean of models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from teo.data.row import Row  # noqa: E402
from teo.dialogue import Dialogue  # noqa: E402
from teo.edits import EditScript  # noqa: E402
from teo.errors import ConfigError, ModelError  # noqa: E402
from teo.loading import ModelFolder, Role  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer  # noqa: E402
from teo.pipelines import Pipeline, Prediction  # noqa: E402
from teo.stages import Stages  # noqa: E402
from teo.training import average as averaging  # noqa: E402
from teo.training import label as labelling  # noqa: E402
from teo.training.label import LabelConfig, draw_rows, keep  # noqa: E402
from teo.training.pretraining.streams import make_stream  # noqa: E402

DIALOGUES = [
    ["苹果好吃吗", "好吃", "多少钱"],
    ["Who played Batman?", "Ben Affleck did.", "Is he good?", "He is."],
    ["alone"],
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of the dialogues and a tiny model with the roles fast and direct."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("label")
    tokenizer = train_tokenizer([turn for turns in DIALOGUES for turn in turns] * 4, size=500, alphabet=140)
    tokenizer.save(str(folder / "tokenizer.json"))
    lines = "".join(json.dumps({"turns": turns}, ensure_ascii=False) + "\n" for turns in DIALOGUES)
    (folder / "shard.jsonl").write_text(lines, encoding="utf-8")
    make_stream(folder / "shard.jsonl", folder / "shard.npy", tokenizer.to_str())
    size = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "heads": 4, "d_ff": 48}
    model = TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **size))
    model.save_pretrained(folder / "model" / "shared")
    wrap_tokenizer(tokenizer).save_pretrained(folder / "model" / "shared")
    ModelFolder({"fast": Role("shared", ("[F]",)), "direct": Role("shared", ("[Y]",))}).save(folder / "model")
    return folder


def config(work: Path, **changes: object) -> LabelConfig:
    given = {
        "model": str(work / "model"),
        "output": str(work / "out.jsonl"),
        "streams": {str(work / "shard.npy"): 1.0},
        "tokenizer": str(work / "tokenizer.json"),
        "rows": 20,
        "device": "cpu",
    }
    return LabelConfig(**{**given, **changes})  # type: ignore[arg-type]


def test_runs_of_turns_are_drawn_once_each(work: Path) -> None:
    rows = list(draw_rows(config(work, history=(1, 2))))
    drawn = {(row.dialogue.history, row.dialogue.utterance) for row in rows}
    assert len(drawn) == len(rows)
    assert (("苹果好吃吗", "好吃"), "多少钱") in drawn
    known = [turn for turns in DIALOGUES for turn in turns]
    assert all(turn in known for history, utterance in drawn for turn in (*history, utterance))


def test_parts_draw_rows_of_their_own(work: Path) -> None:
    first, again, second = ([row.dialogue for row in draw_rows(config(work, rows=3, part=part))] for part in (0, 0, 1))
    assert first == again
    assert first != second


def test_long_and_short_turns_are_passed_over(work: Path) -> None:
    rows = list(draw_rows(config(work, utterance=(3, 3))))
    assert {row.dialogue.utterance for row in rows} <= {"多少钱", "He is."}
    assert rows


def test_only_rows_that_variants_agree_on_are_written(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def predict(pipeline: Pipeline, stages: Stages, dialogues: list[Dialogue]) -> list[Prediction]:
        odd = "!" if pipeline.name == "direct" else ""
        texts = ["苹果多少钱" if "多少钱" in dialogue.utterance else "x" + odd for dialogue in dialogues]
        return [Prediction(text, EditScript()) for text in texts]

    monkeypatch.setattr(labelling, "predict", predict)
    assert labelling.label(config(work)) == 1
    (line,) = (work / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["rewrite"] == "苹果多少钱"


@pytest.mark.parametrize(("votes", "kept"), [(0, 0), (4, 0), (3, 1), (2, 1)])
def test_several_teachers_vote(work: Path, votes: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["苹果多少钱", "苹果多少钱", "苹果多少钱", "好吃多少钱"])

    def predict(pipeline: Pipeline, stages: Stages, dialogues: list[Dialogue]) -> list[Prediction]:
        answer, number = next(answers), len(answers_given)
        answers_given.append(answer)
        texts = [answer if "多少钱" in dialogue.utterance else f"x{number}" for dialogue in dialogues]
        return [Prediction(text, EditScript()) for text in texts]

    answers_given: list[str] = []
    monkeypatch.setattr(labelling, "predict", predict)
    assert labelling.label(config(work, others=(str(work / "model"),), votes=votes)) == kept
    assert len(answers_given) == 4


def test_more_votes_than_rewrites_are_refused(work: Path) -> None:
    with pytest.raises(ConfigError, match="votes: expected 0 to 2, which is how many rewrites there are; found 3"):
        config(work, votes=3)


def test_a_real_model_labels(work: Path) -> None:
    count = labelling.label(config(work, variants=("fast",), unchanged=1.0))
    assert count == len((work / "out.jsonl").read_text(encoding="utf-8").splitlines()) > 0


def test_unchanged_rows_are_kept_to_their_share() -> None:
    same = [Row(f"s{k}", Dialogue(("a",), "b"), "b") for k in range(6)]
    other = [Row(f"o{k}", Dialogue(("a",), "b"), "b a") for k in range(3)]
    assert [row.id for row in keep([*same, *other], 0.25)] == ["s0", "o0", "o1", "o2"]
    assert len(keep([*same, *other], 1.0)) == 9
    assert len(keep([*same, *other], 0.0)) == 3


def test_labelling_needs_dialogues(work: Path) -> None:
    with pytest.raises(ConfigError, match="streams"):
        config(work, streams={})


def test_a_mean_lies_between_its_models(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "model", tmp_path / "b")
    model = TeoForConditionalGeneration.from_pretrained(tmp_path / "b" / "shared")
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)
    model.save_pretrained(tmp_path / "b" / "shared")
    averaging.average(tmp_path / "mean", [work / "model", tmp_path / "b"])
    mean = TeoForConditionalGeneration.from_pretrained(tmp_path / "mean" / "shared")
    first = TeoForConditionalGeneration.from_pretrained(work / "model" / "shared")
    assert torch.allclose(mean.embedding.weight, 2 * first.embedding.weight, atol=1e-6)
    assert ModelFolder.load(tmp_path / "mean").roles == ModelFolder.load(work / "model").roles


def test_models_of_other_roles_have_no_mean(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "model", tmp_path / "b")
    ModelFolder({"fast": Role("shared", ("[F]",))}).save(tmp_path / "b")
    with pytest.raises(ModelError, match="same roles"):
        averaging.average(tmp_path / "mean", [work / "model", tmp_path / "b"])
    assert not (tmp_path / "mean").exists()
