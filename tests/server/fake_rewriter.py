"""A rewriter by rule, with the interface of the real one: a pronoun gives way to the last name said before it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.edits import EditScript, format_operations, make_edit
from teo.errors import InputError, TeoError
from teo.layouts import Truncation
from teo.result import Rewrite

PRONOUN = re.compile(r"\b(?:he|she|him)\b|他|她")
NAME = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+)+|乔峰|段誉|西安")
MOST_TURNS = 50
SCRIPT = {
    "When did he die?": "When did Pierre Curie die?",
    "What about Saturday?": "What about booking a table at Luigi's for Saturday?",
    "Did he win an Oscar for it?": "Did Heath Ledger win an Oscar for it as the Joker?",
    "他哪年出生的": "周杰伦哪年出生的",
    "明天呢": "西安明天天气怎么样呢",
    "为什么喜欢": "为什么喜欢吃火锅",
}
"""What the page's samples are rewritten to."""


class FakeRewriter:
    """Deterministic and quick; it keeps what it was asked, and can be slow or fail when told to."""

    name, variant, threshold = "fake", "rule", 0.5
    thresholds: ClassVar[dict[str, float]] = {"zh": 0.5}

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.batches: list[list[Dialogue]] = []
        self.threads: set[str] = set()
        self.hold = threading.Event()
        self.hold.set()

    def rewrite(
        self,
        history: Sequence[str] | None = None,
        utterance: str | None = None,
        *,
        messages: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Rewrite:
        row = (
            {"messages": messages} if messages is not None else {"history": list(history or ()), "utterance": utterance}
        )
        return self.rewrite_many([row], **options)[0]

    def rewrite_many(self, dialogues: Sequence[Any], batch_size: int = 32, **options: Any) -> list[Rewrite]:
        rows = [one if isinstance(one, Dialogue) else Dialogue.from_row(one) for one in dialogues]
        results = []
        for one in self.try_many(rows, batch_size, **options):
            if isinstance(one, TeoError):
                raise one
            results.append(one)
        return results

    def try_many(
        self,
        dialogues: Sequence[Dialogue],
        batch_size: int = 32,
        *,
        min_confidence: float | None = None,
        truncation: str = "oldest",
    ) -> list[Rewrite | TeoError]:
        self.batches.append(list(dialogues))
        self.threads.add(threading.current_thread().name)
        self.hold.wait(10)
        time.sleep(self.seconds)
        if any("explode" in one.utterance for one in dialogues):
            raise RuntimeError("secret words of a user")
        threshold = self.threshold if min_confidence is None else min_confidence
        return [self._one(one, threshold, truncation) for one in dialogues]

    def _one(self, dialogue: Dialogue, threshold: float, truncation: str) -> Rewrite | TeoError:
        unread = Truncation(
            max(0, len(dialogue.history) - MOST_TURNS), sum(len(turn) for turn in dialogue.history[:-MOST_TURNS])
        )
        if unread and truncation == "error":
            return InputError(f"history: expected a dialogue of at most {MOST_TURNS} turns")
        names = [match.group() for turn in dialogue.history[-MOST_TURNS:] for match in NAME.finditer(turn)]
        if dialogue.utterance in SCRIPT:
            script = derive_edits(dialogue.utterance, SCRIPT[dialogue.utterance])
            return Rewrite(
                script.apply(dialogue.utterance), True, script, format_operations(script.operations), 0.93, unread
            )
        match = PRONOUN.search(dialogue.utterance)
        if match is None or not names:
            return Rewrite(dialogue.utterance, truncated=unread)
        edits = [make_edit(match.start(), match.group(), names[-1])]
        if "who acted" in dialogue.utterance and len(names) > 1:
            edits.append(make_edit(dialogue.utterance.index("who acted") + 9, "", f" as {names[0]}"))
        script = EditScript(tuple(edits))
        operations = format_operations(script.operations)
        confidence = 0.25 if "maybe" in dialogue.utterance else 0.875
        if confidence < threshold:
            return Rewrite(dialogue.utterance, False, EditScript(), operations, confidence, unread)
        return Rewrite(script.apply(dialogue.utterance), True, script, operations, confidence, unread)
