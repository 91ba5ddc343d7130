"""The one renderer of Markdown tables."""

from __future__ import annotations

import pytest

from teo.evaluation.markdown import percent, plain, table


def test_a_table_has_a_header_a_rule_and_a_line_for_each_row() -> None:
    expected = "| name | EM |\n| --- | ---: |\n| **a** | 1 |\n| b | 2.5 |"
    assert table(("name", "EM"), [("**a**", 1), ["b", 2.5]], align="lr") == expected
    assert table(("name", "EM"), []) == "| name | EM |\n| --- | --- |"


@pytest.mark.parametrize(("rows", "align"), [([("a",)], ""), ([("a", "b", "c")], ""), ([], "l")])
def test_a_row_or_an_alignment_of_another_width_is_refused(rows: list[tuple[str, ...]], align: str) -> None:
    with pytest.raises(ValueError, match="expected 2 cells as in the header"):
        table(("name", "EM"), rows, align)


@pytest.mark.parametrize(
    ("value", "shown", "reason"),
    [
        ("a_b|c*", r"a\_b\|c\*", "signs of Markdown"),
        ("two\n lines", "two lines", "a line end would end the row"),
        (3, "3", "a number"),
    ],
)
def test_plain_text_is_shown_as_it_is(value: object, shown: str, reason: str) -> None:
    assert plain(value) == shown, reason


def test_percent() -> None:
    assert [percent(value) for value in (None, 0, 0.6404, 1)] == ["-", "0.0", "64.0", "100.0"]
