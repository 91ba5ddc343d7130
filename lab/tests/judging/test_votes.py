"""The store: votes at once, votes of other studies, votes after a crash."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from teo.errors import InputError
from teo_lab.judging.items import Item, JudgingStudy
from teo_lab.judging.votes import VOTES, Vote, VoteStore


def test_a_study_comes_back_whole(tmp_path: Path, study: JudgingStudy) -> None:
    odd = Item("odd", ("half a pair \ud83d", ""), "\u2028 \x00", "他", '"')
    whole = replace(study, items=(*study.items, odd))
    VoteStore.create(tmp_path / "new" / "folder", whole)
    assert VoteStore.open(tmp_path / "new" / "folder").study == whole


def test_votes_are_kept_and_may_be_changed(tmp_path: Path, study: JudgingStudy) -> None:
    store = VoteStore.create(tmp_path, study)
    assert (store.seat("Ann"), store.seat("Bo"), store.seat("Ann")) == (1, 2, 1)
    for vote in (Vote(1, 3, "a"), Vote(2, 3, "b"), Vote(1, 3, "tie")):
        store.vote(vote)
    again = VoteStore.create(tmp_path, study)
    assert again.votes() == [Vote(1, 3, "tie"), Vote(2, 3, "b")]
    assert again.votes(2) == [Vote(2, 3, "b")]
    with pytest.raises(InputError, match="all 2 raters of this study have started; enter the name that you"):
        again.seat("Cy")


@pytest.mark.slow
def test_many_at_once_lose_nothing(tmp_path: Path, study: JudgingStudy) -> None:
    many = replace(study, plan=replace(study.plan, raters=8))

    def judge(name: str) -> int:
        store = VoteStore.create(tmp_path, many)  # the first to come makes the file
        seat = store.seat(name)
        for item in range(len(many.items)):
            store.vote(Vote(seat, item, "a"))
        return seat

    with ThreadPoolExecutor(8) as pool:
        seats = list(pool.map(judge, "abcdefgh"))
    assert sorted(seats) == list(range(1, 9))
    votes = VoteStore.open(tmp_path).votes()
    assert votes == [Vote(seat, item, "a") for seat in range(1, 9) for item in range(20)]


def test_it_is_written_ahead(tmp_path: Path, study: JudgingStudy) -> None:
    VoteStore.create(tmp_path, study)
    database = sqlite3.connect(tmp_path / VOTES)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_a_vote_for_nothing_is_refused(tmp_path: Path, study: JudgingStudy) -> None:
    store = VoteStore.create(tmp_path, study)
    with pytest.raises(InputError, match="FOREIGN KEY"):
        store.vote(Vote(1, 0, "a"))
    store.seat("Ann")
    with pytest.raises(InputError, match="FOREIGN KEY"):
        store.vote(Vote(1, 99, "a"))
    assert store.votes() == []


def test_another_study_is_refused(tmp_path: Path, study: JudgingStudy) -> None:
    VoteStore.create(tmp_path, study)
    other = replace(study, plan=replace(study.plan, seed=8))
    with pytest.raises(InputError, match=r"holds another study \(seed: 7 there, 8 asked for\); choose another --out"):
        VoteStore.create(tmp_path, other)


def test_what_is_no_study_is_refused(tmp_path: Path, study: JudgingStudy) -> None:
    with pytest.raises(InputError, match=r"expected votes.sqlite of a study, found none; start one: teo-lab judge A B"):
        VoteStore.open(tmp_path)
    (tmp_path / VOTES).write_text("no database, but long enough to be looked at" * 100)
    with pytest.raises(InputError, match="cannot be used as the votes of a study"):
        VoteStore.create(tmp_path, study)


def test_a_start_that_was_cut_off_starts_anew(tmp_path: Path, study: JudgingStudy) -> None:
    (tmp_path / VOTES).touch()
    assert VoteStore.create(tmp_path, study).study == study
