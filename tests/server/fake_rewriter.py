"""A rewriter by rule, with the interface of the real one: a pronoun gives way to the last name said before it."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from teo.alignment import derive_edits
from teo.decision import Prefer, choose_threshold
from teo.dialogue import Dialogue
from teo.edits import EditScript, format_operations, make_edit
from teo.errors import InputError, TeoError
from teo.layouts import Truncation
from teo.result import Alternative, Rewrite

PRONOUN = re.compile(r"\b(?:he|she|him)\b|他|她")
NAME = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+)+|乔峰|段誉|西安")
MOST_TURNS = 50
LONGEST = 2000
SCRIPT = {
    "When did he die?": "When did Pierre Curie die?",
    "And to Leeds?": "Is there a train from London to Leeds?",
    "When did he paint it?": "When in Florence did Leonardo da Vinci paint the Mona Lisa?",
    "他哪年出生的": "周杰伦哪年出生的",
    "谁导演的": "流浪地球是谁导演的",
    "为什么喜欢": "为什么喜欢吃火锅",
}
"""What the page's samples are rewritten to."""
REACTIONS = frozenset({"Thank you very much!", "好的，谢谢你", "Hello!"})


def keep(dialogue: Dialogue, reason: str, **record: Any) -> Rewrite:
    """The record of an unchanged utterance; without a confidence if no model was called."""
    confidence = 0.75 if reason == "complete" else None
    return Rewrite(dialogue.utterance, **({"confidence": confidence} | record), reason=reason)


def reason_unchanged(dialogue: Dialogue) -> str | None:
    """Why no model is called; None if it is."""
    text, before = dialogue.utterance, any(turn.strip() for turn in dialogue.history)
    rules = {
        "empty": not text.strip(),
        "reaction": text in REACTIONS,
        "code": text.startswith("`"),
        "too-long": len(text) > LONGEST,
        "no-history": not before,
    }
    return next((reason for reason, holds in rules.items() if holds), None)


class FakeRewriter:
    """Deterministic and quick; it keeps what it was asked, and can be slow or fail when told to."""

    name, variant, threshold = "fake", "rule", 0.5
    source_limit = 256

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
        prefer: Prefer | None = None,
        min_confidence: float | None = None,
        truncation: str = "oldest",
        n_best: int = 1,
    ) -> list[Rewrite | TeoError]:
        self.batches.append(list(dialogues))
        self.threads.add(threading.current_thread().name)
        self.hold.wait(60)
        time.sleep(self.seconds)
        if any("abort" in one.utterance for one in dialogues):
            os.abort()
        if any("explode" in one.utterance for one in dialogues):
            raise RuntimeError("secret words of a user")
        if any("hang" in one.utterance for one in dialogues):
            time.sleep(3600)
        threshold = choose_threshold(min_confidence, prefer)
        results = [self._one(one, threshold, truncation) for one in dialogues]
        if n_best == 1:
            return results
        return [self._list(asked, one, n_best) for asked, one in zip(dialogues, results, strict=True)]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def _list(self, dialogue: Dialogue, result: Rewrite | TeoError, count: int) -> Rewrite | TeoError:
        """The record with alternatives, the most confident first: proposals, each with one more mark, and unchanged."""
        proposed = self._one(dialogue, 0.0, "oldest")
        if isinstance(result, TeoError) or isinstance(proposed, TeoError):
            return result
        if result.confidence is None:
            return replace(result, alternatives=(Alternative(result.rewrite),))
        unchanged = Alternative(dialogue.utterance, confidence=0.05 if proposed.changed else 0.75)
        found = [Alternative(proposed.rewrite, proposed.edits, proposed.operations, proposed.confidence)]
        for k in range(1, count):
            marks = EditScript((*proposed.edits, make_edit(len(dialogue.utterance), "", "!" * k)))
            found.append(Alternative(f"{proposed.rewrite}{'!' * k}", marks, f"[I] {'!' * k}", 0.1))
        others = [one for one in found if one.edits][: count - 1]
        listed = sorted([*others, unchanged], key=lambda one: -(one.confidence or 0.0))
        return replace(result, alternatives=tuple(listed))

    def _one(self, dialogue: Dialogue, threshold: float, truncation: str) -> Rewrite | TeoError:
        unread = Truncation(
            max(0, len(dialogue.history) - MOST_TURNS), sum(len(turn) for turn in dialogue.history[:-MOST_TURNS])
        )
        if unread and truncation == "error":
            return InputError(f"history: expected a dialogue of at most {MOST_TURNS} turns")
        reason = reason_unchanged(dialogue)
        if reason:
            characters = len(dialogue.utterance) if reason == "too-long" else 0
            return keep(dialogue, reason, truncated=Truncation(0, characters))
        names = [match.group() for turn in dialogue.history[-MOST_TURNS:] for match in NAME.finditer(turn)]
        if dialogue.utterance in SCRIPT:
            script = derive_edits(dialogue.utterance, SCRIPT[dialogue.utterance])
            return Rewrite(
                script.apply(dialogue.utterance), True, script, format_operations(script.operations), 0.93, unread
            )
        match = PRONOUN.search(dialogue.utterance)
        if match is None or not names:
            return keep(dialogue, "complete", truncated=unread)
        edits = [make_edit(match.start(), match.group(), names[-1])]
        if "who acted" in dialogue.utterance and len(names) > 1:
            edits.append(make_edit(dialogue.utterance.index("who acted") + 9, "", f" as {names[0]}"))
        script = EditScript(tuple(edits))
        operations = format_operations(script.operations)
        confidence = 0.25 if "maybe" in dialogue.utterance else 0.875
        if confidence < threshold:
            return keep(dialogue, "unsure", operations=operations, confidence=confidence, truncated=unread)
        return Rewrite(script.apply(dialogue.utterance), True, script, operations, confidence, unread)
