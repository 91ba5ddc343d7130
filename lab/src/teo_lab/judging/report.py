"""report_study(store): what the votes say, as values, JSON and Markdown."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from teo.errors import MissingExtraError
from teo.evaluation.markdown import percent, plain, table
from teo.files import write_json, write_text
from teo.metrics.base import Interval
from teo.metrics.significance import bootstrap_signature
from teo_lab.judging.agreement import (
    Kappa,
    SignTest,
    Tally,
    VoteShare,
    count_votes,
    fleiss_kappa,
    majorities,
    sign_test,
    tally_items,
    tally_votes,
)
from teo_lab.judging.bars import draw_bars
from teo_lab.judging.items import Choice, Item, Plan, item_record
from teo_lab.judging.votes import Vote, VoteStore

REPORT, NUMBERS, BARS = "report.md", "report.json", "bars.png"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item that raters did not judge alike, with each rater's vote."""

    item: Item
    votes: dict[int, Choice]

    @property
    def opposed(self) -> bool:
        """Whether both systems were preferred, each by somebody."""
        return {"a", "b"} <= set(self.votes.values())


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the votes of a study say, seen from its first system."""

    plan: Plan
    drawn: int
    """Items of the study."""
    votes: Tally
    items: Tally
    """By majority."""
    raters: dict[int, Tally]
    kappa: Kappa
    sign: SignTest
    first_chosen: int
    """Votes for the rewrite that was shown first."""
    disagreements: tuple[Disagreement, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON; raters are known by their seats, not by their names."""
        decided = self.votes.win.count + self.votes.loss.count
        return {
            "study": asdict(self.plan),
            "drawn": self.drawn,
            "votes": asdict(self.votes),
            "items": asdict(self.items),
            "raters": {str(seat): asdict(tally) for seat, tally in self.raters.items()},
            "kappa": asdict(self.kappa),
            "sign_test": asdict(self.sign),
            "shown_first": {"chosen": self.first_chosen, "of": decided},
            "disagreements": [
                {**item_record(found.item), "votes": {str(seat): choice for seat, choice in found.votes.items()}}
                for found in self.disagreements
            ],
            "interval": str(bootstrap_signature()),
        }


def judge_votes(store: VoteStore) -> Judgement:
    """Return what the votes of a study say so far."""
    study, votes = store.study, store.votes()
    counts = count_votes(votes, len(study.items))
    outcomes = majorities(counts)
    seats = sorted({vote.seat for vote in votes})
    by_rater = {seat: [vote.choice for vote in votes if vote.seat == seat] for seat in seats}
    return Judgement(
        study.plan,
        len(study.items),
        tally_votes(counts),
        tally_items(outcomes),
        {seat: tally_items(choices) for seat, choices in by_rater.items()},
        fleiss_kappa(counts),
        sign_test(outcomes),
        _count_first(store, votes),
        _find_disagreements(study.items, votes),
    )


def report_study(store: VoteStore, folder: Path, progress: TextIO | None = None) -> Judgement:
    """Return what the votes say, with report.md, report.json and bars.png in the folder."""
    judgement = judge_votes(store)
    drawn = False
    if judgement.votes.total:
        try:
            draw_bars(_bars(judgement), (judgement.plan.a, judgement.plan.b), folder / BARS)
            drawn = True
        except MissingExtraError as error:
            (progress or sys.stderr).write(f"{BARS} is not drawn: {error}\n")
    write_json(folder / NUMBERS, judgement.to_dict())
    write_text(folder / REPORT, format_judgement(judgement, picture=drawn))
    return judgement


def format_judgement(judgement: Judgement, *, picture: bool = False) -> str:
    """Return the report as Markdown."""
    plan = judgement.plan
    parts = [
        f"# {plain(plan.a)} against {plain(plan.b)}, judged by people",
        summarise(judgement),
        *([f"![Wins, ties and losses]({BARS})"] if picture else []),
        _tallies(judgement),
        f"A win is a vote for {plain(plan.a)}. An item goes to the choice that most raters made, and is a tie if "
        "two choices have as many votes. Shares are in percent with 95% intervals: of votes by the bootstrap over "
        "items, of items and of each rater by Wilson's formula.",
        _drawing(judgement),
        "## Where raters disagree",
        _disagreements(judgement),
        f"Intervals of votes: `{bootstrap_signature()}`",
    ]
    return _escape_surrogates("\n\n".join(parts) + "\n")


