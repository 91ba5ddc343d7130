"""The dialogue that every other module reads; nothing else knows raw input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from teo.errors import InputError

SPOKEN_ROLES = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns so far and the utterance to complete (the paper's Hist and U_n)."""

    history: tuple[str, ...]
    utterance: str

    @classmethod
    def from_turns(cls, history: Sequence[str], utterance: str) -> Dialogue:
        """Return the dialogue of a list of turns and the utterance after them."""
        if isinstance(history, str) or not isinstance(history, Sequence):
            raise InputError(f"history: expected a list of strings, found {_kind(history)}; pass one string per turn")
        for index, turn in enumerate(history):
            _require_text(turn, f"history[{index}]")
        _require_text(utterance, "utterance")
        return cls(tuple(history), utterance)

    @classmethod
    def from_messages(cls, messages: Sequence[Mapping[str, Any]]) -> Dialogue:
        """Return the dialogue of chat messages; the last message is the utterance.

        Only what users and assistants said is dialogue: system, developer and tool messages are left out.
        """
        if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
            raise InputError(f"messages: expected a list of chat messages, found {_kind(messages)}")
        if not messages:
            raise InputError("messages: expected at least one message, found none; the last message is rewritten")
        turns = []
        for index, message in enumerate(messages):
            role, text = _read_message(message, f"messages[{index}]")
            if role in SPOKEN_ROLES or index == len(messages) - 1:
                turns.append(text)
        return cls(tuple(turns[:-1]), turns[-1])

    @classmethod
    def from_row(cls, row: object) -> Dialogue:
        """Return the dialogue of a JSON row: {"history", "utterance"} or {"messages"}."""
        if not isinstance(row, Mapping):
            raise InputError(f"expected a JSON object with history and utterance, or messages; found {_kind(row)}")
        if "messages" in row:
            if "utterance" in row:
                raise InputError("messages: expected either messages or history and utterance, found both")
            return cls.from_messages(row["messages"])
        if "utterance" not in row:
            raise InputError(
                'utterance: missing; a row is {"history": [...], "utterance": "..."} or {"messages": [...]}'
            )
        return cls.from_turns(row.get("history", ()), row["utterance"])


def _read_message(message: object, path: str) -> tuple[str, str]:
    """Return the role and the text of one chat message."""
    if not isinstance(message, Mapping):
        raise InputError(f"{path}: expected an object with role and content, found {_kind(message)}")
    role = message.get("role")
    if not isinstance(role, str):
        raise InputError(f"{path}.role: expected a string such as 'user', found {_kind(role)}")
    content = message.get("content")
    if content is None and role != "user":
        return role, ""  # an assistant message that only calls tools has no text
    if isinstance(content, Sequence) and not isinstance(content, str):
        return role, "".join(_read_part(part, f"{path}.content[{k}]") for k, part in enumerate(content))
    _require_text(content, f"{path}.content")
    return role, str(content)


def _read_part(part: object, path: str) -> str:
    """Return the text of one content part; images and the like have none."""
    if not isinstance(part, Mapping):
        raise InputError(f"{path}: expected an object with type, found {_kind(part)}")
    if part.get("type") != "text":
        return ""
    text = part.get("text")
    _require_text(text, f"{path}.text")
    return str(text)


def _require_text(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{path}: expected a string, found {_kind(value)}")


def _kind(value: object) -> str:
    names = {type(None): "nothing", dict: "an object", list: "a list", bool: "true/false", int: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
