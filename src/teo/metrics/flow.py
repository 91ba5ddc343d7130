"""Stage flow: how stage 2 rewrites given right and wrong editing operations (paper, table "EM, E2C and C2E").

E2C is the share of wrong operations whose rewrite is right, C2E the share of right operations whose rewrite is wrong.
With e the share of right operations, the final EM must be e (1 - C2E) + (1 - e) E2C; the paper's table breaks this
identity as printed, so published triples can be checked with `final_em_from_rates`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from teo.errors import InputError


@dataclass(frozen=True, slots=True)
class StageFlow:
    """The four cells: operations right or wrong, rewrite right or wrong."""

    right_right: int
    right_wrong: int
    wrong_right: int
    wrong_wrong: int

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.right_right + self.right_wrong + self.wrong_right + self.wrong_wrong

    @property
    def stage1_em(self) -> float | None:
        """The share of rows whose operations are right; None without rows."""
        return _share(self.right_right + self.right_wrong, self.n)

    @property
    def final_em(self) -> float | None:
        """The share of rows whose rewrite is right; None without rows."""
        return _share(self.right_right + self.wrong_right, self.n)

    @property
    def e2c(self) -> float | None:
        """Error to correct: of the rows with wrong operations, the share rewritten right; None without such rows."""
        return _share(self.wrong_right, self.wrong_right + self.wrong_wrong)

    @property
    def c2e(self) -> float | None:
        """Correct to error: of the rows with right operations, the share rewritten wrong; None without such rows."""
        return _share(self.right_wrong, self.right_right + self.right_wrong)

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the cells and the rates as a report stores them."""
        return {
            "n": self.n,
            "right_right": self.right_right,
            "right_wrong": self.right_wrong,
            "wrong_right": self.wrong_right,
            "wrong_wrong": self.wrong_wrong,
            "stage1_em": self.stage1_em,
            "e2c": self.e2c,
            "c2e": self.c2e,
            "final_em": self.final_em,
        }

    def __str__(self) -> str:
        rates = (("stage 1 EM", self.stage1_em), ("E2C", self.e2c), ("C2E", self.c2e), ("final EM", self.final_em))
        return "  ".join(f"{name} {'-' if value is None else f'{value:.4f}'}" for name, value in rates)


def stage_flow(ops_right: Iterable[bool], rewrite_right: Iterable[bool]) -> StageFlow:
    """Return the flow between the stages, from two truth values per row."""
    operations, rewrites = [bool(right) for right in ops_right], [bool(right) for right in rewrite_right]
    if len(operations) != len(rewrites):
        raise InputError(
            f"stage flow: expected one value per row for both stages, "
            f"found {len(operations)} for the operations and {len(rewrites)} for the rewrites"
        )
    cells = Counter(zip(operations, rewrites, strict=True))
    return StageFlow(cells[True, True], cells[True, False], cells[False, True], cells[False, False])


def final_em_from_rates(stage1_em: float, e2c: float, c2e: float) -> float:
    """Return the final EM that these rates allow: e (1 - C2E) + (1 - e) E2C."""
    for name, value in (("stage1_em", stage1_em), ("e2c", e2c), ("c2e", c2e)):
        if not 0.0 <= value <= 1.0:
            raise InputError(f"{name}: expected a fraction from 0 to 1, found {value}; divide percentages by 100")
    return stage1_em * (1.0 - c2e) + (1.0 - stage1_em) * e2c


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
