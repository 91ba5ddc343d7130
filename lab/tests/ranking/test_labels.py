"""Which drawn rewrites count as right, as wrong, and as neither."""

from __future__ import annotations

import pytest

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo_lab.ranking.labels import label

FILM = Row(
    "en", Dialogue(("Who directed Jaws?", "Steven Spielberg did."), "How old is he?"), "How old is Steven Spielberg?"
)
BOOK = Row("zh", Dialogue(("《边城》是谁写的", "沈从文"), "它讲了什么"), "《边城》讲了什么")
THANKS = Row("kept", Dialogue(("Who directed Jaws?", "Steven Spielberg did."), "Thanks a lot!"), "Thanks a lot!")


@pytest.mark.parametrize(
    ("row", "text", "verdict"),
    [
        (FILM, "How old is Steven Spielberg?", True),
        (FILM, "how old is steven spielberg", True),
        (FILM, "And how old is Steven Spielberg?", True),
        (FILM, "How old is Jaws?", False),
        (FILM, "How old is he?", False),
        (FILM, "How old is Spielberg?", None),
        (FILM, "Steven how Spielberg old?", None),
        (BOOK, "《边城》讲了什么？", True),
        (BOOK, "边城讲了什么呢", True),
        (BOOK, "沈从文讲了什么", False),
        (THANKS, "Thanks a lot", True),
        (THANKS, "Thanks a lot, Steven!", False),
    ],
)
def test_a_rewrite_is_right_if_it_restores_what_the_reference_restores(
    row: Row, text: str, verdict: bool | None
) -> None:
    assert label(row, text) is verdict
