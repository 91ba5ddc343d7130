"""compare(...): language models, the embedded model and what needs no model, on the same rows in one run.

Every system gives a text for each row. Rows with meaning keys are graded by them; all are scored by exact match, ROUGE
and the restored words. The texts may also be measured as queries to a search engine. That is the only way to measure
turns that are joined: they are no sentence.
"""

from __future__ import annotations

import gzip
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from teo.alignment import derive_edits
from teo.data import load_rows
from teo.data.row import Row
from teo.decision import Prefer
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.evaluation.measures import measure
from teo.evaluation.predict import MEANING, PREDICTIONS, PredictedRow
from teo.files import write_whole
from teo.metrics.meaning import grade
from teo.rewriter import Rewriter
from teo_lab.llm.client import Endpoint
from teo_lab.llm.evaluate import LlmRequest, evaluate_llm
from teo_lab.reproduce.stored_rows import ROWS, bare_row

OURS, OURS_FOR_SEARCH = "default", "default, prefer search"
UNCHANGED, JOINED, PERSON = "utterance unchanged", "last two turns joined", "a person's rewrite"
SCORES = ("em", "rouge1", "rougeL_rouge_1_0_1", "run_f1")
"""Of all metrics, those that a comparison keeps."""


Search = Callable[[Sequence[Row], Sequence[Row], Mapping[str, Sequence[str]]], Mapping[str, Mapping[str, Any]]]
"""From the rows of a split, those that are compared and every system's texts for them: what each system finds."""


@dataclass(frozen=True, slots=True)
class ComparedSet:
    """The rows that all systems rewrite."""

    name: str
    data: str
    """The reader's name."""
    path: Path
    split: str = "test"
    limit: int | None = None
    examples: Path | None = None
    """The JSONL file of a prompt's demonstrations; None: the rows for training."""
    search: Search | None = None
    """Measures the texts as queries; None if it is not known what they should find."""
    own: bool = False
    """Whether the rows are the project's own, so that rewrites may be stored."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The language models of a comparison, and how they are asked."""

    endpoints: Sequence[Endpoint]
    prompts: Sequence[str]
    runs: Path
    """The folder of predictions and answers, with text: a stopped run is resumed."""
    shots: int = 5
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SystemTexts:
    """What one system makes of the rows, and what that took."""

    texts: Sequence[str]
    spent: Mapping[str, Any] = field(default_factory=dict)
    readable: bool = True
    """False if a text is a query and no sentence: it is not graded as a rewrite."""


def compare(dataset: ComparedSet, asked: Asked, rewriter: Rewriter, out: Path) -> dict[str, Any]:
    """Return the figures of every system by its name; the rows of each go to `out`, with text if they are our own."""
    every = load_rows(dataset.data, dataset.path, dataset.split).rows
    rows = every[: dataset.limit]
    stopwatch = _Stopwatch(rewriter)
    models = {
        f"{endpoint.model}, {prompt}": _ask(dataset, asked, endpoint, prompt, stopwatch)
        for endpoint in asked.endpoints
        for prompt in asked.prompts
    }
    if not stopwatch.seconds:  # all answers were there already
        stopwatch.time(rows)
    systems = {
        OURS: SystemTexts(_rewrite(rewriter, rows), _spread(stopwatch.seconds)),
        OURS_FOR_SEARCH: SystemTexts(_rewrite(rewriter, rows, "search")),
        **models,
        UNCHANGED: SystemTexts([row.dialogue.utterance for row in rows]),
        JOINED: SystemTexts([_join(row.dialogue) for row in rows], readable=False),
    }
    if dataset.search is not None:
        systems[PERSON] = SystemTexts([row.rewrite for row in rows], readable=False)
    figures = {name: _figures(rows, made) for name, made in systems.items()}
    if dataset.search is not None:
        for name, found in dataset.search(every, rows, {name: made.texts for name, made in systems.items()}).items():
            figures[name] |= found
    for name, made in systems.items():
        if made.readable and name != UNCHANGED:
            _store_rows(out / dataset.name / f"{name.replace(', ', '-').replace(' ', '-')}{ROWS}", dataset, rows, made)
    return figures


