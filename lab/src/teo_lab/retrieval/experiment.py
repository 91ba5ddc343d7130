"""measure_retrieval(...): what search finds with raw utterances, their history, our rewrites and a person's."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from teo.decision import PREFER
from teo.errors import InputError
from teo.evaluation.markdown import percent, plain, table
from teo.files import write_json, write_text
from teo.loading import open_model
from teo.metrics.base import FloatArray
from teo.metrics.significance import bootstrap_signature, paired_signature
from teo.provenance import git_commit
from teo.rewriter import Rewriter
from teo_lab.retrieval.collection import Collection, Question
from teo_lab.retrieval.measures import MEASURES, SystemMeasures, effect_of, measure_rankings, summarise_measures
from teo_lab.retrieval.retrievers import FUSION_CONSTANT, Ranking, Retriever, fuse
from teo_lab.retrieval.rewrites import REWRITES, Proposal, propose_rewrites

THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Where the effect of the threshold is looked at."""
SYSTEMS = {
    "raw": "the utterance as it is",
    "last turns": "the last two turns and the utterance, joined",
    "history": "all turns and the utterance, joined",
    **{f"teo {name}": f"our rewrite, prefer = {name} (from a confidence of {PREFER[name]} on)" for name in PREFER},
    "teo n-best": "our rewrite for search and its alternatives, rankings fused",
    "gold": "the rewrite of a person",
}


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """What decides the rewrites: a folder of other settings is not resumed."""

    source: str
    """Where the collection is from, in a phrase."""
    collection_hash: str
    model: str
    model_hash: str
    variant: str
    n_best: int


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """What search finds when only rewrites from a confidence on are made."""

    threshold: float
    rewritten: float
    """Share of the queries that differ from the utterance."""
    mrr: float
    better: float
    worse: float


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Every number of the experiment."""

    settings: RetrievalSettings
    retriever: str
    depth: int
    documents: int
    questions: int
    left_out: int
    said: int
    """Pairs of a question and a document of its own history, which is in no ranking of that question."""
    constant: int
    outcomes: Mapping[str, SystemMeasures]
    thresholds: tuple[ThresholdPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `retrieval.json` holds."""
        return {
            "settings": asdict(self.settings),
            "retriever": self.retriever,
            "depth": self.depth,
            "fusion_constant": self.constant,
            "documents": self.documents,
            "questions": self.questions,
            "left_out": self.left_out,
            "said": self.said,
            "systems": {name: outcome.to_dict() for name, outcome in self.outcomes.items()},
            "thresholds": [asdict(point) for point in self.thresholds],
            "signatures": [str(bootstrap_signature()), str(paired_signature())],
            "git_commit": git_commit(),
        }


def measure_retrieval(
    collection: Collection,
    source: str,
    retriever: Retriever,
    out: Path,
    *,
    model: Path | None = None,
    n_best: int = 1,
    depth: int = 100,
    constant: int = FUSION_CONSTANT,
    progress: TextIO | None = None,
) -> RetrievalResult:
    """Return what search finds with each kind of query, with retrieval.json, retrieval.md and rewrites.jsonl in `out`.

    A stopped run is resumed. `depth`: how many documents a search gives; a relevant one below counts zero.
    `constant`: the k of reciprocal rank fusion.
    """
    if n_best < 1 or depth < 10:
        raise InputError(f"expected n-best from 1 and depth from 10 on, found {n_best} and {depth}")
    if constant < 0:
        raise InputError(f"fusion-constant: expected a number from 0 on, found {constant}")
    opened = open_model(model)
    rewriter = Rewriter.of_model(opened)
    hashed = opened.fingerprint(opened.folder.roles)
    settings = RetrievalSettings(source, _hash(collection), opened.name, hashed, rewriter.variant, n_best)
    _claim(out, settings)
    proposals = propose_rewrites(rewriter, collection.questions, out, n_best, progress or sys.stderr)
    result = compare_queries(collection, proposals, retriever, settings, depth, constant)
    write_json(out / "retrieval.json", result.to_dict())
    write_text(out / "retrieval.md", format_result(result))
    return result


def compare_queries(
    collection: Collection,
    proposals: Sequence[Proposal],
    retriever: Retriever,
    settings: RetrievalSettings,
    depth: int,
    constant: int = FUSION_CONSTANT,
) -> RetrievalResult:
    """Return what search finds with each kind of query, rewrites being there."""
    questions = collection.questions
    relevant = [question.relevant for question in questions]

    def find(queries: Sequence[str]) -> list[Ranking]:
        return _search(retriever, questions, queries, depth)

    kinds: dict[str, list[str | None]] = {
        "raw": [question.dialogue.utterance for question in questions],
        "last turns": [" ".join((*turns[-2:], utterance)) for turns, utterance in turns_of(questions)],
        "history": [" ".join((*turns, utterance)) for turns, utterance in turns_of(questions)],
        **{f"teo {name}": [one.at(threshold) for one in proposals] for name, threshold in PREFER.items()},
        "gold": [question.rewrite for question in questions],
    }
    measured = {
        name: measure_rankings(find([text for text in texts if text is not None]), relevant)
        for name, texts in kinds.items()
        if None not in texts  # a person's rewrite has to be there for all questions or the rows do not pair
    }
    if settings.n_best > 1:
        measured["teo n-best"] = measure_rankings(_fused(proposals, questions, retriever, depth, constant), relevant)
    proposed = measure_rankings(find([proposal.rewrite for proposal in proposals]), relevant)
    outcomes = {
        name: summarise_measures(measured[name], None if name == "raw" else measured["raw"])
        for name in SYSTEMS
        if name in measured
    }
    points = [_point(threshold, proposals, proposed, measured["raw"]) for threshold in THRESHOLDS]
    said = sum(len(question.said) for question in questions)
    sizes = len(collection.documents), len(questions), collection.left_out, said
    return RetrievalResult(settings, retriever.name, depth, *sizes, constant, outcomes, tuple(points))


