"""What goes over the wire: the bodies that callers send and the records that they get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.layouts import TruncationRule
from teo.result import Rewrite
from teo.rewriter import MOST_ALTERNATIVES
from teo.rules import Reason
from teo.server.batching import RewriteOptions

_SAID = {"role", "type"}
_MOST_KEYS = 100
"""Keys of an object that has a fixed set of them; with more it is refused as a whole."""

Preference = Annotated[
    Prefer | None,
    Field(description="A named threshold: search, balanced (the default) or careful; not with min_confidence."),
]
MinConfidence = Annotated[
    float | None,
    Field(
        default=None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Leave utterances unchanged below this confidence; by default that of `balanced`.",
    ),
]
RowId = Annotated[
    str | int | None, Field(default=None, description="A name of your own for the dialogue; its record has it too.")
]
Truncating = Annotated[
    TruncationRule,
    Field(description="If a dialogue is too long: leave out what does not fit and count it, or refuse."),
]
SeveralRewrites = Annotated[
    int,
    Field(
        ge=1,
        le=MOST_ALTERNATIVES,
        description="From 2 on, the record has up to that many `alternatives`.",
    ),
]


class _FirstError(FailFast):
    """A list's first error alone is reported; hashable, which annotations in unions must be."""

    def __hash__(self) -> int:
        return hash(self.fail_fast)


FIRST_ERROR = _FirstError()


class ContentPart(BaseModel):
    """A part of a message; parts of type text, input_text and output_text are read."""

    model_config = ConfigDict(extra="allow", strict=True)
    type: str = "text"
    text: str | None = None


def _require_role_or_type(schema: dict[str, Any]) -> None:
    """Let the description ask for what a message needs: a role, or a type that tells it."""
    del schema["required"]
    schema["anyOf"] = [{"required": [name], "properties": {name: {"type": "string"}}} for name in ("role", "type")]


class Message(BaseModel):
    """A chat message; what users and assistants said is the dialogue, system and tool messages are left out."""

    model_config = ConfigDict(extra="allow", strict=True, json_schema_extra=_require_role_or_type)
    role: str | None = Field(description="May be missing if `type` tells it, as in LangChain's messages.")
    content: str | Annotated[list[ContentPart], FIRST_ERROR] | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_type_for_role(cls, value: Any) -> Any:
        """Return a message that has a type and no role with an empty role; without either, the role is missing."""
        return {**value, "role": None} if isinstance(value, Mapping) and value.keys() & _SAID == {"type"} else value


class TurnsDialogue(BaseModel):
    """A dialogue as a list of turns and the utterance after them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    history: Annotated[list[str], FIRST_ERROR] | None = Field(
        description="The turns so far, oldest first; may be empty."
    )
    utterance: str = Field(description="The utterance to complete.")
    id: RowId


class MessagesDialogue(BaseModel):
    """A dialogue as chat messages; the last one is rewritten."""

    model_config = ConfigDict(extra="forbid", strict=True)
    messages: Annotated[list[Message], FIRST_ERROR] = Field(min_length=1)
    id: RowId


class TurnsRequest(TurnsDialogue):
    """One dialogue as turns, and how to rewrite it."""

    prefer: Preference = None
    min_confidence: MinConfidence
    truncation: Truncating = "oldest"
    n_best: SeveralRewrites = 1


class MessagesRequest(MessagesDialogue):
    """One dialogue as chat messages, and how to rewrite it."""

    prefer: Preference = None
    min_confidence: MinConfidence
    truncation: Truncating = "oldest"
    n_best: SeveralRewrites = 1


def _dialogue_form(value: Any) -> str:
    """Return which form a dialogue has, by its keys, so that errors name that form alone."""
    has_messages = "messages" in value if isinstance(value, Mapping) else hasattr(value, "messages")
    return "messages" if has_messages else "turns"


def _request_form(value: Any) -> str:
    has_items = "items" in value if isinstance(value, Mapping) else hasattr(value, "items")
    return "items" if has_items else _dialogue_form(value)


def _require_few_keys(value: Any) -> Any:
    """Refuse an object with very many keys before each of them becomes an error."""
    if isinstance(value, Mapping) and len(value) > _MOST_KEYS:
        raise PydanticCustomError("many_keys", "many keys", {"found": len(value)})
    return value


DialogueBody = Annotated[
    Annotated[TurnsDialogue, Tag("turns")] | Annotated[MessagesDialogue, Tag("messages")],
    Discriminator(_dialogue_form),
    BeforeValidator(_require_few_keys),
]


@dataclass(frozen=True, slots=True)
class BadItem:
    """What is wrong with one of several dialogues; the others are rewritten."""

    errors: Sequence[Mapping[str, Any]]
    id: str | int | None = None


def _keep_errors(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return a dialogue, or what is wrong with it, so that one bad item does not refuse the others."""
    try:
        return validate(value)
    except ValidationError as error:
        name = value.get("id") if isinstance(value, Mapping) else None
        return BadItem(error.errors(include_url=False), name if type(name) in {str, int} else None)  # no bool


class ItemsRequest(BaseModel):
    """Several dialogues, and how to rewrite them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    items: list[Annotated[DialogueBody, WrapValidator(_keep_errors)]]
    prefer: Preference = None
    min_confidence: MinConfidence
    truncation: Truncating = "oldest"
    n_best: SeveralRewrites = 1


RewriteRequest = Annotated[
    Annotated[TurnsRequest, Tag("turns")]
    | Annotated[MessagesRequest, Tag("messages")]
    | Annotated[ItemsRequest, Tag("items")],
    Discriminator(_request_form),
    BeforeValidator(_require_few_keys),
]
FORM_TAGS = frozenset({"turns", "messages", "items"})
"""Names that stand in an error's place for the chosen form, not for a field."""


