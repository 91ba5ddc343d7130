"""The description of the API: a snapshot, and requests made up from it.

After a change that is meant, `TEO_UPDATE_SNAPSHOTS=1 pytest tests/server/test_openapi.py` writes the snapshot anew.
`TEO_FUZZ_CASES=2000` makes up more requests.
"""

from __future__ import annotations

import importlib
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_rewriter import FakeRewriter

from teo.server.app import create_app

SNAPSHOT = Path(__file__).parent / "openapi.json"
CASES = int(os.environ.get("TEO_FUZZ_CASES", "60"))


def description() -> dict[str, Any]:
    found = json.loads(json.dumps(create_app(FakeRewriter()).openapi()))
    found["info"]["version"] = "*"
    return found


def test_the_description_is_as_it_was() -> None:
    found = json.dumps(description(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("TEO_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert found == SNAPSHOT.read_text(encoding="utf-8"), "see this file's docstring if the change is meant"


def test_it_is_what_the_server_gives(ask: Callable[..., httpx.Response]) -> None:
    given = ask("GET", "/openapi.json").json()
    assert given | {"info": {}} == description() | {"info": {}}


def test_every_reference_in_it_leads_somewhere() -> None:
    whole = description()
    references = [line.split('"')[3] for line in json.dumps(whole, indent=1).splitlines() if '"$ref"' in line]
    assert len(references) > 10
    for reference in references:
        place: Any = whole
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        assert place["title"]


def test_a_message_needs_a_role_or_a_type() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    whole = description()
    schema = whole["components"]["schemas"]["Message"] | {"components": whole["components"]}
    for message, accepted in [
        ({"role": "user", "content": "x"}, True),
        ({"type": "human", "content": "x"}, True),
        ({"role": None, "type": "human", "content": "x"}, True),
        ({"role": None, "content": "x"}, False),
        ({"content": "x"}, False),
        ({"role": None, "type": None, "content": "x"}, False),
    ]:
        assert jsonschema.Draft202012Validator(schema).is_valid(message) is accepted, message


def test_every_address_lists_what_the_server_may_answer() -> None:
    paths = description()["paths"]
    assert "503" in paths["/health"]["get"]["responses"]
    assert all("421" in one["responses"] for operations in paths.values() for one in operations.values())


@pytest.mark.slow
def test_made_up_requests_never_fail_on_the_server(live_server: Callable[..., Any]) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis import GenerationMode

    # Imported before the server's thread runs: Python 3.11 cannot compile in two threads at once reliably
    # ("AST constructor recursion depth mismatch"), and pytest compiles this package anew in a fresh environment.
    importlib.import_module("schemathesis.specs.openapi.schemas")
    statuses: Counter[int] = Counter()
    with live_server() as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")

        def call(case: Any) -> None:
            response = case.call()
            statuses[response.status_code] += 1
            assert response.status_code < 500, f"{case.as_curl_command()}: {response.text}"
            case.validate_response(
                response,
                checks=[
                    schemathesis.checks.not_a_server_error,
                    schemathesis.specs.openapi.checks.status_code_conformance,
                    schemathesis.specs.openapi.checks.content_type_conformance,
                    schemathesis.specs.openapi.checks.response_schema_conformance,
                ],
            )

        for path in ("/v1/rewrite", "/v1/chat/completions"):
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                operation = schema[path]["POST"]
                made_up = given(case=operation.as_strategy(generation_mode=mode))(call)
                settings(
                    max_examples=CASES // 4,
                    deadline=None,
                    database=None,
                    derandomize=CASES <= 100,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )(made_up)()
    assert {200, 422} <= statuses.keys(), "requests of both kinds were made"
    assert statuses.total() >= CASES * 3 // 4, "and as many as were asked for"