def format_result(result: RetrievalResult) -> str:
    """Return the result as Markdown: what each kind of query finds, and what the threshold does."""
    rows = []
    for name, outcome in result.outcomes.items():
        cells = [f"{outcome.values[measure]:.3f} {_interval(outcome, measure)}" for measure in MEASURES]
        change = outcome.against_raw.get("mrr")
        effect = outcome.effect
        shares = (percent(effect.better), percent(effect.worse)) if effect else ("-", "-")
        rows.append((plain(name), *cells, f"{change.value:+.3f} (p {change.p:.4f})" if change else "-", *shares))
    head = ("query", "MRR", "recall@10", "NDCG@3", "MRR against raw", "better %", "worse %")
    sweep = [
        (
            f"{point.threshold:.1f}",
            percent(point.rewritten),
            f"{point.mrr:.3f}",
            percent(point.better),
            percent(point.worse),
        )
        for point in result.thresholds
    ]
    about = (
        f"{result.questions} questions, {result.documents} documents, the first {result.depth} of a search counted; "
        f"{result.left_out} rows without an answer left out. Better and worse: the first relevant document ranks "
        "higher or lower than with the raw utterance. Intervals are 95%. "
        + ("Documents that were said already are in no ranking." if result.said else "Every document may be found.")
    )
    parts = [
        f"# Retrieval: {plain(result.settings.source)}",
        about,
        table(head, rows, "lrrrrrr"),
        "\n".join(f"- {name}: {SYSTEMS[name]}" for name in result.outcomes),
        "## What the threshold does",
        table(("threshold", "rewritten %", "MRR", "better %", "worse %"), sweep, "lrrrr"),
        f"Model {plain(result.settings.model)} ({result.settings.variant}). Retriever: `{result.retriever}`. "
        f"Fusion: reciprocal rank, k {result.constant}.",
    ]
    return "\n\n".join(parts) + "\n"


def turns_of(questions: Sequence[Question]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the history and the utterance of each question."""
    return ((question.dialogue.history, question.dialogue.utterance) for question in questions)


def _search(retriever: Retriever, questions: Sequence[Question], queries: Sequence[str], depth: int) -> list[Ranking]:
    """Return rankings without what was said already; a little more is asked for, so that the depth is kept."""
    spare = max((len(question.said) for question in questions), default=0)
    rankings = retriever.search(queries, depth + spare)
    return [
        [index for index in ranking if index not in question.said][:depth]
        for ranking, question in zip(rankings, questions, strict=True)
    ]


def _fused(
    proposals: Sequence[Proposal], questions: Sequence[Question], retriever: Retriever, depth: int, constant: int
) -> list[Ranking]:
    """Return the fused rankings of each question's rewrite and alternatives, what a user gets first."""
    queries = [tuple(dict.fromkeys((item.at(PREFER["search"]), *item.alternatives))) for item in proposals]
    asked = [question for question, texts in zip(questions, queries, strict=True) for _ in texts]
    found = iter(_search(retriever, asked, [text for texts in queries for text in texts], depth))
    return [fuse([next(found) for _ in texts], depth, constant) for texts in queries]


def _point(threshold: float, proposals: Sequence[Proposal], proposed: FloatArray, raw: FloatArray) -> ThresholdPoint:
    """Return what a threshold does: the proposals' measures if they are made, else the raw utterances'."""
    made = [proposal.at(threshold) != proposal.utterance for proposal in proposals]
    measured = raw.copy()
    measured[made] = proposed[made]
    effect = effect_of(measured, raw)
    return ThresholdPoint(threshold, sum(made) / len(made), float(measured[:, 0].mean()), effect.better, effect.worse)


def _interval(outcome: SystemMeasures, measure: str) -> str:
    interval = outcome.intervals[measure]
    return f"({interval.low:.3f} to {interval.high:.3f})"


def _hash(collection: Collection) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in collection.documents:
        digest.update(json.dumps(text).encode())
    for question in collection.questions:
        asked = [question.id, question.dialogue.history, question.dialogue.utterance, sorted(question.relevant)]
        digest.update(json.dumps([*asked, question.rewrite]).encode())
    return digest.hexdigest()


def _claim(out: Path, settings: RetrievalSettings) -> None:
    """Make the folder, or refuse one whose rewrites were made under other settings."""
    file = out / "settings.json"
    if file.exists():
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            stored = None
        if stored != asdict(settings):
            raise InputError(f"{out}: holds results of other settings; choose another --out or delete it")
        return
    if (out / REWRITES).exists():
        raise InputError(f"{out}: expected settings.json beside {REWRITES}, found none; choose another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made the output folder: {error.strerror}") from None
    write_json(file, asdict(settings))
