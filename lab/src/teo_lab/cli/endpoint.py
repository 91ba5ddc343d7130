"""The part of `teo-lab evaluate` that asks a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from teo.errors import InputError

if TYPE_CHECKING:
    from teo.evaluation.measures import Evaluation

_PANEL = "Language model (--model openai:NAME)"
_PREFIX = "openai:"

BaseUrlOption = Annotated[
    str | None,
    typer.Option(help="The endpoint, such as http://127.0.0.1:8080/v1.", rich_help_panel=_PANEL, metavar="URL"),
]
ShotsOption = Annotated[
    int, typer.Option(help="Demonstrations from train, drawn by seed.", rich_help_panel=_PANEL, metavar="N")
]
ConcurrencyOption = Annotated[int, typer.Option(help="Requests at once.", rich_help_panel=_PANEL, metavar="N")]
TimeoutOption = Annotated[
    float, typer.Option(help="Seconds that an answer may take.", rich_help_panel=_PANEL, metavar="S")
]
BodyOption = Annotated[
    str | None,
    typer.Option(
        help='Fields of a request to add or replace, as JSON: {"temperature": null} leaves one out.',
        rich_help_panel=_PANEL,
        metavar="JSON",
    ),
]
PriceInOption = Annotated[
    float | None, typer.Option(help="Price of a million prompt tokens.", rich_help_panel=_PANEL, metavar="P")
]
PriceOutOption = Annotated[
    float | None, typer.Option(help="Price of a million answer tokens.", rich_help_panel=_PANEL, metavar="P")
]
KeyOption = Annotated[
    str,
    typer.Option(
        "--api-key-env", help="The environment variable that holds the key.", rich_help_panel=_PANEL, metavar="NAME"
    ),
]


def is_endpoint(model: str, base_url: str | None) -> bool:
    """Tell whether a model is one behind an endpoint; raises if only half of what that needs is there."""
    named = model.startswith(_PREFIX)
    if named and base_url is None:
        raise InputError("base-url: expected the endpoint's address with openai:NAME, found none")
    if base_url is not None and not named:
        raise InputError(f"base-url: expected --model openai:NAME beside it, found {model or 'no model'}")
    return named


def ask_endpoint(
    model: str, base_url: str | None, *, key_variable: str, timeout: float, body: str | None, **settings: Any
) -> Evaluation:
    """Return the evaluation of a model behind an endpoint."""
    from teo_lab.llm.client import Endpoint
    from teo_lab.llm.evaluate import LlmRequest, evaluate_llm

    key = os.environ.get(key_variable)
    endpoint = Endpoint(base_url or "", model.removeprefix(_PREFIX), key, timeout)
    return evaluate_llm(LlmRequest(endpoint, body=_read_body(body), **settings))


def summarise_endpoint(evaluation: Evaluation, out: Path) -> str:
    """Return the numbers to look at first, and what they took."""
    from teo.evaluation.report import summarise
    from teo_lab.llm.evaluate import summarise_usage

    return f"{summarise_usage(evaluation)}\n{summarise(evaluation, out)}"


def _read_body(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError as error:
        raise InputError(f"body: expected a JSON object, found text that is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InputError(f"body: expected a JSON object, found {text}")
    return value
