"""docs/integrations.md names every setting of the adapters, with its default."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
COMMON = SECTIONS["Settings of every adapter"]


@pytest.mark.parametrize(
    ("module", "name", "section"),
    [
        ("langchain", "RewriteQuery", "LangChain"),
        ("llama_index", "RewriteTransform", "LlamaIndex"),
        ("haystack", "QueryRewriter", "Haystack"),
    ],
)
def test_every_setting_of_an_adapter_is_named(module: str, name: str, section: str) -> None:
    adapter = getattr(pytest.importorskip(f"teo.integrations.{module}", exc_type=Exception), name)
    assert f"from teo.integrations.{module} import {name}" in SECTIONS[section]
    for setting in list(inspect.signature(adapter.__init__).parameters)[1:]:
        assert re.search(rf"`{setting}\b|{name}\({setting}\b|\({setting}\)", COMMON + SECTIONS[section]), setting


def test_defaults_of_the_common_settings() -> None:
    adapter = pytest.importorskip("teo.integrations.langchain", exc_type=Exception).RewriteQuery
    defaults = {name: value.default for name, value in inspect.signature(adapter.__init__).parameters.items()}
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", COMMON, re.MULTILINE))
    assert rows.pop("prefer") == '`"search"`', "the adapters' default if nothing is given"
    assert rows == {
        name: f'`"{defaults[name]}"`' if defaults[name] else "None"
        for name in ("min_confidence", "on_rewrite", "on_error", "timeout")
    }
