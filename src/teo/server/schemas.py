"""What goes over the wire: the bodies that callers send and the records that they get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from teo.dialogue import Dialogue
from teo.keeping import Reason
from teo.layouts import TruncationRule
from teo.server.batching import RewriteOptions

MinConfidence = Annotated[
    float | None,
    Field(
        default=None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Keep utterances below this confidence as they are; the model's own threshold by default.",
    ),
]
Truncating = Annotated[
    TruncationRule,
    Field(description="Dialogues longer than the model reads: read them in part, or refuse."),
]


class ContentPart(BaseModel):
    """A part of a message; parts of type text, input_text and output_text are read."""

    model_config = ConfigDict(extra="allow", strict=True)
    type: str
    text: str | None = None


class Message(BaseModel):
    """A chat message; what users and assistants said is the dialogue, other roles are left out."""

    model_config = ConfigDict(extra="allow", strict=True)
    role: str
    content: str | list[ContentPart] | None = None


class TurnsDialogue(BaseModel):
    """A dialogue as a list of turns and the utterance after them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    history: list[str] | None = Field(default=[], description="The turns so far, oldest first.")
    utterance: str = Field(description="The utterance to complete.")


class MessagesDialogue(BaseModel):
    """A dialogue as chat messages; the last one is rewritten."""

    model_config = ConfigDict(extra="forbid", strict=True)
    messages: list[Message] = Field(min_length=1)


class TurnsRequest(TurnsDialogue):
    """One dialogue as turns, and how to rewrite it."""

    min_confidence: MinConfidence
    truncation: Truncating = "oldest"


class MessagesRequest(MessagesDialogue):
    """One dialogue as chat messages, and how to rewrite it."""

    min_confidence: MinConfidence
    truncation: Truncating = "oldest"


def _dialogue_form(value: Any) -> str:
    """Return which form a dialogue has, by its keys: the errors then speak of that form alone."""
    has_messages = "messages" in value if isinstance(value, Mapping) else hasattr(value, "messages")
    return "messages" if has_messages else "turns"


def _request_form(value: Any) -> str:
    has_items = "items" in value if isinstance(value, Mapping) else hasattr(value, "items")
    return "items" if has_items else _dialogue_form(value)


DialogueBody = Annotated[
    Annotated[TurnsDialogue, Tag("turns")] | Annotated[MessagesDialogue, Tag("messages")],
    Discriminator(_dialogue_form),
]


class ItemsRequest(BaseModel):
    """Several dialogues, and how to rewrite them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    items: list[DialogueBody]
    min_confidence: MinConfidence
    truncation: Truncating = "oldest"


RewriteRequest = Annotated[
    Annotated[TurnsRequest, Tag("turns")]
    | Annotated[MessagesRequest, Tag("messages")]
    | Annotated[ItemsRequest, Tag("items")],
    Discriminator(_request_form),
]
FORM_TAGS = frozenset({"turns", "messages", "items"})
"""Names that stand in an error's place for the chosen form, not for a field."""


class ChatRequest(BaseModel):
    """A chat completion request; what concerns sampling is accepted and has no effect."""

    model_config = ConfigDict(extra="allow", strict=True)
    model: str = Field(default="teo", description="Any name; the answer names the model that answered.")
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = False
    min_confidence: MinConfidence


class EditRecord(BaseModel):
    """One edit; `start` and `end` are code-point offsets into the utterance as given."""

    op: Literal["insert", "replace", "delete"]
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    old: str
    new: str


class TruncatedRecord(BaseModel):
    """What the model did not get to read."""

    turns: int = Field(ge=0)
    characters: int = Field(ge=0)


class RewriteRecord(BaseModel):
    """What became of one utterance; applying `edits` to it gives `rewrite`, character for character."""

    rewrite: str
    changed: bool
    edits: list[EditRecord]
    operations: str = Field(description="What stage 1 proposed: [I] text, or [D] old [R] new.")
    confidence: float | None = Field(ge=0, le=1, description="Null where no model was asked.")
    reason: Reason | None = Field(description="Why the utterance was kept; null where it was changed.")
    truncated: TruncatedRecord


class ItemsRecord(BaseModel):
    """The records of several dialogues, in their order."""

    items: list[RewriteRecord]


class ChatMessage(BaseModel):
    """The assistant's message: the rewrite."""

    role: Literal["assistant"] = "assistant"
    content: str


class ChatChoice(BaseModel):
    """The one choice that there is."""

    index: int = 0
    message: ChatMessage
    finish_reason: Literal["stop"] = "stop"


class ChatCompletion(BaseModel):
    """A chat completion whose message is the rewrite; `teo` holds the whole record."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    teo: RewriteRecord


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class ProblemRecord(BaseModel):
    """Why a request was not answered (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] = []


class Health(BaseModel):
    """Whether the server answers, and with what."""

    status: Literal["ok"] = "ok"
    version: str
    model: str
    variant: str
    threshold: float
    thresholds: dict[str, float] = {}
    queue: int


def list_dialogues(body: TurnsRequest | MessagesRequest | ItemsRequest) -> list[tuple[str, DialogueBody]]:
    """Return the dialogues of a request, each with the path that its fields' names begin with."""
    if isinstance(body, ItemsRequest):
        return [(f"items[{number}].", item) for number, item in enumerate(body.items)]
    return [("", body)]


def read_dialogue(body: DialogueBody) -> Dialogue:
    """Return the dialogue that a body of either form holds."""
    if isinstance(body, MessagesDialogue):
        return _read_messages(body.messages)
    return Dialogue.from_turns(body.history, body.utterance)


def read_chat(body: ChatRequest) -> Dialogue:
    """Return the dialogue of a chat completion request."""
    return _read_messages(body.messages)


def read_options(body: TurnsRequest | MessagesRequest | ItemsRequest) -> RewriteOptions:
    """Return what a request asks of the model."""
    return RewriteOptions(body.min_confidence, body.truncation)


def _read_messages(messages: list[Message]) -> Dialogue:
    return Dialogue.from_messages([message.model_dump() for message in messages])
