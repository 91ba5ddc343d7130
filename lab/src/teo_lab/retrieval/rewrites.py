"""What a rewriter makes of each question, stored as it is made so that a stopped run can be resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from teo.errors import InputError
from teo.evaluation.predict import Progress
from teo.files import json_line, read_finished_lines
from teo.rewriter import Rewriter
from teo_lab.retrieval.collection import Question

REWRITES = "rewrites.jsonl"
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewriter's proposal for a question, whatever the threshold."""

    id: str
    utterance: str
    rewrite: str
    """The utterance itself if a rule leaves it unchanged or nothing is proposed."""
    confidence: float | None
    """None if no model was called."""
    alternatives: tuple[str, ...]
    """Distinct rewrites, the proposal first."""

    def at(self, threshold: float) -> str:
        """Return what a user gets with a threshold."""
        return self.rewrite if self.confidence is not None and self.confidence >= threshold else self.utterance


def propose_rewrites(
    rewriter: Rewriter, questions: Sequence[Question], out: Path, n_best: int, progress: TextIO | None = None
) -> list[Proposal]:
    """Return a proposal for each question, from the folder if it is there already, else from the model."""
    file = out / REWRITES
    done = _read(file, questions)
    shown = Progress(len(questions), len(done), progress or sys.stderr)
    for start in range(len(done), len(questions), _CHUNK):
        chunk = questions[start : start + _CHUNK]
        made = [
            _proposal(rewriter, question, answer)
            for question, answer in zip(chunk, _ask(rewriter, chunk, n_best), strict=True)
        ]
        with file.open("ab") as stream:
            stream.write("".join(json_line(asdict(proposal)) for proposal in made).encode())
        done += made
        shown.advance(len(made))
    shown.finish()
    return done


def _ask(rewriter: Rewriter, questions: Sequence[Question], n_best: int) -> list[tuple[str, float | None, list[str]]]:
    dialogues = [question.dialogue for question in questions]
    records = rewriter.rewrite_many(dialogues, len(dialogues), min_confidence=0.0, n_best=n_best)
    return [(record.rewrite, record.confidence, [other.rewrite for other in record.alternatives]) for record in records]


def _proposal(rewriter: Rewriter, question: Question, answer: tuple[str, float | None, list[str]]) -> Proposal:
    rewrite, confidence, alternatives = answer
    distinct = tuple(dict.fromkeys([rewrite, *alternatives]))
    return Proposal(question.id, question.dialogue.utterance, rewrite, confidence, distinct)


def _read(file: Path, questions: Sequence[Question]) -> list[Proposal]:
    """Return the stored proposals of these questions; a last line that a stopped run did not finish is cut off."""
    proposals = []
    for number, line in enumerate(read_finished_lines(file), start=1):
        try:
            stored = json.loads(line)
            proposals.append(Proposal(**{**stored, "alternatives": tuple(stored["alternatives"])}))
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{file}:{number}: expected a stored rewrite, found something else; delete it") from None
    for number, (proposal, question) in enumerate(zip(proposals, questions, strict=False), start=1):
        if (proposal.id, proposal.utterance) != (question.id, question.dialogue.utterance):
            raise InputError(
                f"{file}:{number}: expected the question '{question.id}', found another; choose another --out"
            )
    return proposals[: len(questions)]
