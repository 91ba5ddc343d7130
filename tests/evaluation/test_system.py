"""System: roles of a saved model folder."""

import json
from pathlib import Path

import pytest

from teo.errors import ModelError
from teo.folder import ModelFolder, Role
from teo.layouts import Marker
from teo.loading import System


class Fake:
    """A generator that only knows where it came from."""

    source_limit = 10

    def __init__(self, path: Path) -> None:
        self.path = path


def make_system(tmp_path: Path, **roles: Role) -> tuple[System, list[Path]]:
    built: list[Path] = []

    def build(path: Path) -> Fake:
        built.append(path)
        return Fake(path)

    return System(tmp_path, ModelFolder(roles), build), built  # type: ignore[arg-type]


def test_generators_are_built_late_and_shared_by_folder(tmp_path: Path) -> None:
    roles = {"stage1": Role("both", ("[E]",)), "stage2": Role("both", ("[Y]",)), "fast": Role("own")}
    system, built = make_system(tmp_path, **roles)
    assert built == []
    first, second = system.player("stage1"), system.player("stage2")
    assert first.generator is second.generator
    assert (first.prompt, second.prompt) == ((Marker.WRITE_OPERATIONS,), (Marker.WRITE_REWRITE,))
    assert built == [tmp_path / "both"]
    system.player("fast")
    assert built == [tmp_path / "both", tmp_path / "own"]


def test_a_missing_role_is_named(tmp_path: Path) -> None:
    system, _ = make_system(tmp_path, direct=Role("w"))
    assert not system.has("fast")
    with pytest.raises(ModelError, match="expected the role fast, found direct; train it or choose another variant"):
        system.player("fast")


def test_a_prompt_must_be_markers(tmp_path: Path) -> None:
    system, _ = make_system(tmp_path, direct=Role("w", ("hello",)))
    with pytest.raises(ModelError, match=r"roles\.direct\.prompt: expected markers .* found 'hello'"):
        system.player("direct")


def test_an_order_must_be_known(tmp_path: Path) -> None:
    system = System(tmp_path, ModelFolder({}, order="backwards"), Fake)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="order: expected position or insertions-first, found 'backwards'"):
        _ = system.order


def test_a_folder_without_description(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"expected a teo model folder, found no teo\.json"):
        System.load(tmp_path)


def test_the_fingerprint_is_of_what_plays(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"name": name}))
    system, _ = make_system(tmp_path, stage1=Role("a"), stage2=Role("b"))
    one, both = system.fingerprint(["stage1"]), system.fingerprint(["stage1", "stage2"])
    assert one != both == system.fingerprint(["stage2", "stage1", "absent"])
    (tmp_path / "b" / "config.json").write_text("{}")
    assert system.fingerprint(["stage1"]) == one
    assert system.fingerprint(["stage1", "stage2"]) != both
