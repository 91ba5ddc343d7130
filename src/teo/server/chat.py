"""The chat completion protocol: the last message's rewrite as the assistant's message, whole or as a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from teo.dialogue import Dialogue
from teo.result import Rewrite
from teo.server.batching import CountsTokens, ServedRewriter
from teo.units import unit_texts

Completion = dict[str, Any]


def chat_completion(result: Rewrite, model: str, request_id: str, usage: dict[str, int]) -> Completion:
    """Return the completion whose first choice is the rewrite, and whose others are its alternatives."""
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for index, text in enumerate(choice_texts(result))
    ]
    return {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": usage,
        "teo": result.to_dict(),
    }


def choice_texts(result: Rewrite) -> list[str]:
    """Return what a completion offers: the rewrite, or all of them if several were requested."""
    others = [alternative.rewrite for alternative in result.alternatives if alternative.rewrite != result.rewrite]
    return [result.rewrite, *others]


def measure_usage(rewriter: ServedRewriter, dialogue: Dialogue, texts: Sequence[str]) -> dict[str, int]:
    """Return how many tokens were sent and answered: the model's own, or units if a rewriter cannot count."""
    count: Callable[[str], int] = _count_units
    if isinstance(rewriter, CountsTokens):
        count = rewriter.count_tokens
    sent, answered = sum(map(count, (*dialogue.history, dialogue.utterance))), sum(map(count, texts))
    return {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}


def chat_events(completion: Completion, *, with_usage: bool = False) -> Iterator[str]:
    """Yield the completion as server-sent events: the texts, their ends, and what the protocol closes with."""
    base = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choices = completion["choices"]
    for choice in choices:
        yield _event({**base, "choices": [_delta(choice, choice["message"], None)]})
    for choice in choices:
        chunk = {**base, "choices": [_delta(choice, {}, choice["finish_reason"])]}
        yield _event(chunk | {"teo": completion["teo"]} if choice is choices[-1] else chunk)
    if with_usage:
        yield _event({**base, "choices": [], "usage": completion["usage"]})
    yield "data: [DONE]\n\n"


def _delta(choice: dict[str, Any], delta: dict[str, str], finish: str | None) -> dict[str, Any]:
    return {"index": choice["index"], "delta": delta, "finish_reason": finish}


def _event(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def _count_units(text: str) -> int:
    return len(unit_texts(text))
