import json
import random
import time

import pytest

from teo.errors import InputError
from teo.metrics import compare_rows, score_rows

CONTRACT = [
    *("n", "em", "bleu1", "bleu2", "bleu3", "bleu4", "rouge1", "rouge2", "rougeL_rouge_0_3_2", "rougeL_rouge_1_0_1"),
    *(f"{definition}_{part}{n}" for definition in ("run", "pan") for n in (1, 2, 3) for part in "prf"),
]


def _row(current, reference, prediction):
    return {"current": current, "reference": reference, "prediction": prediction}


ROWS = [
    _row("It is he who acted.", "It is Ben Affleck who acted as Batman.", "It is Ben Affleck who acted as Batman."),
    _row("好喝", "乌龙茶好喝", "茶好喝"),
    _row("Thank you!", "Thank you!", "thank you!"),
    _row("Why?", "Why is it cheap?", ""),
]


def test_the_contracts_keys_are_on_top():
    found = score_rows(ROWS).to_dict()
    assert list(found) == [*CONTRACT, "breakdown", "signatures"]
    assert found["n"] == 4 and found["em"] == 0.5
    assert all(0.0 <= found[key] <= 1.0 for key in CONTRACT[1:])
    assert found["breakdown"] == {
        "complete": {"n": 1, "em": 1.0},
        "incomplete": {"n": 3, "em": pytest.approx(1 / 3)},
        "insertion_only": {"n": 2, "em": 0.0},
        "replacement_only": {"n": 0, "em": None},
        "both": {"n": 1, "em": 1.0},
        "over_rewrite_rate": 0.0,
        "under_rewrite_rate": 0.0,
    }


def test_every_number_has_a_signature():
    found = score_rows(ROWS).to_dict()
    assert set(CONTRACT[1:]) <= set(found["signatures"])
    assert found["signatures"]["run_f2"].startswith("restoration-run|units:teo|")
    assert score_rows(ROWS, pretokenized=True).to_dict()["signatures"]["em"].startswith("EM|units:as-given|")


def test_pretokenized_texts_are_not_split_again():
    rows = [_row("a", "it's", "it 's")]
    assert score_rows(rows)["em"] == 1.0
    assert score_rows(rows, pretokenized=True)["em"] == 0.0


def test_intervals_hold_the_number_and_skip_what_is_undefined():
    report = score_rows(ROWS * 10, intervals=True)
    found = report.to_dict()
    assert set(found["intervals"]) == {*CONTRACT[1:], *(one.name for one in report.breakdown)} - {"em_replacement_only"}
    for name, (low, high) in found["intervals"].items():
        assert low - 1e-9 <= report[name] <= high + 1e-9, name
    assert found["signatures"]["intervals"].startswith("interval|level:95%|bootstrap:1000|seed:12345")
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError):
        score_rows(ROWS)["bleu5"]


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="rows: expected at least one row"):
        score_rows([])


def test_two_systems_side_by_side():
    better = [{**row, "prediction": row["reference"]} for row in ROWS]
    found = compare_rows(ROWS * 10, better * 10).to_dict()
    assert list(found) == ["n", "first", "second", "differences", "signature"]
    assert found["n"] == 40
    assert found["first"]["em"] == 0.5 and found["second"]["em"] == 1.0
    em = found["differences"]["em"]
    assert em["difference"] == pytest.approx(0.5)
    assert 0.3 < em["interval"][0] < 0.5 < em["interval"][1] < 0.7
    assert em["p"] < 0.001
    assert found["differences"]["em_replacement_only"] is None
    assert found["differences"]["em_both"]["p"] == 1.0
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_two_systems_on_different_rows_are_refused():
    with pytest.raises(InputError, match=r"^first\[2\]: no row to pair with"):
        compare_rows(ROWS, ROWS[:2])
    with pytest.raises(InputError, match=r"^second\[0\]: current: expected 'It is he who acted\.' as in first\[0\]"):
        compare_rows(ROWS, [ROWS[1], *ROWS[1:]])


@pytest.mark.slow
def test_5000_rows_take_less_than_5_seconds():
    chance = random.Random(0)
    words = [f"w{number}" for number in range(200)]

    def text():
        return chance.choices(words, k=chance.randint(10, 20))

    rows = []
    for _ in range(5000):
        reference = text()
        current = [word for word in reference if chance.random() > 0.2]
        prediction = reference if chance.random() < 0.5 else [word for word in reference if chance.random() > 0.1]
        rows.append(_row(*(" ".join(units) for units in (current, reference, prediction))))
    start = time.process_time()
    score_rows(rows)
    assert time.process_time() - start < 5.0


SEVERAL = {"current": "is he", "reference": "is Ben", "references": ["is Ben Affleck", "is he"]}


@pytest.mark.parametrize(
    ("prediction", "em", "reason"),
    [
        ("Is ben", 1.0, "the reference"),
        ("is Ben Affleck", 1.0, "another accepted rewrite"),
        ("is he", 1.0, "the utterance itself is accepted"),
        ("is Affleck", 0.0, "no accepted rewrite"),
    ],
)
def test_em_counts_a_match_with_any_reference_and_the_others_use_the_first(prediction, em, reason):
    report = score_rows([{**SEVERAL, "prediction": prediction}])
    alone = score_rows([{**SEVERAL, "references": [], "prediction": prediction}])
    assert report["em"] == report["em_incomplete"] == em, reason
    changed = {score.name for score, other in zip(report.scores, alone.scores, strict=True) if score != other}
    assert changed <= {"em"}, reason
    assert "|refs:any|" in str(report.signatures["em"])
    assert "|refs:1|" in str(report.signatures["rougeL_rouge_1_0_1"])


def test_systems_compared_must_accept_the_same_rewrites():
    first = [{**SEVERAL, "prediction": "is Ben"}]
    second = [{**SEVERAL, "references": ["is Ben Affleck"], "prediction": "is Ben"}]
    with pytest.raises(InputError, match=r"second\[0\]: references: expected .* as in first\[0\], found"):
        compare_rows(first, second)


@pytest.mark.parametrize("value", ["is Ben", [1], None])
def test_references_are_a_list_of_strings(value):
    with pytest.raises(InputError, match=r"rows\[0\]: references: expected a list of strings"):
        score_rows([{**SEVERAL, "prediction": "", "references": value}])
