"""Retrieval: collections from dialogues and files, BM25, fusion, measures by hand, and the command end to end."""

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from scripted import rewriter_of, says
from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError, InputError
from teo.loading import has_default
from teo_lab.cli.retrieval import retrieval
from teo_lab.retrieval.collection import Collection, Question, collect_answers, read_collection
from teo_lab.retrieval.experiment import RetrievalSettings, compare_queries, format_result
from teo_lab.retrieval.measures import effect_of, measure_ranking, measure_rankings, summarise_measures
from teo_lab.retrieval.retrievers import Bm25, Ranking, fuse, make_retriever
from teo_lab.retrieval.rewrites import REWRITES, Proposal, propose_rewrites
from verbs import app_of

COMMAND = app_of(retrieval)
SETTINGS = RetrievalSettings("a test", "h", "m", "mh", "fast", 2)


def row(number: int, history: Sequence[str], utterance: str, rewrite: str = "") -> Row:
    return Row(str(number), Dialogue(tuple(history), utterance), rewrite or utterance)


ZAPPA = ["Zappa", "Bands"]
ROWS = [
    row(1, ZAPPA, "Who split?"),
    row(2, [*ZAPPA, "Who split?", "The Mothers"], "When?", "When did the Mothers split?"),
    row(3, [*ZAPPA, "Who split?", "The Mothers", "When?", "I don't know."], "And why?"),
    row(4, [*ZAPPA, "Who split?", "The Mothers", "When?", "I don't know.", "And why?", "Money troubles"], "Then?"),
]


def test_the_answer_is_in_the_history_of_the_next_question() -> None:
    collection = collect_answers(ROWS)
    assert collection.documents == ("The Mothers", "Money troubles")
    assert [(question.id, question.relevant, question.said) for question in collection.questions] == [
        ("1", {0}, frozenset()),
        ("3", {1}, {0}),  # what was said already is no answer
    ]
    assert collection.left_out == 2, "one has no answer in the article, one no next question"


def test_rows_without_answers_are_refused() -> None:
    with pytest.raises(DataError, match=r"found none among 1 rows; give --corpus and --queries instead"):
        collect_answers([row(1, ["a", "b"], "c")])


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    questions = tuple(Question(str(n), Dialogue((), "x"), frozenset({0})) for n in range(50))
    collection = Collection(("d",), questions)
    drawn = [question.id for question in collection.sample(10, 1).questions]
    assert drawn == [question.id for question in collection.sample(10, 1).questions]
    assert drawn == sorted(drawn, key=int)
    assert drawn != [question.id for question in collection.sample(10, 2).questions]
    assert collection.sample(None, 0) is collection
    with pytest.raises(InputError, match="limit"):
        collection.sample(0, 0)


def write_lines(file: Path, *records: object) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def test_a_collection_of_the_users_own(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "c.jsonl", {"id": "a", "text": "tea"}, {"id": 7, "text": "rome"})
    queries = write_lines(tmp_path / "q.jsonl", {"id": "q", "history": ["tea"], "utterance": "where", "relevant": [7]})
    collection = read_collection(corpus, queries)
    assert collection.documents == ("tea", "rome")
    assert collection.questions == (Question("q", Dialogue(("tea",), "where"), frozenset({1}), frozenset({0})),)


