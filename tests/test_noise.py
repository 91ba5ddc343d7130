"""What says nothing in a text: what is read in its place, and where each character stands in the user's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripted import rewriter_of, says
from teo.noise import as_read, read_turn, read_utterance

DUNE = ("Who wrote Dune?", "Frank Herbert.")
NOISY = st.text(alphabet="ab A?!.…~ \n\t\u3000\ufeff😂❤️“”'\"-•好吗", max_size=24)


@pytest.mark.parametrize(
    ("text", "read", "reason"),
    [
        ("Who wrote Dune?", "Who wrote Dune?", "plain"),
        ("a\u00a0b\u3000c\td\u2009e", "a b c d e", "white space"),
        ("a\r\nb", "a \nb", "a line break stays"),
        ("\ufeffa\u200bb\u202e", " a b ", "invisible marks"),
        ("ＡＢｚ１２，！", "ABz12，！", "letters and digits, not marks"),
        ("what’s ‘this’", "what's ‘this’", "an apostrophe, not quotation marks"),
        ("\ud800x", "\ufffdx", "half a character"),
        ("naïve é 周杰倫 《沙丘》", "naïve é 周杰倫 《沙丘》", "accents, Chinese"),
    ],
)
def test_odd_characters_are_read_as_others(text: str, read: str, reason: str) -> None:
    assert as_read(text) == read, reason


@pytest.mark.parametrize(
    ("turn", "read", "reason"),
    [
        ("  It opens  at nine. \n", "It opens at nine.", "white space in runs and at the ends"),
        ("1. Dune \n  2. Emma", "1. Dune\n2. Emma", "a line break stays"),
        ("Sure! 😊 It is 👨\u200d👩\u200d👧 only ❤️", "Sure! It is only", "pictures"),
        ("👍", "👍", "nothing else was said"),
        ("WHO WROTE DUNE?", "who wrote dune?", "capitals throughout"),
        ("NASA and ESA", "NASA and ESA", "capitals of names"),
        ("IBM PC", "IBM PC", "two words may be a name"),
        ("那个 NBA CBA WNBA 的", "那个 NBA CBA WNBA 的", "Chinese has no capitals"),
    ],
)
def test_turns_of_the_history(turn: str, read: str, reason: str) -> None:
    assert read_turn(turn) == read, reason


@pytest.mark.parametrize(
    ("utterance", "read", "reason"),
    [
        ("When was he born?", "When was he born?", "plain"),
        ("When was he born??? 😂", "When was he born?", "a run of marks, a picture"),
        ("When was he born!?", "When was he born?", "it is a question"),
        ("And in Leeds...", "And in Leeds", "it trails off"),
        ("多大了呀～～", "多大了呀", "it trails off"),
        ("那上海呢。。。", "那上海呢", "it trails off"),
        ("Really.", "Really.", "one mark stays"),
        ("At 5 p.m.?", "At 5 p.m?", "a question mark goes before the dot of an abbreviation"),
        ('"When was he born?"', "When was he born?", "quotation marks around all"),
        ('"Dune" by whom?', '"Dune" by whom?', "quotation marks within"),
        ("「他多大了」", "他多大了", "Chinese ones"),
        ("- and in Leeds?", "and in Leeds?", "a dash in front"),
        ("-5 or 5?", "-5 or 5?", "a sign"),
        ("And\nin  Leeds?", "And in Leeds?", "a line break, two spaces"),
        ("AND IN LEEDS?", "and in leeds?", "capitals throughout"),
        ("USA?", "USA?", "one word may be a name"),
        ("I ❤️ it", "I it", "a picture within"),
        ("I❤️it", "I it", "a picture between letters"),
        ("😂", "😂", "nothing else is said"),
    ],
)
def test_utterances(utterance: str, read: str, reason: str) -> None:
    assert read_utterance(utterance)[0] == read, reason


@given(NOISY)
def test_every_character_that_is_read_stands_in_the_utterance(utterance: str) -> None:
    read, places = read_utterance(utterance)
    assert len(read) == len(places)
    assert places == sorted(set(places))
    own = [as_read(utterance[place]).replace("\n", " ") for place in places]
    assert all(a.lower() == b.lower() or (a == " " and b in "😂❤️") for a, b in zip(read, own, strict=True))


@given(st.text())
def test_what_is_read_is_as_long(text: str) -> None:
    assert len(as_read(text)) == len(text)
    assert as_read(as_read(text)) == as_read(text)


@pytest.mark.parametrize(
    ("utterance", "rewrite"),
    [
        ("WHEN WAS HE BORN", "WHEN WAS Frank Herbert BORN"),
        ("  When  was he born??? 😂", "  When  was Frank Herbert born??? 😂"),
        ("“When was he\nborn?”", "“When was Frank Herbert\nborn?”"),
        ("- when was he born...", "- when was Frank Herbert born..."),
        ("Thanks! 😊 When was he born?", "Thanks! 😊 When was Frank Herbert born?"),
    ],
)
def test_noise_stays_in_the_rewrite(utterance: str, rewrite: str) -> None:
    record = rewriter_of(says(_say(utterance))).rewrite(DUNE, utterance)
    assert record.rewrite == rewrite
    assert record.edits.apply(utterance) == rewrite


def _say(utterance: str) -> str:
    """Return what a model says, which reads the utterance without noise."""
    mark = "?" if "?" in utterance else ""
    when = "when" if utterance.startswith(("-", "WHEN")) else "When"
    return f"{when} was Frank Herbert born{mark}"


@given(NOISY, NOISY)
def test_any_rewrite_is_one_of_the_users_own_string(utterance: str, said: str) -> None:
    record = rewriter_of(says(said)).rewrite(DUNE, utterance, min_confidence=0.0)
    assert record.edits.apply(utterance) == record.rewrite
    if not record.changed:
        assert record.rewrite == utterance
