from __future__ import annotations

import json
from pathlib import Path

import pytest

from teo.errors import ModelError
from teo.folder import ModelFolder, Role


def test_saved_and_loaded(tmp_path: Path) -> None:
    folder = ModelFolder({"stage1": Role("shared", ("[E]",))}, languages=("en", "zh"), threshold=0.3, extra={"x": 1})
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
        (json.dumps({"format": 1, "roles": {}, "colour": "red"}), "not a teo model description"),
    ],
)
def test_a_folder_that_is_no_model(content: str | None, wording: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "teo.json").write_text(content)
    with pytest.raises(ModelError, match=wording):
        ModelFolder.load(tmp_path)
