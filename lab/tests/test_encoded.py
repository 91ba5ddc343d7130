"""Rows encoded beforehand: the same examples as training makes of plain rows, one file, and a run from it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from typer.testing import CliRunner  # noqa: E402

from packed_runs import recipe, tiny_base  # noqa: E402
from teo.errors import ConfigError, DataError, InputError  # noqa: E402
from teo.training.backbones import LayoutChoice, load_base  # noqa: E402
from teo.training.batches import PackedBatches  # noqa: E402
from teo.training.config import PACKED_ROLES, TrainConfig  # noqa: E402
from teo.training.dataset import ExampleDataset  # noqa: E402
from teo.training.examples import ExampleMaker  # noqa: E402
from teo.training.rows import RunRows, read_rows  # noqa: E402
from teo_lab.cli.app import app  # noqa: E402
from teo_lab.encoded import (  # noqa: E402
    DRAWS,
    EncodedBatches,
    EncodedRows,
    freeze,
    made_for,
    require_encodable,
    train_encoded,
)

FEW = ("data.rows=48", "data.repeat=2", 'data.dev=""', "perturbation.prob_p=0.9", "perturbation.fused_share=0.7")
"""Few rows, each twice, with much noise and nothing to choose on."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny backbone with a tokenizer."""
    return tiny_base(tmp_path_factory.mktemp("base"), ["Who is it? It is he.", "苹果多少钱"])


def pack_rows(config: TrainConfig, rows: RunRows) -> PackedBatches:
    _, codec = load_base(config.model.base)
    makers = [ExampleMaker.of_config(config, role, codec.layout) for role in config.roles]
    return PackedBatches(ExampleDataset.of_config(config, rows, makers, codec), config.optimisation, config.seed)


def test_encoded_rows_teach_what_packed_ones_teach(base: Path, tmp_path: Path) -> None:
    config = recipe(tmp_path, base, *FEW)
    packed = pack_rows(config, read_rows(config.data, tmp_path))
    encoded = EncodedBatches(freeze(packed.dataset), config.optimisation, config.seed)
    assert encoded.sizes == packed.sizes and len(encoded) == len(packed)
    noisy = 0
    for item in range(len(packed.packed)):
        row = packed.packed[item].row
        first = next(k for k in range(len(packed.packed)) if packed.packed[k].row == row and packed.packed[k].copy == 0)
        drawn = [packed.examples(first, epoch)[0].segments[3:] for epoch in range(DRAWS)]
        for epoch in range(DRAWS + 1):
            (given,), (wanted,) = encoded.examples(item, epoch), packed.examples(item, epoch)
            assert (given.source, given.segments[:3]) == (wanted.source, wanted.segments[:3])
            assert given.segments[3:] == drawn[(packed.packed[item].copy + epoch + config.seed) % DRAWS]
            noisy += len(given.segments) > 3
    assert noisy > len(packed.packed)


def test_files_are_joined_in_order(base: Path, tmp_path: Path) -> None:
    config = recipe(tmp_path, base, *FEW)
    rows = freeze(pack_rows(config, read_rows(config.data, tmp_path)).dataset)
    rows.save(tmp_path / "a.npz")
    both = EncodedRows.load([tmp_path / "a.npz", tmp_path / "a.npz"])
    assert both.made_for == rows.made_for
    assert np.array_equal(both.ids, np.concatenate([rows.ids, rows.ids])) and len(both.repeats) == 2 * len(rows.repeats)
    batches = EncodedBatches(both, config.optimisation, config.seed)
    assert batches.examples(0, 0) == batches.examples(len(batches.sizes) // 2, 0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "no file"), (b"nothing of ours", "not an archive"), (b"PK\x03\x04cut", "an archive that was cut")],
)
def test_what_is_no_file_of_rows_is_refused(content: bytes | None, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"a.npz: expected rows that `teo-lab encode` wrote"):
        EncodedRows.load([file])


def run(*words: object) -> str:
    """Return what a command of the lab printed; its errors come through."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).stdout


@pytest.mark.train
def test_a_run_from_encoded_rows_needs_no_data(base: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.npz"
    recipe(tmp_path, base, *FEW)
    configuration = tmp_path / "packed.toml"
    assert "48 rows, 96 an epoch" in run("encode", configuration, file, *FEW)
    nowhere = "data.path=nowhere"
    answer = json.loads(run("train", configuration, file, nowhere, "data.name=jsonl", "optimisation.batch_size=16"))
    assert answer == {"model": str(tmp_path / "model")}
    losses = (tmp_path / "model" / "training" / "weights" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in losses] == [4, 8, 12]
    assert (tmp_path / "model" / "teo.json").is_file()
    record = json.loads((tmp_path / "model" / "training" / "record.json").read_text(encoding="utf-8"))
    assert [Path(each["file"]).name for each in record["data"]] == ["rows.npz"], "the encoded file is hashed"
    _, codec = load_base(str(base))
    with pytest.raises(ConfigError, match=r"expected rows for direct, layout 1, tokens \w+, found fused\+direct\+fast"):
        EncodedRows.load([file]).require(made_for(["direct"], codec))
    with pytest.raises(ConfigError, match="expected rows for direct"):
        train_encoded(recipe(tmp_path, base, 'roles=["direct"]', "overwrite=true"), [file])


@pytest.mark.parametrize("override", ["shared=false", 'roles=["stage1", "stage2"]', "model.base=random"])
def test_other_runs_cannot_read_encoded_rows(override: str, base: Path, tmp_path: Path) -> None:
    config = recipe(tmp_path, base, override)
    with pytest.raises(ConfigError, match=f"encoded: expected shared roles of {', '.join(PACKED_ROLES)}"):
        require_encodable(config)
    with pytest.raises(ConfigError, match="encoded: expected shared roles"):
        train_encoded(config, [tmp_path / "a.npz"])
    assert not (tmp_path / "model").exists(), "nothing is written before that"


def test_rows_that_no_run_could_read_are_not_encoded(base: Path, tmp_path: Path) -> None:
    recipe(tmp_path, base)
    with pytest.raises(ConfigError, match="encoded: expected shared roles"):
        run("encode", tmp_path / "packed.toml", tmp_path / "rows.npz", "shared=false")
    assert not (tmp_path / "rows.npz").exists()


@pytest.mark.parametrize("words", [("seed=3",), ("rows.npz", "rows.jsonl")], ids=["no file", "another file"])
def test_words_that_are_no_encoded_files_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected one or more files \.npz and then key=value, found"):
        run("train", tmp_path / "packed.toml", *words)


def test_speakers_are_part_of_what_rows_were_encoded_for(base: Path) -> None:
    plain, marked = (load_base(str(base), LayoutChoice(1, speakers))[1] for speakers in (False, True))
    assert made_for(["direct"], plain).startswith("direct, layout 1, tokens ")
    assert made_for(["direct"], marked).startswith("direct, layout 1 with speakers, tokens ")
