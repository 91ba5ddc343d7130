"""Configurations: every key has a help text, mistakes are named, and what is printed can be read again."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from teo.errors import ConfigError
from teo.training.config import TrainConfig, read_config
from teo.training.settings import build, list_keys, merge, read_tree, to_toml, to_tree

SMALL = 'output = "out"\n[data]\npath = "rows.jsonl"\n'


def write(folder: Path, text: str, name: str = "run.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_defaults_are_the_papers(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, SMALL))
    assert config.roles == ("stage1", "stage2")
    assert (config.perturbation.prob_p, config.perturbation.prob_r) == (0.6, 0.5)
    assert (config.optimisation.epochs, config.optimisation.learning_rate) == (30, 5e-5)
    assert config.model.base == "facebook/bart-base"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate = 1", "learning_rate: unknown key; the nearest known one is optimisation.learning_rate"),
        (
            "[optimisation]\nlearning_rte = 1",
            "learning_rte: unknown key; the nearest known one is optimisation.learning_rate",
        ),
        ("zzz = 1", "zzz: unknown key; known are output, roles, shared"),
        ("[perturbation]\nprob = 0.1", "perturbation.prob: unknown key; the nearest known one is perturbation.prob_"),
        ("rolse = []", "rolse: unknown key; the nearest known one is roles"),
        ('[optimisation]\nepochs = "ten"', 'optimisation.epochs: expected a whole number of at least 1, found "ten"'),
        ("[optimisation]\nepochs = 2.5", "optimisation.epochs: expected a whole number of at least 1, found 2.5"),
        ("[optimisation]\nbf16 = 1", "optimisation.bf16: expected true or false, found 1"),
        ("seed = true", "seed: expected a whole number from 0 to 4294967295, found true"),
        ('order = "random"', 'order: expected "position" or "insertions-first", found "random"'),
        ("roles = [1]", "roles[0]: expected text, found 1"),
        ("model = 3", "model: expected a table, found 3"),
        ('[model.random]\nfamily = "gpt"', 'model.random.family: expected "bart" or "t5" or "teo"'),
        ("[perturbation]\nprob_p = 1.5", "perturbation.prob_p: expected a number from 0 to 1, found 1.5"),
        ("[optimisation]\nbatch_size = 0", "optimisation.batch_size: expected a whole number of at least 1, found 0"),
        ("[optimisation]\nema = 1", "optimisation.ema: expected a number from 0 to below 1, found 1"),
        ('roles = ["stage3"]', "roles: expected roles among stage1, stage2, rfis, direct, fast, fused, found stage3"),
        ('roles = ["stage1", "stage1"]', "roles: expected each role once, found stage1, stage1"),
        ('shared = true\nroles = ["stage1", "fused"]', "roles: expected stage1 or fused"),
        ("seed = -1", "seed: expected a whole number from 0 to 4294967295, found -1"),
        ("seed = 4294967296", "seed: expected a whole number from 0 to 4294967295, found 4294967296"),
        ("[optimisation]\nclip = -1.0", "optimisation.clip: expected a number above 0, found -1.0"),
        (
            "[optimisation]\nweight_decay = -0.1",
            "optimisation.weight_decay: expected a number of at least 0, found -0.1",
        ),
        ("[optimisation]\nr_drop = -1.0", "optimisation.r_drop: expected a number of at least 0, found -1.0"),
        ("[optimisation]\nlearning_rate = inf", "optimisation.learning_rate: expected a finite number, found Infinity"),
        ("[model]\ndropout = 5.0", "model.dropout: expected a number below 1, found 5.0"),
        ("[model.random]\ndropout = 5.0", "model.random.dropout: expected a number from 0 to below 1, found 5.0"),
        ("[model.random]\nwidth = 32\nheads = 3", "model.random.width: expected a multiple of 3 for 3 heads, found 32"),
        (
            '[model.random]\nfamily = "teo"\nwidth = 12\nheads = 4',
            "model.random.width: expected a multiple of 8 for 4 heads, found 12",
        ),
        (
            '[model]\nbase = "random"\ndropout = 0.1',
            "model.dropout: expected that of model.random.dropout (0) for a bart from scratch, found 0.1",
        ),
        ("roles = []", "roles: expected at least one role, found none"),
        ("[unchanged]\nreactions = -1", "unchanged.reactions: expected a whole number of at least 0, found -1"),
        ("[augmentation]\nreactions = 3", "augmentation: unknown key"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    head = 'output = "out"\ndata = { path = "rows.jsonl" }\n'
    path = write(tmp_path, head + text)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{path}: "), "the file comes first"
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[data]\npath = 'x'", "output: missing; Folder that the model is written to."),
        ('output = "out"', "data: expected at least one dataset, found none"),
        ('output = "out"\ndata = {}', "data.path: expected the dataset's folder or file, found nothing"),
        ("= 3", "expected a configuration in TOML"),
        ('extends = "gone.toml"', "gone.toml: no such file"),
        ("extends = 3", "extends: expected text, found 3"),
        ('extends = "run.toml"', "extends: the file names itself"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_config(write(tmp_path, text))
    assert message in str(error.value)


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path, 'extends = "b.toml"\n', "a.toml")
    write(tmp_path, 'extends = "a.toml"\n', "b.toml")
    with pytest.raises(
        ConfigError, match=r"b\.toml: extends: expected a file that does not extend this one, found .*a\.t"
    ):
        read_config(first)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; give the path of a configuration in TOML"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("optimisation.epochs=3", lambda config: config.optimisation.epochs == 3),
        ("perturbation.prob_p=0", lambda config: config.perturbation.prob_p == 0.0),
        ("output=runs/other", lambda config: config.output == "runs/other"),
        ('output="runs/7"', lambda config: config.output == "runs/7"),
        ('roles=["direct"]', lambda config: config.roles == ("direct",)),
        ("shared=true", lambda config: config.shared is True),
        ("data.rows=5", lambda config: config.data[0].rows == 5),
        ("data.options.history=last-two", lambda config: config.data[0].options == {"history": "last-two"}),
        ("model.random.width=8", lambda config: config.model.random.width == 8),
    ],
)
def test_overrides_take_the_files_place(tmp_path: Path, override: str, read: object) -> None:
    assert callable(read)
    assert read(read_config(write(tmp_path, SMALL), [override])), override


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epochs", "epochs: expected key=value, such as optimisation.epochs=3"),
        ("=3", "=3: expected key=value"),
        ("optimisation.epoch=3", "optimisation.epoch: unknown key; the nearest known one is optimisation.epochs"),
        ("output.x=3", "output.x=3: output is a value, not a table"),
        ("optimisation.epochs=many", 'optimisation.epochs: expected a whole number of at least 1, found "many"'),
    ],
)
def test_a_wrong_override_is_named(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_config(write(tmp_path, SMALL), [override])
    assert message in str(error.value)


def test_one_of_several_datasets_is_changed_by_its_name(tmp_path: Path) -> None:
    text = 'output = "o"\n[[data]]\nname = "task"\npath = "a"\n[[data]]\nname = "rewrite"\npath = "b"\n'
    path = write(tmp_path, text)
    assert [settings.path for settings in read_config(path).data] == ["a", "b"]
    assert [settings.rows for settings in read_config(path, ["data.rewrite.rows=3"]).data] == [0, 3]
    above = write(tmp_path, 'extends = "run.toml"\n[data.task]\nrepeat = 2\n', "above.toml")
    assert [(settings.path, settings.repeat) for settings in read_config(above).data] == [("a", 2), ("b", 1)]
    with pytest.raises(ConfigError, match="data holds 2 tables; name one of them: rewrite, task"):
        read_config(path, ["data.rows=3"])
    same = write(tmp_path, text.replace("rewrite", "task"), "same.toml")
    assert [settings.rows for settings in read_config(same, ["data.rows=3"]).data] == [3, 0], "the first of one name"


def test_of_several_datasets_of_one_name_a_file_changes_the_first(tmp_path: Path) -> None:
    write(tmp_path, 'output = "o"\n[[data]]\npath = "a"\nname = "jsonl"\n[[data]]\npath = "b"\nname = "jsonl"\n')
    mine = write(tmp_path, 'extends = "run.toml"\n[data.jsonl]\npath = "mine"\n', "mine.toml")
    assert [settings.path for settings in read_config(mine).data] == ["mine", "b"]
    broken = write(tmp_path, 'extends = "run.toml"\n[data]\njsonl = 3\n', "broken.toml")
    with pytest.raises(ConfigError, match=r"data\.jsonl: unknown key"):
        read_config(broken)


def test_a_file_lies_over_the_one_that_it_extends(tmp_path: Path) -> None:
    write(tmp_path, SMALL + "[optimisation]\nepochs = 5\nbatch_size = 8\n", "base.toml")
    config = read_config(write(tmp_path, 'extends = "base.toml"\noutput = "mine"\n[optimisation]\nepochs = 6\n'))
    assert (config.output, config.optimisation.epochs, config.optimisation.batch_size) == ("mine", 6, 8)
    assert merge({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}}) == {"a": {"b": 1, "d": 3}, "c": 2}


def test_what_is_printed_reads_back_as_the_same_configuration(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, SMALL), ['data.options={history="full"}', 'languages=["zh", "en"]'])
    again = build(TrainConfig, tomllib.loads(to_toml(to_tree(config))), "printed")
    assert again == config


def test_every_key_has_a_help_text_of_its_own() -> None:
    keys = list(list_keys(TrainConfig))
    assert len(keys) > 40
    assert all(text.endswith(".") for _, _, _, text in keys), "the docstring under each field is the help"
    assert {"optimisation.r_drop", "data.path", "model.random.width"} <= {key for key, _, _, _ in keys}


def test_a_byte_order_mark_is_read_over(tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_tree(file) == {"a": 1}
