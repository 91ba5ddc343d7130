"""A model folder: what teo.json holds, the stages of its roles, and which runtime runs it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from teo.errors import InputError, ModelError
from teo.layouts import Layout, Marker
from teo.loading import Model, ModelFolder, Role, locate, open_model
from teo.runtime import onnx_generator


def test_saved_and_loaded(tmp_path: Path) -> None:
    folder = ModelFolder({"stage1": Role("shared", ("[E]",))}, languages=("en", "zh"), threshold=0.3, extra={"x": 1})
    assert folder.layout == Layout(1), "a model that names no layout has the first one"
    folder = replace(folder, layout=Layout(2, speakers=True))
    folder.save(tmp_path)
    assert ModelFolder.load(tmp_path) == folder
    assert not (tmp_path / "teo.json.part").exists()


@pytest.mark.parametrize(
    ("content", "wording"),
    [
        (None, "found no teo.json; give the folder that training wrote"),
        ("{", "not a teo model description"),
        (json.dumps({"format": 99, "roles": {}}), "expected format 1, found 99"),
        (json.dumps({"roles": {}}), "not a teo model description"),
        (json.dumps({"format": 1, "roles": {}, "colour": "red"}), "colour: unexpected keyword argument"),
        (
            json.dumps({"format": 1, "roles": {}, "order": "backwards"}),
            "order: input should be 'position' or 'insertions-first'",
        ),
        (json.dumps({"format": 1, "roles": {}, "layout": {"version": 3}}), "layout.version: input should be 1 or 2"),
    ],
)
def test_a_folder_that_is_no_model(content: str | None, wording: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "teo.json").write_text(content)
    with pytest.raises(ModelError, match=wording):
        ModelFolder.load(tmp_path)


class Fake:
    """A generator that only knows where it came from."""

    def __init__(self, path: Path, **settings: object) -> None:
        self.path, self.settings = path, settings


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Fake]:
    """The generators that a test has built, in order."""
    generators: list[Fake] = []

    def build(path: Path, **settings: object) -> Fake:
        generators.append(Fake(path, **settings))
        return generators[-1]

    monkeypatch.setattr(onnx_generator, "OnnxGenerator", build)
    return generators


def exported(folder: Path, **roles: Role) -> Path:
    ModelFolder(roles).save(folder)
    for role in roles.values():
        (folder / role.folder).mkdir(exist_ok=True)
        (folder / role.folder / "graphs.json").touch()
    return folder


def test_roles_of_one_folder_share_its_weights(tmp_path: Path, built: list[Fake]) -> None:
    roles = {"stage1": Role("both", ("[E]",)), "stage2": Role("both", ("[Y]",)), "fast": Role("own")}
    model = open_model(exported(tmp_path, **roles), threads=3, batch_size=7)
    assert built == [], "weights are loaded when stages are"
    stages = model.load(["stage1", "stage2"])
    assert stages["stage1"].generator is stages["stage2"].generator
    assert (stages["stage1"].prompt, stages["stage2"].prompt) == ((Marker.WRITE_OPERATIONS,), (Marker.WRITE_REWRITE,))
    assert [generator.path for generator in built] == [tmp_path / "both"]
    assert built[0].settings == {"threads": 3, "source_limit": 256, "batch_size": 7}
    assert "fast" not in stages


def test_a_missing_role_is_named(tmp_path: Path, built: list[Fake]) -> None:
    model = open_model(exported(tmp_path, direct=Role("w")))
    with pytest.raises(ModelError, match="expected the role fast, found direct; choose another variant"):
        model.load(["fast"])
    with pytest.raises(ModelError, match="expected a stage with the role fast, found direct"):
        model.load(["direct"])["fast"]


def test_a_prompt_must_be_markers(tmp_path: Path, built: list[Fake]) -> None:
    with pytest.raises(ModelError, match=r"roles\.direct\.prompt: expected markers .*; 'hello' is not a valid Marker"):
        open_model(exported(tmp_path, direct=Role("w", ("hello",)))).load(["direct"])


def test_the_folder_decides_the_runtime_and_the_other_one_is_refused(tmp_path: Path) -> None:
    folder = exported(tmp_path / "exported", direct=Role("w"))
    assert (open_model(folder).runtime, open_model(folder, runtime="onnx").runtime) == ("onnx", "onnx")
    with pytest.raises(ModelError, match="for runtime 'torch', found an exported one; leave runtime out, or give the"):
        open_model(folder, runtime="torch")
    with pytest.raises(InputError, match="device: an exported model runs on the CPU as it is, found cuda"):
        open_model(folder, device="cuda")
    ModelFolder({"direct": Role("w")}).save(tmp_path / "trained")
    with pytest.raises(ModelError, match="export it with `teo export`, or run the trained one with runtime='torch'"):
        open_model(tmp_path / "trained", runtime="onnx")
    pytest.importorskip("torch", reason="choosing a device of torch needs torch")
    assert open_model(tmp_path / "trained", device="cpu").runtime == "torch"


def test_the_fingerprint_is_of_the_weights_that_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"name": name}))
    model = Model(tmp_path, ModelFolder({"stage1": Role("a"), "stage2": Role("b")}), "torch")
    first, both = model.fingerprint(["stage1"]), model.fingerprint(["stage1", "stage2"])
    assert first != both == model.fingerprint(["stage2", "stage1", "absent"])
    (tmp_path / "b" / "config.json").write_text("{}")
    assert model.fingerprint(["stage1"]) == first
    assert model.fingerprint(["stage1", "stage2"]) != both


@pytest.mark.parametrize("folder", ["../..", "/etc", "a/../../b", "..\\x", "C:\\x"])
def test_a_path_out_of_the_model_folder_is_refused(tmp_path: Path, folder: str) -> None:
    ModelFolder({"fast": Role(folder)}).save(tmp_path)
    with pytest.raises(ModelError, match=r"roles\.fast\.folder: expected a name inside the model's folder, found"):
        open_model(tmp_path)


@pytest.mark.parametrize("file", ["../../x", "/etc/passwd"])
def test_weights_out_of_the_model_folder_are_refused(tmp_path: Path, built: list[Fake], file: str) -> None:
    model = open_model(exported(tmp_path, fast=Role("own")))
    (tmp_path / "own" / "graphs.json").write_text(json.dumps({"embedding": {"file": file}}))
    with pytest.raises(ModelError, match=r"graphs\.json: embedding\.file: expected a name inside the model's folder"):
        model.load(["fast"])
    assert built == []


def test_a_description_that_is_not_utf_8_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "teo.json").write_bytes(b'{"format": 1, "x": "\xff"}')
    with pytest.raises(ModelError, match="not a teo model description"):
        ModelFolder.load(tmp_path)


@pytest.mark.parametrize("name", ["weights/base", "runs", "./a/b/c", "owner/name"])
def test_a_path_that_is_not_there_is_an_error_and_no_download(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    hub = SimpleNamespace(snapshot_download=lambda *args, **options: asked.append(args[0]))
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(ModelError, match=f"{name}: expected a model folder, found none"):
        open_model(name)
    assert asked == []


def test_a_hub_is_asked_by_its_prefix_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None]] = []

    def download(name: str, revision: str | None) -> str:
        asked.append((name, revision))
        return str(tmp_path)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=download))
    assert locate("hub:owner/name") == locate("hub:owner/name@v1.0") == tmp_path
    assert asked == [("owner/name", None), ("owner/name", "v1.0")]
    with pytest.raises(InputError, match="expected hub:owner/name or hub:owner/name@revision, found 'hub:name'"):
        locate("hub:name")


@pytest.mark.parametrize("changed", ["teo.json", "tokenizer.json", "own/tokenizer.json", "own/weights.bin"])
def test_the_fingerprint_covers_all_that_decides_a_rewrite(tmp_path: Path, changed: str) -> None:
    exported(tmp_path, fast=Role("own"))
    for name in ("tokenizer.json", "own/tokenizer.json", "own/weights.bin"):
        (tmp_path / name).write_text("a b")
    model = open_model(tmp_path)
    before = model.fingerprint(["fast"])
    (tmp_path / changed).write_text((tmp_path / changed).read_text().replace("a b", "b a") + " ")
    assert model.fingerprint(["fast"]) != before