@pytest.mark.parametrize(
    ("document", "query", "words"),
    [
        ({"id": "a"}, {}, r"c.jsonl:1: expected a document"),
        ({"id": "a", "text": "t"}, {"history": [], "utterance": "u"}, r"q.jsonl:1: relevant: expected a list"),
        ({"id": "a", "text": "t"}, {"history": [], "utterance": "u", "relevant": ["b"]}, r"relevant: .* found 'b'"),
        ({"id": "a", "text": "t"}, {"history": [], "relevant": ["a"]}, r"q.jsonl:1: utterance"),
        ({"id": "a", "text": "t"}, [], r"q.jsonl:1: expected a JSON object, found list"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(document: object, query: object, words: str, tmp_path: Path) -> None:
    corpus, queries = write_lines(tmp_path / "c.jsonl", document), write_lines(tmp_path / "q.jsonl", query)
    with pytest.raises(DataError, match=words):
        read_collection(corpus, queries)


@pytest.mark.parametrize(
    ("ranking", "relevant", "expected", "reason"),
    [
        ([5, 3], {5}, (1.0, 1.0, 1.0), "first"),
        ([1, 2, 5], {5}, (1 / 3, 1.0, 1 / math.log2(4)), "third: the ideal gain is 1"),
        ([1, 2, 3, 5], {5}, (0.25, 1.0, 0.0), "fourth is beyond NDCG@3"),
        ([*range(100, 110), 5], {5}, (1 / 11, 0.0, 0.0), "eleventh is beyond recall@10"),
        ([], {5}, (0.0, 0.0, 0.0), "nothing found"),
        ([5, 1, 6], {5, 6}, (1.0, 1.0, 1.5 / (1 + 1 / math.log2(3))), "two relevant documents"),
    ],
)
def test_measures_by_hand(ranking: Ranking, relevant: set[int], expected: tuple[float, ...], reason: str) -> None:
    assert measure_ranking(ranking, relevant) == pytest.approx(expected), reason


def test_the_effect_of_rewriting_and_its_paired_test() -> None:
    raw = measure_rankings([[0], [1, 0], [0], [1]], [{0}] * 4)  # reciprocal ranks 1, 1/2, 1, 0
    ours = measure_rankings([[0], [0], [1, 0], [0]], [{0}] * 4)  # 1, 1, 1/2, 1
    effect = effect_of(ours, raw)
    assert (effect.better, effect.worse, effect.same) == (0.5, 0.25, 0.25)
    outcome = summarise_measures(ours, raw)
    assert outcome.values["mrr"] == pytest.approx(3.5 / 4)
    assert outcome.against_raw["mrr"].value == pytest.approx(1 / 4)
    assert 0 < outcome.against_raw["mrr"].p <= 1
    assert outcome.intervals["mrr"].low <= 3.5 / 4 <= outcome.intervals["mrr"].high
    alone = summarise_measures(raw, None)
    assert (alone.against_raw, alone.effect) == ({}, None)


def test_fusion_by_reciprocal_rank() -> None:
    # 7 is second in both: 2/62; 1 and 2 are first once: 1/61
    assert fuse([[1, 7], [2, 7]], 10) == [7, 1, 2]
    assert fuse([[1, 7], [2, 7]], 1) == [7]
    assert fuse([[3, 4]], 10) == [3, 4]
    # a small constant lets a first rank win over two thirds: 1 against 2/3, and 1/61 against 2/63
    assert (fuse([[1, 8, 7], [2, 9, 7]], 1, 0), fuse([[1, 8, 7], [2, 9, 7]], 1)) == ([1], [7])


def test_bm25_finds_words_and_chinese_characters() -> None:
    index = Bm25(["Ben Affleck acted as Batman.", "Tea is hot in Rome.", "我喜欢喝茶"])
    assert index.search(["batman actor", "hot tea", "茶好喝", "zebra", "the"], 10) == [[0], [1], [2], [], []]
    assert "bm25s:" in index.name


@pytest.mark.parametrize("name", ["dense", "no.such.module:make", "json:no_such_function", ":"])
def test_a_retriever_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="retriever: expected"):
        make_retriever(name, ["a"])


class Overlap:
    """A retriever by words in common: what a plug has to offer."""

    name = "overlap"

    def __init__(self, documents: Sequence[str]) -> None:
        self.documents = [set(text.lower().split()) for text in documents]

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        found = []
        for query in queries:
            shared = [len(words & set(query.lower().split())) for words in self.documents]
            ranked = sorted((-count, place) for place, count in enumerate(shared) if count)
            found.append([place for _, place in ranked][:depth])
        return found


def proposal(utterance: str, rewrite: str, confidence: float | None, *more: str) -> Proposal:
    return Proposal(utterance, utterance, rewrite, confidence, (rewrite, *more))


def test_the_kinds_of_query_and_the_threshold() -> None:
    questions = (
        Question("1", Dialogue(("tea talk",), "is it hot"), frozenset({0}), rewrite="is tea hot"),
        Question("2", Dialogue(("rome talk",), "cold there"), frozenset({1}), rewrite="cold rome"),
    )
    documents = ("tea and tea leaves", "cold", "hot")
    proposals = [
        proposal("is it hot", "is tea hot", 0.9, "is tea"),  # better: the raw query finds only document 2
        proposal("cold there", "tea there", 0.6, "cold"),  # worse: it loses what the raw query found
    ]
    study = compare_queries(Collection(documents, questions), proposals, Overlap(documents), SETTINGS, 10)
    found = {name: outcome.values["mrr"] for name, outcome in study.outcomes.items()}
    settings = ["teo search", "teo balanced", "teo careful"]
    assert list(found) == ["raw", "last turns", "history", *settings, "teo n-best", "gold"]
    assert (found["raw"], found["gold"]) == (0.5, 1.0)
    assert [found[name] for name in settings] == [0.5, 0.5, 1.0], "careful makes the sure rewrite alone"
    assert found["teo n-best"] == pytest.approx((1 + 1 / 2) / 2), "the alternative brings the lost document back"
    points = {point.threshold: point for point in study.thresholds}
    assert (points[0.5].better, points[0.5].worse, points[0.5].rewritten) == (0.5, 0.5, 1.0)
    assert (points[0.7].better, points[0.7].worse, points[0.7].rewritten) == (0.5, 0.0, 0.5)
    assert points[0.7].mrr == 1.0
    assert points[0.0].mrr == 0.5
    text = format_result(study)
    assert "| 0.5 | 100.0 | 0.500 | 50.0 | 50.0 |" in text
    json.dumps(study.to_dict())


def test_what_was_said_is_in_no_ranking() -> None:
    question = Question("1", Dialogue(("hot tea",), "hot"), frozenset({1}), said=frozenset({0}))
    documents = ("hot hot tea", "hot")
    study = compare_queries(
        Collection(documents, (question,)), [proposal("hot", "hot tea", 1.0)], Overlap(documents), SETTINGS, 10
    )
    assert (study.outcomes["history"].values["mrr"], study.said) == (1.0, 1)
    assert "Documents that were said already are in no ranking." in format_result(study)
    kept = Collection(documents, (question,)).keep_said()
    study = compare_queries(kept, [proposal("hot", "hot tea", 1.0)], Overlap(documents), SETTINGS, 10)
    assert (study.outcomes["history"].values["mrr"], study.said) == (0.5, 0)
    assert "Every document may be found." in format_result(study)
    assert "gold" not in study.outcomes, "nobody rewrote the question"


def test_rewrites_are_stored_and_a_stopped_run_goes_on(tmp_path: Path) -> None:
    questions = [Question(str(n), Dialogue(("ben is here",), f"is he {n}"), frozenset({0})) for n in range(20)]
    generator = says("is ben")
    first = propose_rewrites(rewriter_of(generator), questions, tmp_path, 2, io.StringIO())
    asked = len(generator.asked)
    assert (first[0].rewrite, first[0].utterance) == ("is ben", "is he 0")
    file = tmp_path / REWRITES
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 5])  # the last line was cut off
    again = propose_rewrites(rewriter_of(generator), questions, tmp_path, 2, io.StringIO())
    assert again == first
    assert file.read_bytes() == whole
    assert len(generator.asked) == asked + 1
    with pytest.raises(InputError, match="found another; choose another --out"):
        propose_rewrites(rewriter_of(generator), questions[::-1], tmp_path, 2, io.StringIO())


