"""The fallback: only unsure utterances are asked for, edits give the rewrite, a failing endpoint changes nothing."""

from collections.abc import Mapping
from typing import Any

import pytest

from scripted import ScriptedGenerator, rewriter_of
from teo.study.llm.baseline import LanguageModel
from teo.study.llm.cache import Completion
from teo.study.llm.client import EndpointError
from teo.study.llm.fallback import FallbackRewriter


class FakeClient:
    """Answers every request alike, or fails."""

    def __init__(self, text: str | None) -> None:
        self.text, self.bodies = text, list[Mapping[str, Any]]()

    def complete(self, body: Mapping[str, Any]) -> Completion:
        self.bodies.append(body)
        if self.text is None:
            raise EndpointError("nobody there")
        return Completion(self.text, 0.1)


def fallback_of(text: str | None, sure: bool = False) -> tuple[FallbackRewriter, FakeClient]:
    scores = (0.0, 0.0) if sure else (-3.0, -3.0)
    generator = ScriptedGenerator(lambda _source, _prompt: ("is ben here",), lambda _source: scores)
    client = FakeClient(text)
    model = LanguageModel(client, "m", ())  # type: ignore[arg-type]
    return FallbackRewriter(rewriter_of(generator), model), client


def test_an_unsure_utterance_is_taken_over() -> None:
    rewriter, client = fallback_of("Sure! Rewrite: is tom here")
    record = rewriter.rewrite(["tom came"], "is he here")
    assert (record.rewrite, record.changed, record.reason, record.confidence) == ("is tom here", True, None, None)
    assert record.edits.apply("is he here") == record.rewrite
    assert record.operations == "[D] he [R] tom"
    assert (rewriter.asked, len(client.bodies)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "reason", "why"),
    [
        (None, "unsure", "the endpoint fails"),
        ("", "unsure", "no text"),
        ("tom " * 200, "unsure", "a text that ran away"),
        ("is he here", "complete", "the model sees nothing to change"),
    ],
)
def test_the_utterance_is_kept(text: str | None, reason: str, why: str) -> None:
    rewriter, _ = fallback_of(text)
    record = rewriter.rewrite(["tom came"], "is he here")
    assert (record.rewrite, record.changed, record.reason) == ("is he here", False, reason), why
    assert rewriter.failures == (text is None)


def test_nothing_else_leaves_the_machine() -> None:
    rewriter, client = fallback_of("is tom here", sure=True)
    assert rewriter.rewrite(["tom came"], "is he here").rewrite == "is ben here"
    assert rewriter.rewrite([], "is he here").reason == "no-history"
    assert client.bodies == []
