"""Ranking: what is drawn, how it is labelled and weighed, and a model that learns from its own rewrites."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from typer.testing import CliRunner  # noqa: E402

from packed_runs import tiny_base  # noqa: E402
from teo.data.row import Row  # noqa: E402
from teo.dialogue import Dialogue  # noqa: E402
from teo.errors import ConfigError, InputError, ModelError  # noqa: E402
from teo.loading import ModelFolder, Role  # noqa: E402
from teo.models.backbone import IGNORED  # noqa: E402
from teo.training.backbones import load_base  # noqa: E402
from teo.training.examples import PROMPTS  # noqa: E402
from teo_lab.cli.app import app  # noqa: E402
from teo_lab.ranking.rank import ROLES, Candidates, Ranking, RankSettings, losses_of, make_batches, rank  # noqa: E402
from teo_lab.ranking.sample import draw_texts  # noqa: E402

ROWS = [
    Row(f"r{k}", Dialogue((f"Who is {name}?", "A singer."), "Is he old?"), f"Is {name} old?")
    for k, name in enumerate(("Bo", "Al", "Ed", "Ned", "Ted", "Bob"))
]
SETTINGS = RankSettings(samples=3, batch_tokens=200, target_limit=24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with the three roles in shared weights."""
    model = tmp_path_factory.mktemp("model")
    texts = [text for row in ROWS for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite)]
    base = tiny_base(tmp_path_factory.mktemp("base"), texts)
    base.rename(model / "weights")
    ModelFolder({role: Role("weights", tuple(map(str, PROMPTS[role]))) for role in ROLES}).save(model)
    return model


def test_texts_are_drawn_with_their_end_and_differ(folder: Path) -> None:
    model, codec = load_base(str(folder / "weights"))
    torch.manual_seed(1)
    sources = torch.tensor([[*codec.encode((row.dialogue.utterance,)), codec.eos_id] for row in ROWS[:2]])
    found = draw_texts(model.eval(), sources, codec.decoder_start(), 40, temperature=5.0, limit=30)
    assert [len(texts) > 3 for texts in found] == [True, True]
    assert all(ids[-1] == codec.eos_id and codec.eos_id not in ids[:-1] for texts in found for ids in texts)
    assert all(len(ids) <= 30 for texts in found for ids in texts)


def test_right_and_wrong_candidates_stand_beside_the_reference(folder: Path) -> None:
    _, codec = load_base(str(folder / "weights"))
    ranking = Ranking(codec, ROWS, SETTINGS)
    wrong, same = (tuple(codec.encode_target((text,))) for text in ("Is he old?", "Is Bo old"))
    found = ranking.label(0, {"direct": {wrong, same}, "fused": {tuple(ranking.encoded[0][1]["fused"].ids[2:])}})
    assert found.group == [0, 0, 0, 1, 1, 1]
    assert found.right[:4] == [True] * 4 and sorted(found.right[4:]) == [False, True]
    assert [codec.decode(text.ids[text.free :]) for text in found.example.segments[3:4]] == [("Is Bo old?",)]
    nothing_wrong = ranking.label(0, {"direct": {same}, "fused": set()})
    assert nothing_wrong.group == [0, 0, 0], "without a wrong one there is nothing to rank"


def test_the_loss_is_the_share_of_the_wrong_ones() -> None:
    """Two texts of one token, a reference and candidates: right with 0.3, wrong with 0.1 of the probability."""
    scores = torch.tensor([[0.5, 0.3, 0.1, 1.0]]).log()
    batch = {"segment": torch.tensor([[1, 2, 3, 0]]), "labels": torch.tensor([[7, 7, 7, IGNORED]])}
    group, right = torch.tensor([[0, 1, 1]]), torch.tensor([[True, True, False]])
    usual, wrong = losses_of(scores, batch, group, right)
    assert float(usual) == pytest.approx(-torch.tensor(0.5).log().item())
    assert float(wrong) == pytest.approx(0.25)
    usual, wrong = losses_of(scores, batch, torch.zeros_like(group), right)
    assert float(wrong) == 0.0 and float(usual) == pytest.approx(-float(scores[0, :3].mean()))


def test_batches_hold_every_row_and_few_tokens(folder: Path) -> None:
    _, codec = load_base(str(folder / "weights"))
    ranking = Ranking(codec, ROWS, SETTINGS)
    items: list[Candidates] = [ranking.label(k, {"direct": set(), "fused": set()}) for k in ranking.encoded]
    batches = make_batches(items, 200, random.Random(0))
    assert sorted(map(id, items)) == sorted(id(item) for batch in batches for item in batch)
    assert len(batches) > 1 and all(
        len(batch) * sum(max(sizes) for sizes in zip(*(item.size for item in batch), strict=True)) <= 200
        for batch in batches
    )


@pytest.mark.train
def test_a_model_learns_to_rank_and_is_written_whole(folder: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "ranked"
    file.write_text("".join(json.dumps(row.to_dict()) + "\n" for row in ROWS), encoding="utf-8")
    options = ["--minutes", "5", "--rounds", "2", "--round-rows", "4", "--device", "cpu"]
    done = CliRunner().invoke(app, ["rank", str(folder), str(file), str(out), *options], catch_exceptions=False)
    assert done.stdout.strip() == str(out)
    before, after = (load_base(str(each / "weights"))[0] for each in (folder, out))
    assert not torch.equal(before.embedding.weight, after.embedding.weight)
    assert ModelFolder.load(out).roles == ModelFolder.load(folder).roles
    history = json.loads((out / "weights" / "ranking.json").read_text(encoding="utf-8"))["rounds"]
    assert [one["rows"] for one in history] == [4, 2] and history[0]["step"] < history[1]["step"]
    assert all(one["candidates"] >= one["right"] > 0 for one in history if one["ranked"])


def test_too_little_time_is_an_error_and_writes_nothing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected more time, or fewer rows in a round"):
        rank(folder, ROWS, tmp_path / "out", replace(SETTINGS, minutes=1e-6), "cpu")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_must_not_be_replaced_is_refused_before_learning(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn(*_: object) -> None:
        raise AssertionError("the time was spent")

    monkeypatch.setattr(Ranking, "__init__", learn)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="expected an empty folder or a model to replace, found other files"):
        rank(folder, ROWS, tmp_path, SETTINGS, "cpu")
    with pytest.raises(InputError, match="expected another folder than that of the source"):
        rank(folder, ROWS, folder, SETTINGS, "cpu")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_model_without_the_roles_is_refused(folder: Path, tmp_path: Path) -> None:
    ModelFolder({"direct": Role("weights", ("[Y]",))}).save(tmp_path)
    with pytest.raises(ModelError, match="expected fused, direct, fast in shared weights, found direct"):
        rank(tmp_path, ROWS, tmp_path / "out", SETTINGS)
    assert not (tmp_path / "out").exists()