_CHAT_SETTINGS = ("prefer", "min_confidence", "truncation")


class StreamOptions(BaseModel):
    """What a stream is to hold besides the text."""

    model_config = ConfigDict(extra="allow", strict=True)
    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """A chat completion request; what concerns sampling is accepted and has no effect."""

    model_config = ConfigDict(extra="allow", strict=True)
    model: str = Field(default="teo", description="Any name; the answer names the model that answered.")
    messages: Annotated[list[Message], FIRST_ERROR] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: SeveralRewrites | None = Field(default=None, description="Choices wanted: different rewrites, the best first.")
    prefer: Preference = None
    min_confidence: MinConfidence
    truncation: Truncating = "oldest"

    @property
    def misspelt(self) -> tuple[str, str] | None:
        """The first setting that has another name here, and that name; None if there is none.

        Other keys that are unknown are the chat protocol's, and have no effect.
        """
        for name in islice(self.model_extra or {}, _MOST_KEYS):
            alike = ["n"] if name == "n_best" else get_close_matches(name, _CHAT_SETTINGS, n=1, cutoff=0.8)
            if alike:
                return name, alike[0]
        return None


class EditRecord(BaseModel):
    """One edit; `start` and `end` are code-point offsets into the utterance as given."""

    op: Literal["insert", "replace", "delete"]
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    old: str
    new: str


class TruncatedRecord(BaseModel):
    """What the model did not read."""

    turns: int = Field(ge=0)
    characters: int = Field(ge=0)


class AlternativeRecord(BaseModel):
    """One of several rewrites of an utterance."""

    rewrite: str
    edits: list[EditRecord]
    operations: str = Field(description="What was proposed: [I] text, or [D] old [R] new.")
    confidence: float | None = Field(ge=0, le=1)
    score: float | None = Field(default=None, description="The log-probability of what the model wrote.")


class RewriteRecord(BaseModel):
    """The rewrite of one utterance; applying `edits` to it gives `rewrite`, character for character."""

    id: str | int | None = Field(default=None, description="The dialogue's `id`, if it has one.")
    rewrite: str
    changed: bool
    edits: list[EditRecord]
    operations: str = Field(description="What was proposed, even if not applied: [I] text, or [D] old [R] new.")
    confidence: float | None = Field(ge=0, le=1, description="Null if no model was called.")
    reason: Reason | None = Field(description="Why the utterance is unchanged; null if it was changed.")
    truncated: TruncatedRecord
    alternatives: list[AlternativeRecord] | None = Field(
        default=None,
        description="With `n_best` from 2 on: different rewrites, the unchanged utterance among them, by confidence.",
    )


class ItemError(BaseModel):
    """Why one of several dialogues was not rewritten."""

    type: str
    status: int = Field(description="The status that the dialogue would have got in a request of its own.")
    field: str = Field(description="The field's path in the request, such as `items[2].history`.")
    message: str


class ErrorRecord(BaseModel):
    """What stands in the place of a dialogue that cannot be rewritten."""

    id: str | int | None = None
    error: ItemError


class ItemsRecord(BaseModel):
    """The records of several dialogues, in their order; a bad one has its error there."""

    items: list[RewriteRecord | ErrorRecord]


class ChatMessage(BaseModel):
    """The assistant's message: the rewrite."""

    role: Literal["assistant"] = "assistant"
    content: str


class ChatChoice(BaseModel):
    """One of the rewrites; the first is that of the record."""

    index: int = 0
    message: ChatMessage
    finish_reason: Literal["stop"] = "stop"


class Usage(BaseModel):
    """What was sent and answered, in tokens of the model; in words and Chinese characters if it cannot count."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    total_tokens: int = Field(ge=0)


class ChatCompletion(BaseModel):
    """A chat completion whose message is the rewrite; `teo` holds the whole record."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    teo: RewriteRecord


class ServedModel(BaseModel):
    """The model that is served, as clients of the chat protocol list it."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When the server was started, in seconds since 1970.")
    owned_by: Literal["teo"] = "teo"


class ModelList(BaseModel):
    """The models that are served: one."""

    object: Literal["list"] = "list"
    data: list[ServedModel]


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class ChatProblem(BaseModel):
    """A problem in the form that clients of the chat protocol read."""

    message: str
    type: str
    param: str | None = None
    code: str


class ProblemRecord(BaseModel):
    """Why a request was not answered (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] = []
    error: ChatProblem | None = Field(default=None, description="The same for chat clients; not at /v1/rewrite.")


class Health(BaseModel):
    """The server's status."""

    status: Literal["ok"] = "ok"
    version: str
    model: str
    variant: str
    threshold: float = Field(description="The confidence below which an utterance stays unchanged, unless asked.")
    prefer: dict[str, float] = Field(description="The named thresholds.")
    source_limit: int = Field(description="How many tokens of a dialogue the model reads.")
    queue: int
    token_required: bool = Field(default=False, description="Whether callers must send the server's token.")


def read_dialogue(body: DialogueBody | ChatRequest) -> Dialogue:
    """Return the dialogue that a body of any form holds."""
    if isinstance(body, MessagesDialogue | ChatRequest):
        return Dialogue.from_messages([message.model_dump(exclude_unset=True) for message in body.messages])
    return Dialogue.from_turns(body.history or [], body.utterance)


def read_options(body: TurnsRequest | MessagesRequest | ItemsRequest) -> RewriteOptions:
    """Return the options of a request."""
    return RewriteOptions(body.prefer, body.min_confidence, body.truncation, body.n_best)


def write_record(body: DialogueBody, result: Rewrite) -> dict[str, Any]:
    """Return the record of a dialogue, with its id if it has one."""
    named = {"id": body.id} if "id" in body.model_fields_set else {}
    return named | result.to_dict()
