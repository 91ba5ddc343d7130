"""Model Context Protocol: a server over stdio with one tool, `rewrite`, for assistants and agents that speak it.

The tool answers with the rewrite as text and the whole record as structured content. What cannot be rewritten is the
tool's error, in a sentence, so that the calling model can correct the call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from teo.decision import PREFER, THRESHOLD, Prefer
from teo.dialogue import Dialogue
from teo.errors import InputError, MissingExtraError, TeoError
from teo.result import Rewrite
from teo.version import __version__

try:
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations  # not in the SDK before 2
except ModuleNotFoundError as error:
    raise MissingExtraError("teo mcp", str(error.name), "mcp") from error

TOOL = "rewrite"
_logger = logging.getLogger(__name__)
_ABOUT = (
    "Complete the last utterance of a dialogue so that it can be understood on its own: pronouns are replaced and "
    "what was left out is filled in, with words of the dialogue. Use it before a search. English and Chinese. "
    "Give history and utterance, or messages, of which the last is rewritten. An utterance that is complete, or that "
    "the model is not sure of, comes back unchanged."
)
_TEXT = {"type": "string"}
_OFFSET = {"type": "integer", "minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}
_EDITS = {
    "type": "array",
    "description": "Applied to the utterance, these give the rewrite; start and end count its characters.",
    "items": {
        "type": "object",
        "properties": {"op": _TEXT, "start": _OFFSET, "end": _OFFSET, "old": _TEXT, "new": _TEXT},
        "required": ["op", "start", "end", "old", "new"],
    },
}
# No `anyOf` at the top: several clients refuse it there. Which arguments go together is checked with the call.
INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "history": {
            "type": "array",
            "items": _TEXT,
            "description": "The turns before the utterance, oldest first; [] if there are none.",
        },
        "utterance": {"type": "string", "description": "The utterance to complete."},
        "messages": {
            "type": "array",
            "description": "Instead of history and utterance: chat messages; the last, the user's, is rewritten.",
            "items": {"type": "object", "properties": {"role": _TEXT, "content": {}}, "required": ["role"]},
        },
        "prefer": {
            "enum": list(PREFER),
            "description": "A named threshold: search, balanced (the default) or careful.",
        },
        "min_confidence": {
            "type": "number",
            **_SHARE,
            "description": f"Leave the utterance unchanged below this confidence; by default {THRESHOLD}.",
        },
        "n_best": {
            "type": "integer",
            "minimum": 1,
            "description": "From 2 on: how many alternatives to return.",
        },
    },
    "additionalProperties": False,
}
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rewrite": _TEXT,
        "changed": {"type": "boolean", "description": "False: the rewrite is the utterance, unchanged."},
        "edits": _EDITS,
        "operations": {"type": "string", "description": "What was proposed, even if the utterance is unchanged."},
        "confidence": {"type": ["number", "null"], **_SHARE, "description": "Null if no model was called."},
        "reason": {"type": ["string", "null"], "description": "Why the utterance is unchanged."},
        "truncated": {
            "type": "object",
            "description": "What the model did not read of the dialogue.",
            "properties": {"turns": _OFFSET, "characters": _OFFSET},
            "required": ["turns", "characters"],
        },
        "alternatives": {
            "type": "array",
            "items": {"type": "object", "properties": {"rewrite": _TEXT}, "required": ["rewrite"]},
        },
    },
    "required": ["rewrite", "changed", "edits", "operations", "confidence", "truncated"],
}


class ToolRewriter(Protocol):
    """What the tool needs of a rewriter; `teo.Rewriter` and `RemoteRewriter` have it."""

    def try_many(
        self,
        dialogues: Sequence[Dialogue],
        batch_size: int = 32,
        *,
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        """Return a rewrite for each dialogue, or its error."""


def create_server(rewriter: ToolRewriter) -> Server[Any]:
    """Return the server of a rewriter."""
    tool = Tool(
        name=TOOL,
        title="Complete an utterance",
        description=_ABOUT,
        input_schema=INPUT_SCHEMA,
        output_schema=OUTPUT_SCHEMA,
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )

    async def list_tools(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=[tool])

    async def call_tool(_: Any, params: Any) -> CallToolResult:
        try:
            if params.name != TOOL:
                raise InputError(f"tool: expected '{TOOL}', found '{params.name}'")
            result = await asyncio.to_thread(call_rewriter, rewriter, params.arguments or {})
        except TeoError as error:
            return _failed(str(error))
        except Exception as error:
            # What a foreign error says may quote a user: the log on stderr has it, the caller does not.
            _logger.exception("the rewriter failed")
            return _failed(f"the rewriter failed ({type(error).__name__}); the server is still running")
        return CallToolResult(content=[TextContent(text=result.rewrite)], structured_content=result.to_dict())

    return Server("teo", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def call_rewriter(rewriter: ToolRewriter, arguments: Mapping[str, Any]) -> Rewrite:
    """Return the rewrite for the arguments of a call."""
    known = INPUT_SCHEMA["properties"]
    unknown = next((name for name in arguments if name not in known), None)
    if unknown is not None:
        raise InputError(f"{unknown}: unknown argument; expected {', '.join(known)}")
    # Models often fill in every field: an argument that is null was left out, and a history that is null is empty.
    present = {name: value for name, value in arguments.items() if value is not None or name == "history"}
    options: dict[str, Any] = {
        name: _number(name, present.pop(name)) for name in ("min_confidence", "n_best") if name in present
    }
    if "prefer" in present:
        options["prefer"] = present.pop("prefer")
    answer = rewriter.try_many([Dialogue.from_row(present)], **options)[0]
    if isinstance(answer, TeoError):
        raise answer
    return answer


def run_stdio(rewriter: ToolRewriter) -> None:
    """Serve until stdin ends; stdout carries the protocol alone."""

    async def run() -> None:
        server = create_server(rewriter)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(run())


def _failed(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


def _number(name: str, value: object) -> Any:
    expected = int if name == "n_best" else (int, float)
    if isinstance(value, bool) or not isinstance(value, expected):
        kind = "a whole number" if name == "n_best" else "a number"
        raise InputError(f"{name}: expected {kind}, found {value!r}")
    return value
