"""The dialogue that every other module reads; nothing else knows raw input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from teo.arguments import kind_of
from teo.errors import InputError

CHAT_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "chatbot", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
    "system": "system",
    "developer": "developer",
}
"""The roles of chat messages and their usual other names, in lower case."""

_SPEAKERS = ("user", "assistant")
"""The roles whose messages are turns."""
_TEXT_PARTS = (None, "text", "input_text", "output_text")
"""The types of the parts of a message that are text, in either form of the chat interfaces."""
_WORDLESS = ("tool_calls", "function_call", "refusal", "audio")
"""Keys of messages that may have no content."""
_MESSAGE = '{"role": "user", "content": "..."}'
ROW = '{"history": [...], "utterance": "..."} or {"messages": [...]}'


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns so far and the utterance to complete (the paper's Hist and U_n)."""

    history: tuple[str, ...]
    utterance: str
    speakers: tuple[str, ...] | None = None
    """Who said each turn and, last, the utterance: user or assistant; None if that is not known. Only models whose
    layout has speakers read it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", _require_turns(self.history, "history"))
        _require_text(self.utterance, "utterance")
        if self.speakers is None:
            return
        object.__setattr__(self, "speakers", _require_turns(self.speakers, "speakers"))
        if len(self.speakers) != len(self.history) + 1:
            raise InputError(
                f"speakers: expected one per turn and one for the utterance, {len(self.history) + 1} in all, "
                f"found {len(self.speakers)}"
            )

    @classmethod
    def from_turns(cls, history: Sequence[str] | None, utterance: str) -> Dialogue:
        """Return the dialogue of a list of turns and the utterance after them; None is no turns."""
        return cls(() if history is None else _require_turns(history, "history"), utterance)

    @classmethod
    def from_messages(cls, messages: Sequence[Any]) -> Dialogue:
        """Return the dialogue of chat messages: dictionaries, or objects with the same attributes.

        The last message is the utterance and must be the user's. What users and assistants said before it are the
        turns. A message without text (a picture, a call, a refusal) is no turn. Instructions (system, developer) and
        what tools gave back are left out unread: nobody in the dialogue said them. A message whose text has another
        name than `content` is an error that names its keys.
        """
        if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
            raise InputError(f"messages: expected a list of chat messages, found {kind_of(messages)}")
        if not messages:
            raise InputError("messages: expected at least one message, found none; the last message is rewritten")
        *before, last = (_read_role(message, f"messages[{index}]") for index, message in enumerate(messages))
        path = f"messages[{len(before)}]"
        if last != "user":
            raise InputError(f"{path}: expected the user's message at the end, which is rewritten; found '{last}'")
        turns: list[tuple[str, str]] = []
        for index, role in enumerate(before):
            if role in _SPEAKERS and (text := _read_content(messages[index], f"messages[{index}]")).strip():
                turns.append((role, text))
        turns.append((last, _read_last(messages[-1], path)))
        speakers, texts = zip(*turns, strict=True)
        return cls(texts[:-1], texts[-1], speakers)

    @classmethod
    def from_row(cls, row: object) -> Dialogue:
        """Return the dialogue of a JSON row: {"history", "utterance"} or {"messages"}.

        A history may be empty or null. A row without history and messages is an error that names its keys: a wrong
        name must not pass for an empty history.
        """
        if not isinstance(row, Mapping):
            raise InputError(f"expected a JSON object with history and utterance, or messages; found {kind_of(row)}")
        if row.get("messages") is not None:
            if row.get("utterance") is not None or row.get("history") is not None:
                raise InputError("messages: expected either messages or history and utterance, found both")
            return cls.from_messages(row["messages"])
        if "utterance" not in row:
            raise InputError(f"utterance: missing; found {name_keys(row)}; a row is {ROW}")
        _require_text(row["utterance"], "utterance")
        if "history" not in row:
            raise InputError(
                f"history: missing; found {name_keys(row)}; a row is {ROW}, with an empty history if nothing was said"
            )
        return cls.from_turns(row["history"], row["utterance"])


def name_keys(row: Mapping[Any, Any]) -> str:
    """Return the keys of a row as an error shows them."""
    keys = [str(key)[:40] for key in row]
    return ", ".join(keys[:8] + ["..."] * (len(keys) > 8)) or "no keys"


def _read_role(message: object, path: str) -> str:
    """Return the role of one chat message by its usual name; a call or a result without a role is a tool's."""
    role, kind = _field(message, "role"), _field(message, "type")
    if role is None and isinstance(kind, str):  # LangChain's messages, and the calls among OpenAI's responses
        role = kind.lower().removesuffix("messagechunk")
        silent = kind == "reasoning" or _field(message, "content") is None
        if role not in CHAT_ROLES and kind != "message" and silent:
            return "tool"
    if role is None and not isinstance(message, Mapping):
        raise InputError(f"{path}: expected an object with role and content, found {kind_of(message)}")
    role = getattr(role, "value", role)  # LlamaIndex and Haystack have enumerations
    if not isinstance(role, str):
        raise InputError(f"{path}.role: expected a string such as 'user', found {kind_of(role)}")
    known = CHAT_ROLES.get(role.strip().lower())
    if known is None:
        raise InputError(f"{path}.role: expected {', '.join(CHAT_ROLES)}; found '{role[:40]}'")
    return known


