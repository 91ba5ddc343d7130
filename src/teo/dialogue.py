"""The dialogue that every other module reads; nothing else knows raw input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from teo.arguments import kind_of
from teo.errors import InputError

ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
    "system": "system",
    "developer": "developer",
}
"""The roles of chat messages and their usual other names, in lower case."""

_SPEAKERS = ("user", "assistant")
"""The roles whose messages are turns."""
_TEXT_PARTS = (None, "text", "input_text", "output_text")
"""The types of the parts of a message that are text, in either form of the chat interfaces."""
_CALL_PARTS = ("tool_use", "tool_call", "function_call")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns so far and the utterance to complete (the paper's Hist and U_n)."""

    history: tuple[str, ...]
    utterance: str
    speakers: tuple[str, ...] | None = field(default=None, compare=False)
    """Who said each turn and, last, the utterance: user or assistant; None where that is not known.

    The model does not read it, so dialogues are equal where the same was said.
    """

    def __post_init__(self) -> None:
        if self.speakers is not None and len(self.speakers) != len(self.history) + 1:
            raise InputError(
                f"speakers: expected one per turn and one for the utterance, {len(self.history) + 1} in all, "
                f"found {len(self.speakers)}"
            )

    @classmethod
    def from_turns(cls, history: Sequence[str] | None, utterance: str) -> Dialogue:
        """Return the dialogue of a list of turns and the utterance after them; None is no turns."""
        if history is None:
            history = ()
        if isinstance(history, str) or not isinstance(history, Sequence):
            raise InputError(f"history: expected a list of strings, found {kind_of(history)}; pass one string per turn")
        for index, turn in enumerate(history):
            _require_text(turn, f"history[{index}]")
        _require_text(utterance, "utterance")
        return cls(tuple(history), utterance)

    @classmethod
    def from_messages(cls, messages: Sequence[Mapping[str, Any]]) -> Dialogue:
        """Return the dialogue of chat messages; the last message is the utterance, whatever its role.

        What users and assistants said before it are the turns. An assistant's message that only calls tools has no
        text and is no turn. Instructions (system, developer) and what tools gave back (tool) are left out unread:
        nobody in the dialogue said them.
        """
        if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
            raise InputError(f"messages: expected a list of chat messages, found {kind_of(messages)}")
        if not messages:
            raise InputError("messages: expected at least one message, found none; the last message is rewritten")
        roles = [_read_role(message, f"messages[{index}]") for index, message in enumerate(messages)]
        last = len(messages) - 1
        turns: list[tuple[str, str]] = []
        for index, (role, message) in enumerate(zip(roles, messages, strict=True)):
            if role in _SPEAKERS or index == last:
                text = _read_content(role, message, f"messages[{index}]")
                if text is not None or index == last:
                    turns.append((role, text or ""))
        speakers, texts = zip(*turns, strict=True)
        return cls(texts[:-1], texts[-1], speakers)

    @classmethod
    def from_row(cls, row: object) -> Dialogue:
        """Return the dialogue of a JSON row: {"history", "utterance"} or {"messages"}."""
        if not isinstance(row, Mapping):
            raise InputError(f"expected a JSON object with history and utterance, or messages; found {kind_of(row)}")
        if "messages" in row:
            if "utterance" in row:
                raise InputError("messages: expected either messages or history and utterance, found both")
            return cls.from_messages(row["messages"])
        if "utterance" not in row:
            raise InputError(
                'utterance: missing; a row is {"history": [...], "utterance": "..."} or {"messages": [...]}'
            )
        return cls.from_turns(row.get("history"), row["utterance"])


def _read_role(message: object, path: str) -> str:
    """Return the role of one chat message by its usual name."""
    if not isinstance(message, Mapping):
        raise InputError(f"{path}: expected an object with role and content, found {kind_of(message)}")
    role = message.get("role")
    if not isinstance(role, str):
        raise InputError(f"{path}.role: expected a string such as 'user', found {kind_of(role)}")
    known = ROLES.get(role.strip().lower())
    if known is None:
        raise InputError(f"{path}.role: expected {', '.join(ROLES)}; found '{role}'")
    return known


def _read_content(role: str, message: Mapping[str, Any], path: str) -> str | None:
    """Return the text of one chat message; None where it calls tools and says nothing."""
    content = message.get("content")
    if content is None and role != "user":
        return None  # an assistant's message that only calls tools
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise InputError(f"{path}.content: expected a string, found {kind_of(content)}")
    text = ""
    for index, part in enumerate(content):
        read = _read_part(part, f"{path}.content[{index}]")
        joined_by = " " if text and read and not text[-1].isspace() and not read[0].isspace() else ""
        text += joined_by + read
    if text:
        return text
    if message.get("tool_calls") or any(part.get("type") in _CALL_PARTS for part in content):
        return None
    raise InputError(
        f"{path}.content: expected text, found none in its {len(content)} parts; parts of type text, input_text and "
        "output_text are read"
    )


def _read_part(part: object, path: str) -> str:
    """Return the text of one content part; images and the like have none."""
    if not isinstance(part, Mapping):
        raise InputError(f"{path}: expected an object with type, found {kind_of(part)}")
    text = part.get("text")
    if part.get("type") not in _TEXT_PARTS or text is None:
        return ""
    _require_text(text, f"{path}.text")
    return str(text)


def _require_text(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{path}: expected a string, found {kind_of(value)}")
