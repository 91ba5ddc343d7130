"""Greedy and beam search over a scripted model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from teo.runtime.search import Draft, Text, search_beams, search_greedily

END, SIZE = 0, 4


class Scripted:
    """Steps whose next-token distribution depends on the whole text so far, and on the row."""

    def __init__(self, seeds: list[int]) -> None:
        self.texts: list[tuple[int, ...]] = [(seed,) for seed in seeds]
        self.sizes: list[int] = []
        self.checked: list[int] = []

    def advance(
        self, tokens: Sequence[Sequence[int]], asked: Sequence[int], count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        assert len(tokens) == len(self.texts) == len(asked)
        self.sizes.append(len(tokens))
        self.checked.append(sum(asked))
        self.texts = [(*text, *row) for text, row in zip(self.texts, tokens, strict=True)]
        prefixes = [
            text[: len(text) - back]
            for text, number in zip(self.texts, asked, strict=True)
            for back in range(number - 1, -1, -1)
        ]
        logs = np.array([log_probabilities(text) for text in prefixes])
        ids = np.argsort(-logs, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(logs, ids, axis=1), ids

    def forget(self, counts: Sequence[int]) -> None:
        self.texts = [text[: len(text) - count] for text, count in zip(self.texts, counts, strict=True)]

    def keep(self, rows: np.ndarray) -> None:
        self.texts = [self.texts[row] for row in rows.tolist()]


def log_probabilities(text: tuple[int, ...]) -> np.ndarray:
    weights = np.random.default_rng(list(text)).gumbel(size=SIZE) * 1.5
    return weights - np.log(np.exp(weights).sum())


def starts(count: int) -> list[list[int]]:
    return [[7, 8]] * count


def greedy_alone(seed: int, limit: int) -> Text:
    text, found = (seed, 7, 8), Text()
    while len(found.ids) < limit and (not found.ids or found.ids[-1] != END):
        logs = log_probabilities(text)
        token = int(logs.argmax())
        found = found.extended(token, float(logs[token]))
        text = (*text, token)
    return found


def test_greedy_takes_the_likeliest_token_of_each_row() -> None:
    limits = [1 + seed % 9 for seed in range(30)]
    found = search_greedily(Scripted(list(range(30))), starts(30), limits, END)
    assert found == [greedy_alone(seed, limit) for seed, limit in enumerate(limits)]


def test_finished_rows_leave_the_batch() -> None:
    steps = Scripted(list(range(40)))
    found = search_greedily(steps, starts(40), [12] * 40, END)
    needed = [sum(len(text.ids) > k for text in found) for k in range(len(steps.sizes))]
    assert steps.sizes[0] == 40
    assert steps.sizes == sorted(steps.sizes, reverse=True)
    assert all(need <= size <= need / 0.75 + 1 for need, size in zip(needed, steps.sizes, strict=True))


def all_texts(seed: int, limit: int) -> list[tuple[float, list[int]]]:
    """Every text that ends within the limit with its log-probability, the most probable first."""
    found = []
    for length in range(1, limit + 1):
        for body in itertools.product(range(1, SIZE), repeat=length - 1):
            ids, text, total = [*body, END], (seed, 7, 8), 0.0
            for token in ids:
                total += float(log_probabilities(text)[token])
                text = (*text, token)
            found.append((total, ids))
    return sorted(found, key=lambda one: -one[0])


def test_beams_wide_enough_find_the_best_text() -> None:
    seeds = list(range(12))
    found = search_beams(Scripted(seeds), starts(12), [5] * 12, END, beams=200)
    for seed, (text, *_) in zip(seeds, found, strict=True):
        score, ids = max((total / len(ids), ids) for total, ids in all_texts(seed, 5))
        assert text.ids == ids
        assert sum(text.scores) / len(text.scores) == pytest.approx(score)


def test_beams_wide_enough_list_the_most_probable_texts() -> None:
    found = search_beams(Scripted([3, 4]), starts(2), [5] * 2, END, beams=30, per_token=False)
    for seed, texts in zip([3, 4], found, strict=True):
        expected = all_texts(seed, 5)[:6]
        assert [text.ids for text in texts[:6]] == [ids for _, ids in expected]
        assert [sum(text.scores) for text in texts[:6]] == pytest.approx([total for total, _ in expected])


@pytest.mark.parametrize("per_token", [True, False])
@pytest.mark.parametrize("beams", [1, 2, 5])
def test_texts_are_distinct_and_fall_in_rank(beams: int, per_token: bool) -> None:
    for texts in search_beams(Scripted(list(range(20))), starts(20), [9] * 20, END, beams, per_token=per_token):
        assert 1 <= len(texts) <= beams
        assert len({tuple(text.ids) for text in texts}) == len(texts)
        ranks = [sum(text.scores) / (len(text.ids) if per_token else 1) for text in texts]
        assert ranks == sorted(ranks, reverse=True)


@pytest.mark.parametrize("per_token", [True, False])
@pytest.mark.parametrize("beams", [1, 2, 3])
def test_a_row_searches_the_same_alone(beams: int, per_token: bool) -> None:
    seeds = list(range(20))
    together = search_beams(Scripted(seeds), starts(20), [8] * 20, END, beams, per_token=per_token)
    alone = [search_beams(Scripted([seed]), starts(1), [8], END, beams, per_token=per_token)[0] for seed in seeds]
    assert together == alone


def test_a_text_that_never_ends_stops_at_its_limit() -> None:
    class Endless(Scripted):
        def advance(
            self, tokens: Sequence[Sequence[int]], asked: Sequence[int], count: int
        ) -> tuple[np.ndarray, np.ndarray]:
            ids = np.tile(np.arange(1, count + 1), (sum(asked), 1))
            return np.log(np.full(ids.shape, 0.1)), ids

    assert [len(text.ids) for text in search_greedily(Endless([1, 2]), starts(2), [3, 5], END)] == [3, 5]
    found = search_beams(Endless([1, 2]), starts(2), [3, 5], END, 2)
    assert [[len(text.ids) for text in texts] for texts in found] == [[3], [5]]


def test_no_rows_is_no_step() -> None:
    assert search_greedily(Scripted([]), [], [], END) == []
    assert search_beams(Scripted([]), [], [], END, 2) == []


def perfect(texts: list[Text]) -> Draft:
    """Drafts that guess every token."""
    return lambda row, ids: texts[row].ids[len(ids) :]


def spoiled(texts: list[Text]) -> Draft:
    """Drafts that are right for a while, wrong once, longer than the text and now and then empty."""

    def draft(row: int, ids: Sequence[int]) -> list[int]:
        rest = [*texts[row].ids[len(ids) :], 1, 2, 3]
        wrong = np.random.default_rng([row, len(ids)]).integers(len(rest))
        return [*rest[:wrong], (rest[wrong] + 1) % SIZE, *rest[wrong + 1 :]][: 9 * wrong]

    return draft


@pytest.mark.parametrize("guess", [perfect, spoiled])
def test_drafts_change_no_text_and_save_passes(guess: Callable[[list[Text]], Draft]) -> None:
    limits = [1 + seed % 13 for seed in range(40)]
    plain = Scripted(list(range(40)))
    expected = search_greedily(plain, starts(40), limits, END)
    steps = Scripted(list(range(40)))
    assert search_greedily(steps, starts(40), limits, END, guess(expected)) == expected
    assert len(steps.sizes) < len(plain.sizes)
    if guess is perfect:
        assert len(steps.sizes) == 1, "a draft that is right is checked in one pass"


def test_what_a_pass_checks_is_bounded() -> None:
    steps = Scripted(list(range(40)))
    search_greedily(steps, starts(40), [500] * 40, END, lambda row, ids: [1] * 400, checked=100)
    assert max(steps.checked) <= 100 + 40
    assert steps.checked[0] == 120, "drafts share what there is"
