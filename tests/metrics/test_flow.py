import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teo.errors import InputError
from teo.metrics import StageFlow, final_em_from_rates, stage_flow

# (data, EM of stage 1, E2C and C2E as printed, final EM of the paper's tables, all in percent)
PRINTED = [
    ("TASK", 73.1, 9.71, 20.56, 78.1),
    ("REWRITE", 75.2, 12.53, 3.41, 73.5),
    ("RES200K", 59.8, 4.82, 29.66, 54.2),
]
PERMUTED = [
    ("TASK", 73.1, 29.66, 4.82, 78.1),
    ("REWRITE", 75.2, 20.56, 9.71, 73.5),
    ("RES200K", 59.8, 3.41, 12.53, 54.2),
]


def test_the_four_cells_and_the_rates():
    flow = stage_flow([True, True, True, False, False], [True, True, False, True, False])
    assert flow == StageFlow(right_right=2, right_wrong=1, wrong_right=1, wrong_wrong=1)
    assert flow.to_dict() == pytest.approx(
        {
            "n": 5,
            "right_right": 2,
            "right_wrong": 1,
            "wrong_right": 1,
            "wrong_wrong": 1,
            "stage1_em": 3 / 5,
            "e2c": 1 / 2,
            "c2e": 1 / 3,
            "final_em": 3 / 5,
        }
    )
    assert str(flow) == "stage 1 EM 0.6000  E2C 0.5000  C2E 0.3333  final EM 0.6000"


@pytest.mark.parametrize(
    ("ops", "rewrites", "e2c", "c2e"),
    [([], [], None, None), ([True], [True], None, 0.0), ([False], [True], 1.0, None)],
)
def test_a_rate_without_rows_is_none(ops, rewrites, e2c, c2e):
    flow = stage_flow(ops, rewrites)
    assert (flow.e2c, flow.c2e) == (e2c, c2e)
    assert (flow.final_em is None) == (not ops) == (flow.stage1_em is None)
    assert "-" in str(flow)


def test_stages_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"found 2 for the operations and 1 for the rewrites"):
        stage_flow([True, False], [True])


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_the_identity_holds_for_any_rows(rows):
    flow = stage_flow(*zip(*rows, strict=True))
    rates = (flow.stage1_em, flow.e2c or 0.0, flow.c2e or 0.0)
    assert final_em_from_rates(*rates) == pytest.approx(flow.final_em)


@pytest.mark.parametrize(("data", "em", "e2c", "c2e", "final"), PRINTED)
def test_the_papers_table_is_impossible_as_printed(data, em, e2c, c2e, final):
    assert abs(100 * final_em_from_rates(em / 100, e2c / 100, c2e / 100) - final) > 2.0


@pytest.mark.parametrize(("data", "em", "e2c", "c2e", "final"), PERMUTED)
def test_the_papers_numbers_permuted_fit_within_half_a_point(data, em, e2c, c2e, final):
    assert 100 * final_em_from_rates(em / 100, e2c / 100, c2e / 100) == pytest.approx(final, abs=0.55)


def test_percentages_are_refused():
    with pytest.raises(InputError, match=r"c2e: expected a fraction from 0 to 1, found 20\.56; divide percentages"):
        final_em_from_rates(0.7, 0.1, 20.56)
