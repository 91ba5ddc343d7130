"""FallbackRewriter: a rewriter that asks a language model where its own proposal is below the threshold.

local = Rewriter.from_pretrained()
client = ChatClient(Endpoint("http://127.0.0.1:8080/v1", "name"), Cache(Path("completions.sqlite")))
rewriter = FallbackRewriter(local, LanguageModel(client, "name", demonstrations=()))
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from teo.alignment import derive_edits
from teo.answers import own_edits
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.result import Rewrite
from teo.rewriter import DialogueLike, Rewriter
from teo.study.llm.baseline import LanguageModel
from teo.study.llm.client import EndpointError
from teo.study.llm.prompt import read_rewrite

logger = logging.getLogger(__name__)


class FallbackRewriter:
    """A local rewriter, and the language model that is asked where it is unsure."""

    def __init__(self, rewriter: Rewriter, model: LanguageModel) -> None:
        """Take both; only utterances that the rewriter keeps for the reason `unsure` leave the machine."""
        self._rewriter, self._model = rewriter, model
        self.asked = self.failures = 0

    def rewrite(self, history: Sequence[str], utterance: str) -> Rewrite:
        """Return the rewrite of an utterance after its history."""
        return self.rewrite_many([Dialogue.from_turns(history, utterance)])[0]

    def rewrite_many(self, dialogues: Iterable[DialogueLike], batch_size: int = 32) -> list[Rewrite]:
        """Return the rewrites of many dialogues, in order.

        A rewrite of the language model has no confidence. Where the endpoint fails, the utterances are kept.
        """
        listed = [raw if isinstance(raw, Dialogue) else Dialogue.from_row(raw) for raw in dialogues]
        records = self._rewriter.rewrite_many(listed, batch_size)
        unsure = [place for place, record in enumerate(records) if record.reason == "unsure"]
        for start in range(0, len(unsure), batch_size):
            places = unsure[start : start + batch_size]
            self.asked += len(places)
            try:
                answers = self._model.ask([Row(str(place), listed[place], "") for place in places])
            except EndpointError as error:
                self.failures += len(places)
                logger.warning("the fallback failed, utterances are kept: %s", error)
                continue
            for place, answer in zip(places, answers, strict=True):
                records[place] = _taken_over(records[place], listed[place], answer.text)
        return records


def _taken_over(record: Rewrite, dialogue: Dialogue, text: str) -> Rewrite:
    """Return the record with the language model's rewrite; as it is where there is none, or one that ran away."""
    rewrite = read_rewrite(text, dialogue.utterance)
    if not rewrite:
        return record
    edits = derive_edits(dialogue.utterance, rewrite)
    if not edits:
        return replace(record, operations="", confidence=None, reason="complete")
    if not own_edits(dialogue.utterance, dialogue, edits):
        return record
    operations = format_operations(edits.operations)
    return replace(
        record, rewrite=rewrite, changed=True, edits=edits, operations=operations, confidence=None, reason=None
    )
