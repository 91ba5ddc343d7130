import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.metrics.base import ScoredExample
from teo.metrics.restoration import Restoration

# (reason, definition, current, reference, prediction, (matched, predicted, expected) for n = 1, 2, 3)
TABLE = [
    (
        "new words and what touches them",
        "run",
        "it is he",
        "it is ben affleck",
        "it is ben",
        (1, 1, 2, 1, 1, 2, 1, 1, 2),
    ),
    ("n-grams that are new", "pan", "it is he", "it is ben affleck", "it is ben", (1, 1, 2, 1, 1, 2, 1, 1, 2)),
    ("no new word: the row is left out", "run", "a b", "b a", "c d", (0,) * 9),
    ("no new word, but a new bigram: the row counts", "pan", "a b", "b a", "b a", (0, 0, 0, 1, 1, 1, 0, 0, 0)),
    ("a complete row still counts what was added", "pan", "a b", "a b", "a b c", (0, 1, 0, 0, 1, 0, 0, 1, 0)),
    ("known words in new order hold nothing new", "run", "a b", "c a b", "b a", (0, 0, 1, 0, 0, 1, 0, 0, 1)),
    ("known words in new order are new bigrams", "pan", "a b", "c a b", "b a", (0, 0, 1, 0, 1, 1, 0, 0, 1)),
    ("sets: a word said twice counts once", "run", "a", "a b b", "b b b", (1, 1, 1, 1, 1, 2, 0, 1, 1)),
    ("an empty prediction is one blank unit", "run", "a", "a hello", "", (0, 1, 1, 0, 0, 1, 0, 0, 0)),
    ("an empty prediction is nothing", "pan", "a", "a hello", "", (0, 0, 1, 0, 0, 1, 0, 0, 0)),
    ("blank in both: nothing new was predicted", "run", "", "a", "", (0, 0, 1, 0, 0, 0, 0, 0, 0)),
]


def _example(*texts):
    return ScoredExample(*(tuple(text.split()) for text in texts))


@pytest.mark.parametrize(
    ("definition", "texts", "expected"),
    [(row[1], row[2:5], row[5]) for row in TABLE],
    ids=[f"{row[1]}: {row[0]}" for row in TABLE],
)
def test_counts_of_one_row(definition, texts, expected):
    assert Restoration(definition).statistics(_example(*texts)) == expected


def test_counts_are_summed_before_dividing():
    metric = Restoration("pan")
    rows = metric.collect([_example("a", "a b", "a b"), _example("a", "a b c d", "a x y")])
    p, r, f = metric.aggregate(rows.sum(axis=0))[:3]
    assert (p, r, f) == pytest.approx((1 / 3, 1 / 4, 2 / 7))  # the mean of rows would give P 0.5


@pytest.mark.parametrize("definition", ["run", "pan"])
def test_nothing_restored_is_zero_not_an_error(definition):
    metric = Restoration(definition)
    assert metric.aggregate(metric.collect([_example("a", "a", "a")]).sum(axis=0)).tolist() == [0.0] * 9


def test_names_and_signature():
    metric = Restoration("run")
    assert metric.names == tuple(f"run_{part}{n}" for n in "123" for part in "prf")
    recipes = {str(one) for one in metric.signatures("teo")}
    assert len(recipes) == 1
    assert "|nothing-to-restore:left-out|" in recipes.pop()
    assert "|nothing-to-restore:counted|" in str(Restoration("pan").signatures("teo")[0])


units = st.lists(st.sampled_from("abcde"), max_size=6).map(tuple)


@settings(deadline=None)
@given(units, units, units)
def test_run_never_restores_more_ngrams_than_pan(current, reference, prediction):
    example = ScoredExample(current, reference, prediction or ("a",))
    run, pan = Restoration("run").statistics(example), Restoration("pan").statistics(example)
    assert all(one <= other for one, other in zip(run, pan, strict=True) if current and reference)


@settings(deadline=None)
@given(units, units)
def test_the_reference_itself_has_p_r_f_1_or_nothing_to_restore(current, reference):
    metric = Restoration("pan")
    numbers = metric.aggregate(metric.collect([ScoredExample(current, reference, reference)]).sum(axis=0))
    assert set(numbers.tolist()) <= {0.0, 1.0}
    assert (numbers[0] == 1.0) == bool(set(reference) - set(current))


@settings(deadline=None)
@given(st.lists(st.tuples(units, units, units), min_size=1, max_size=4))
def test_f_is_the_harmonic_mean_of_p_and_r(rows):
    metric = Restoration("run")
    numbers = metric.aggregate(metric.collect([ScoredExample(*row) for row in rows]).sum(axis=0))
    for p, r, f in numbers.reshape(3, 3):
        assert f == pytest.approx(2 * p * r / (p + r) if p + r else 0.0)
