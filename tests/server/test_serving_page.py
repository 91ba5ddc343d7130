"""docs/serving.md says what the server does: addresses, options, defaults, fields; docs/python.md explains reasons."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import typer
from fake_rewriter import FakeRewriter

from teo.cli.serve import serve
from teo.server.app import create_app
from teo.server.connections import KEEP_ALIVE, LONGEST_HEAD
from teo.server.middleware import needs_token
from teo.server.run import HUNG_AFTER
from teo.server.schemas import ItemsRequest, Reason, TurnsRequest
from teo.server.settings import ServerSettings

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "serving.md").read_text(encoding="utf-8")


def rows_after(heading: str, page: str = PAGE) -> list[list[str]]:
    """The cells of the table under a heading."""
    table = page.partition(heading)[2].partition("\n\n#")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_address_is_listed_with_whether_it_needs_the_token() -> None:
    listed = {}
    for cell, _, token in rows_after("## Addresses"):
        for method, path in re.findall(r"`(GET|POST) (\S+)`", cell):
            listed[(method, path)] = token == "yes"
    app = create_app(FakeRewriter())
    served = {(method.upper(), path) for path, found in app.openapi()["paths"].items() for method in found}
    assert listed.keys() == served | {("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json")}
    assert {path: needs_token(path) for _, path in listed} == {path: token for (_, path), token in listed.items()}


def test_limits_are_listed_with_their_defaults() -> None:
    defaults = {one.name: one.default for one in fields(ServerSettings)}
    rows = rows_after("## Limits")
    assert len(rows) == 8
    for option, default, _ in rows:
        name = option.strip("`").removeprefix("--").replace("-", "_")
        assert float(default.split()[0]) == defaults[name], option


def test_limits_without_an_option_are_those_of_the_server() -> None:
    limits, scale = ServerSettings(), (DOCS / "scale.md").read_text(encoding="utf-8")
    for text in (
        f"may have {LONGEST_HEAD // 1024} KB. The answer to a longer one is 400, unless the head arrives in one piece",
        f"must arrive within {limits.head_timeout:g} seconds",
        f"A body must arrive within {limits.body_timeout:g} seconds",
        f"A worker keeps {limits.max_connections}",
        f"closed after {KEEP_ALIVE} seconds",
        f"takes {limits.model_timeout / 2:g} seconds, `/health` answers 503",
        f"After {limits.model_timeout:g} seconds the worker is replaced",
        f"for at most {limits.shutdown_timeout:g} seconds",
    ):
        assert text in " ".join(PAGE.split()), text
    for text in (f"for {HUNG_AFTER:g} seconds", f"spends {limits.model_timeout:g} seconds"):
        assert text in " ".join(scale.split()), text


def test_fields_are_those_of_the_description() -> None:
    listed = {row[0].strip("`") for row in rows_after("## `POST /v1/rewrite`") if row[0].startswith("`")}
    known = (TurnsRequest.model_fields.keys() | ItemsRequest.model_fields.keys()) - {"history", "utterance", "items"}
    assert listed == known


def test_reasons_are_explained_once() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    listed = [row[0].strip("`") for row in rows_after("### Why an utterance is unchanged", page)]
    assert sorted(listed) == sorted(get_args(Reason))


@pytest.mark.parametrize("option", sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))))
def test_every_option_that_is_named_exists(option: str) -> None:
    app = typer.Typer()
    app.command()(serve)
    known = {name for parameter in typer.main.get_command(app).params for name in parameter.opts}
    assert option in known | {"--json", "--build"}


def test_defaults_of_the_command_are_those_of_the_settings() -> None:
    app = typer.Typer()
    app.command()(serve)
    found = {parameter.name: parameter.default for parameter in typer.main.get_command(app).params}
    shared = {one.name: one.default for one in fields(ServerSettings) if one.name in found}
    assert len(shared) >= 9
    assert {name: found[name] for name in shared} == shared
