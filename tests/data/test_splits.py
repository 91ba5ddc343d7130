import pytest

from teo.data.splits import DEV_SHARE, Source, of_unnamed_file

DEVELOPMENT = Source("train", end=DEV_SHARE)


def test_rule_is_fixed():
    # Pinned: a change here would move rows between train and dev under every published number.
    assert [n for n in range(100) if DEVELOPMENT.holds("task", str(n))] == [14, 21, 25, 39, 40, 59, 67, 73, 88, 99]


def test_share_is_about_a_tenth():
    chosen = sum(DEVELOPMENT.holds("rewrite", f"group {n}") for n in range(20_000))
    assert abs(chosen / 20_000 - DEV_SHARE) < 0.01


def test_datasets_choose_apart():
    groups = [str(n) for n in range(1000)]
    chosen = [{group for group in groups if DEVELOPMENT.holds(name, group)} for name in ("task", "followup")]
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize("group", ["14", "15", "half a pair: \ud800"])
def test_every_group_is_in_exactly_one_split_of_an_unnamed_file(group):
    splits = {name: sources[0].holds("task", group) for name, sources in of_unnamed_file().items()}
    assert sum(splits[name] for name in ("train", "dev", "test")) == 1
    assert splits["all"]
    assert splits["train+dev"] == (splits["train"] or splits["dev"])
    assert splits["dev"] == (group == "14")


def test_shares_of_an_unnamed_file():
    splits, groups = of_unnamed_file(), [f"group {n}" for n in range(20_000)]
    for name, share in (("train", 0.8), ("dev", 0.1), ("test", 0.1)):
        assert abs(sum(splits[name][0].holds("jsonl", group) for group in groups) / 20_000 - share) < 0.01