def summarise(judgement: Judgement) -> str:
    """Return the result in three sentences, as Markdown."""
    plan, items, sign, kappa = judgement.plan, judgement.items, judgement.sign, judgement.kappa
    value = f"not defined: {kappa.reason}" if kappa.value is None else f"{kappa.value:.3f}"
    over = f" ({kappa.items} items, {kappa.raters} raters)" if kappa.items else ""
    return (
        f"{plain(plan.a)} wins {items.win.count}, ties {items.tie.count} and loses {items.loss.count} of "
        f"{items.total} judged items against {plain(plan.b)}. Sign test on {sign.wins + sign.losses} items without "
        f"ties: p = {sign.p:.4f}. Fleiss' kappa: {value}{over}."
    )


def _tallies(judgement: Judgement) -> str:
    rows = [
        [name, tally.total, *(_cell(outcome) for outcome in (tally.win, tally.tie, tally.loss))]
        for name, tally in _bars(judgement).items()
    ]
    return table(["counted", "n", "win", "tie", "loss"], rows, "lrrrr")


def _bars(judgement: Judgement) -> dict[str, Tally]:
    """Return the tallies by what they count."""
    raters = {f"rater {seat}": tally for seat, tally in judgement.raters.items()}
    return {"items by majority": judgement.items, "votes": judgement.votes, **raters}


def _cell(outcome: VoteShare) -> str:
    return f"{outcome.count}: {percent(outcome.share)} {_range(outcome.interval)}".rstrip(" -:")


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f"({percent(interval.low)} to {percent(interval.high)})"


def _drawing(judgement: Judgement) -> str:
    """Return where the items come from, and what to know before trusting the numbers."""
    plan, votes = judgement.plan, judgement.votes
    differ = plan.shared - plan.equal
    wanted = judgement.drawn * plan.raters
    decided = votes.win.count + votes.loss.count
    lines = [
        f"- {judgement.drawn} items were drawn with the seed {plan.seed} from the {differ} rows whose rewrites "
        f"differ; on {plan.equal} of {plan.shared} shared rows the systems agree, and nobody was asked.",
        f"- {votes.total} of {wanted} votes are in ({plan.raters} raters).",
        f"- Of {decided} votes without ties, {judgement.first_chosen} went to the rewrite that was shown first.",
    ]
    return "\n".join(lines)


def _disagreements(judgement: Judgement) -> str:
    plan, found = judgement.plan, judgement.disagreements
    if not found:
        return "None: on every item, all votes are the same."
    names = {"a": plan.a, "b": plan.b, "tie": "tie"}
    rows = [
        [
            plain(entry.item.id),
            " / ".join(plain(turn) for turn in (*entry.item.history, entry.item.utterance)),
            plain(entry.item.a),
            plain(entry.item.b),
            ", ".join(f"{seat}: {plain(names[choice])}" for seat, choice in entry.votes.items()),
        ]
        for entry in found
    ]
    header = ["id", "dialogue", plain(plan.a), plain(plan.b), "votes by rater"]
    opposed = sum(entry.opposed for entry in found)
    return f"{len(found)} items; on {opposed} both systems were preferred.\n\n{table(header, rows)}"


def _find_disagreements(items: Sequence[Item], votes: Sequence[Vote]) -> tuple[Disagreement, ...]:
    """Return the items with different votes, those on which both systems were preferred first."""
    by_item: dict[int, dict[int, Choice]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, {})[vote.seat] = vote.choice
    found = [
        Disagreement(items[number], chosen)
        for number, chosen in sorted(by_item.items())
        if len(set(chosen.values())) > 1
    ]
    return tuple(sorted(found, key=lambda entry: not entry.opposed))


def _count_first(store: VoteStore, votes: Sequence[Vote]) -> int:
    shown = {(seat, item.item): item for seat in store.seats() for item in store.study.order(seat)}
    return sum(shown[vote.seat, vote.item].shown_as(vote.choice) == "first" for vote in votes)


def _escape_surrogates(text: str) -> str:
    """Return text that UTF-8 can hold."""
    return re.sub(r"[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)