def _read_content(message: object, path: str) -> str:
    """Return the text of one chat message; nothing if it has none."""
    content = _field(message, "content")
    if content is None:
        _require_content(message, path)
        content = _field(message, "texts") or ""  # Haystack
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping) or not isinstance(content, Sequence):
        raise InputError(f"{path}.content: expected a string, found {kind_of(content)}")
    text = ""
    for index, part in enumerate(content):
        read = _read_part(part, f"{path}.content[{index}]")
        joined_by = " " if text and read and not text[-1].isspace() and not read[0].isspace() else ""
        text += joined_by + read
    return text


def _require_content(message: object, path: str) -> None:
    """Raise if a message has its text under another name: it must not pass for a message without text."""
    if isinstance(message, Mapping):
        if not any(key in message for key in ("content", *_WORDLESS)):
            raise InputError(f"{path}.content: missing; found {name_keys(message)}; a message is {_MESSAGE}")
    elif not hasattr(message, "content") and not hasattr(message, "texts"):
        raise InputError(f"{path}: expected an object with role and content, found {kind_of(message)}")


def _read_last(message: object, path: str) -> str:
    """Return the text of the message to rewrite; raises if it has none, such as a picture alone."""
    content = _field(message, "content")
    if content is None and not _field(message, "texts"):
        raise InputError(f"{path}.content: expected a string, found nothing")
    text = _read_content(message, path)
    if text or isinstance(content, str):
        return text
    raise InputError(
        f"{path}.content: expected text, found none in its {len(content or ())} parts; parts of type text, input_text "
        "and output_text are read"
    )


def _read_part(part: object, path: str) -> str:
    """Return the text of one content part; images and the like have none."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) and not hasattr(part, "type"):
        raise InputError(f"{path}: expected an object with type, found {kind_of(part)}")
    text = _field(part, "text")
    if _field(part, "type") not in _TEXT_PARTS or text is None:
        return ""
    text = text if isinstance(text, str) else _field(text, "value") or text  # OpenAI's assistants
    _require_text(text, f"{path}.text")
    return str(text)


def _field(value: object, name: str) -> Any:
    """Return a key of a dictionary or an attribute of an object; None if there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _require_turns(turns: Sequence[str], path: str) -> tuple[str, ...]:
    """Return turns as a tuple; raises if they are no list of strings."""
    if isinstance(turns, str) or not isinstance(turns, Sequence):
        raise InputError(f"{path}: expected a list of strings, found {kind_of(turns)}; pass one string per turn")
    for index, turn in enumerate(turns):
        if isinstance(turn, str):
            continue
        if isinstance(turn, Mapping) and "role" in turn:
            raise InputError(f"{path}[{index}]: expected a string, found a chat message; use messages=")
        _require_text(turn, f"{path}[{index}]")
    return tuple(turns)


def _require_text(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{path}: expected a string, found {kind_of(value)}")