def _join(dialogue: Dialogue) -> str:
    return " ".join((*dialogue.history[-2:], dialogue.utterance))


class _Stopwatch:
    """Times our rewrites between the answers of a model: a busy machine slows all alike."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self.seconds: list[float] = []

    def time(self, rows: Sequence[Row]) -> None:
        """Rewrite some rows, one at a time, and note how long each took."""
        for row in rows:
            started = time.perf_counter()
            _rewrite(self._rewriter, [row])
            self.seconds.append(time.perf_counter() - started)


def _rewrite(rewriter: Rewriter, rows: Sequence[Row], prefer: Prefer | None = None) -> list[str]:
    dialogues = [row.dialogue for row in rows]
    return [rewriter.rewrite(each.history, each.utterance, prefer=prefer).rewrite for each in dialogues]


def _ask(dataset: ComparedSet, asked: Asked, endpoint: Endpoint, prompt: str, stopwatch: _Stopwatch) -> SystemTexts:
    """Return what a language model answers, one request at a time."""
    out = asked.runs / f"{dataset.name}-{endpoint.model}-{prompt}"
    request = LlmRequest(
        endpoint,
        dataset.data,
        dataset.path,
        out,
        split=dataset.split,
        limit=dataset.limit,
        prompt=prompt,
        shots=asked.shots,
        examples=dataset.examples,
        concurrency=1,
        body=asked.body,
        when_answered=stopwatch.time,
    )
    evaluation = evaluate_llm(request)
    usage = evaluation.run["usage"]
    spent = ("median_seconds", "p95_seconds", "prompt_tokens", "completion_tokens", "refused")
    lines = (out / PREDICTIONS).read_text(encoding="utf-8").splitlines()[: dataset.limit]
    return SystemTexts([json.loads(line)["prediction"] for line in lines], {key: usage[key] for key in spent})


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {"median_seconds": round(statistics.median(ordered), 4), "p95_seconds": round(p95, 4)}


def _figures(rows: Sequence[Row], made: SystemTexts) -> dict[str, Any]:
    """Return the scores of a system; nothing but the number of rows if its texts are no sentences."""
    if not made.readable:
        return {"rows": len(rows), **made.spent}
    measures = measure(_predicted(rows, made))
    incomplete = measures.groups["incomplete"]
    figures = {
        "rows": len(rows),
        **{name: measures.scores[name] for name in SCORES},
        "intervals": {name: list(measures.scores.intervals[name]) for name in SCORES},
        "em_incomplete": None if incomplete is None else incomplete["em"],
        **made.spent,
    }
    return figures if measures.meaning is None else {**figures, "meaning": measures.meaning.to_dict()}


def _predicted(rows: Sequence[Row], made: SystemTexts) -> list[PredictedRow]:
    """Return the rows with a system's texts, graded by meaning if there are keys."""
    keyed = any(row.keys and row.keys.need for row in rows)
    predicted = []
    for row, text in zip(rows, made.texts, strict=True):
        dialogue = row.dialogue
        gold = format_operations(derive_edits(dialogue.utterance, row.rewrite).operations)
        detail = {MEANING: grade(row, text)} if keyed else {}
        texts = (row.id, dialogue.history, dialogue.utterance, row.rewrite, text)
        predicted.append(PredictedRow(*texts, None, gold, detail=detail, references=row.references))
    return predicted


def _store_rows(file: Path, dataset: ComparedSet, rows: Sequence[Row], made: SystemTexts) -> None:
    """Write how each row went, with the verdict by meaning if there is one, and the rewrite if it may be stored."""
    lines = []
    for row in _predicted(rows, made):
        text = {"rewrite": row.prediction} if dataset.own else {}
        line = {**bare_row(row.to_dict()), **row.detail, **text}
        lines.append(json.dumps({name: value for name, value in line.items() if name != "score"}, ensure_ascii=False))
    packed = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)  # equal rows give equal bytes
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, lambda beside: beside.write_bytes(packed))
