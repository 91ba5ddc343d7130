import pytest

from teo.data.splits import DEV_SHARE, is_development, on_side


def test_rule_is_fixed():
    # Pinned: a change here would move rows between train and dev under every published number.
    assert [n for n in range(100) if is_development("task", str(n))] == [14, 21, 25, 39, 40, 59, 67, 73, 88, 99]


def test_share_is_about_a_tenth():
    chosen = sum(is_development("rewrite", f"group {n}") for n in range(20_000))
    assert abs(chosen / 20_000 - DEV_SHARE) < 0.01


def test_datasets_choose_apart():
    groups = [str(n) for n in range(1000)]
    chosen = [{group for group in groups if is_development(name, group)} for name in ("task", "followup")]
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize("group", ["14", "15"])
def test_every_group_is_on_exactly_one_side(group):
    assert on_side("task", group, "all")
    assert on_side("task", group, "dev") != on_side("task", group, "rest")
    assert on_side("task", group, "dev") == (group == "14")