@pytest.mark.parametrize(
    ("confidence", "threshold", "expected"),
    [(0.6, 0.5, "new"), (0.4, 0.5, "old"), (0.4, 0.3, "new"), (None, 0.0, "old")],
)
def test_what_a_user_gets_at_a_threshold(confidence: float | None, threshold: float, expected: str) -> None:
    assert proposal("old", "new", confidence).at(threshold) == expected


@pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")
def test_the_command_end_to_end(tmp_path: Path) -> None:
    corpus = write_lines(
        tmp_path / "c.jsonl", {"id": "a", "text": "Ben Affleck acted"}, {"id": "b", "text": "Tea is hot"}
    )
    queries = write_lines(
        tmp_path / "q.jsonl",
        {"id": "1", "history": ["I like Ben Affleck."], "utterance": "Did he act?", "relevant": ["a"]},
        {"id": "2", "history": ["I like tea."], "utterance": "Is it hot?", "relevant": ["b"]},
    )
    out = tmp_path / "out"
    words = ["retrieval", "--corpus", str(corpus), "--queries", str(queries), "--out", str(out)]
    result = CliRunner().invoke(COMMAND, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("# Retrieval: q.jsonl in c.jsonl\n\n2 questions, 2 documents")
    stored = json.loads((out / "retrieval.json").read_text(encoding="utf-8"))
    assert list(stored["systems"]) == ["raw", "last turns", "history", "teo search", "teo balanced", "teo careful"]
    assert (out / "retrieval.md").read_text(encoding="utf-8") == result.stdout
    assert len((out / REWRITES).read_text(encoding="utf-8").splitlines()) == 2
    assert isinstance(CliRunner().invoke(COMMAND, [*words, "--n-best", "4"]).exception, InputError), "other settings"
    again = CliRunner().invoke(COMMAND, [*words, "--keep-said", "--fusion-constant", "7"])
    assert "Fusion: reciprocal rank, k 7." in again.stdout, "neither changes a rewrite"
    assert isinstance(CliRunner().invoke(COMMAND, [*words, "--path", "x"]).exception, InputError), "two sources"


def test_measured_lines_keep_their_shape() -> None:
    assert measure_rankings([], []).shape == (0, 3)
    assert measure_rankings([[0]], [{0}]).dtype == np.float64
