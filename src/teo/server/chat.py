"""The chat completion protocol: the last message's rewrite as the assistant's message, whole or as a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from teo.result import Rewrite
from teo.server.schemas import ChatChoice, ChatCompletion, ChatMessage, RewriteRecord


def chat_completion(result: Rewrite, model: str, request_id: str) -> ChatCompletion:
    """Return the completion whose message is the rewrite."""
    return ChatCompletion(
        id=f"chatcmpl-{request_id}",
        created=int(time.time()),
        model=model,
        choices=[ChatChoice(message=ChatMessage(content=result.rewrite))],
        teo=RewriteRecord.model_validate(result.to_dict()),
    )


def chat_events(completion: ChatCompletion) -> Iterator[str]:
    """Yield the completion as server-sent events: the text, the end, and what the protocol closes with."""
    base = {"id": completion.id, "created": completion.created, "model": completion.model}
    text = completion.choices[0].message.content
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    for delta, finish in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk: dict[str, Any] = {**base, "object": "chat.completion.chunk", "choices": [choice]}
        if finish:
            chunk["teo"] = completion.teo.model_dump()
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
