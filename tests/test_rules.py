"""Rules that keep an utterance without a model: what they keep, what they leave to it, and a user's own list."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.rules import KeepList, read_keep_file, reason_unchanged


@pytest.mark.parametrize(
    ("history", "utterance", "reason", "why"),
    [
        ([], "what about it", "no-history", "nothing was said"),
        (["", "  \n"], "what about it", "no-history", "only blank turns"),
        ([], "", "empty", "nothing to complete, whatever was said before"),
        (["hi"], " \t\n", "empty", "white space"),
        (["hi"], "😂😂👍🏽", "reaction", "emoji"),
        (["hi"], "?!…", "reaction", "marks"),
        (["hi"], "https://example.org/a?b=c", "code", "a link"),
        (["hi"], "www.example.org me@example.org", "code", "links and addresses"),
        (["hi"], "\ufeffＴｈａｎｋｓ！", "reaction", "full width, behind an invisible mark"),
        (["hi"], "\u3000\u200b", "empty", "nothing that can be seen"),
        (["hi"], "```python\nprint(it)\n```", "code", "a fenced block"),
        (["hi"], "`rm -rf it`", "code", "code in back ticks"),
        (["hi"], "Hello there!", "reaction", "a greeting"),
        (["hi"], "你好～", "reaction", "a Chinese greeting"),
        (["hi"], "早", "reaction", "a greeting that is a word of its own elsewhere"),
        (["hi"], "Thank you very much. Goodbye.", "reaction", "thanks and a good-bye"),
        (["hi"], "don’t mention it", "reaction", "a curly apostrophe"),
        (["hi"], "谢谢，再见！", "reaction", "both in Chinese"),
        (["hi"], "lol", "reaction", "laughter"),
        (["hi"], "LOLOL", "reaction", "more of it"),
        (["hi"], "hahahaha", "reaction", "as long as one likes"),
        (["hi"], "Haaahaaa", "reaction", "drawn out"),
        (["hi"], "mwahaha", "reaction", "of a villain"),
        (["hi"], "哈哈哈哈", "reaction", "Chinese laughter"),
        (["hi"], "呵呵", "reaction", "another"),
        (["hi"], "hmm", "reaction", "hesitation"),
        (["hi"], "Hmmmmm...", "reaction", "a longer one"),
        (["hi"], "嗯嗯", "reaction", "in Chinese"),
        (["hi"], "额……", "reaction", "with an ellipsis"),
        (["hi"], "never mind", "reaction", "a dismissal"),
        (["hi"], "算了", "reaction", "in Chinese"),
        (["hi"], "yes", "reaction", "agreement"),
        (["hi"], "okaaay", "reaction", "letters repeated"),
        (["hi"], "OK 👍", "reaction", "with an emoji"),
        (["hi"], "好的", "reaction", "in Chinese"),
        (["hi"], "对对对", "reaction", "repeated"),
        (["hi"], "是的，没错", "reaction", "twice"),
        (["hi"], "ok啦", "reaction", "two scripts"),
        (["hi"], "haha ok, thanks :D", "reaction", "several, with an emoticon"),
        (["hi"], "好的谢谢", "reaction", "several without a space"),
        (["hi"], "see you tomorrow!", "reaction", "a good-bye"),
        (["hi"], "拜拜", "reaction", "in Chinese"),
    ],
)
def test_kept_without_a_model(history: list[str], utterance: str, reason: str, why: str) -> None:
    assert reason_unchanged(Dialogue(tuple(history), utterance)) == reason, why


@pytest.mark.parametrize(
    ("utterance", "why"),
    [
        ("为什么", "a question"),
        ("hello who is he", "more than a greeting"),
        ("hey it's him", "more than a greeting"),
        ("see https://a.b", "more than a link"),
        ("https://example.org/a这是谁写的", "a question right behind a link"),
        ("他的邮箱是a@example.org吗", "an address within a question"),
        ("3", "a number may be an answer"),
        ("ok 3", "with a number"),
        ("no", "what is denied can be filled in"),
        ("yes please", "what is asked for can be filled in"),
        ("yes he did", "more than agreement"),
        ("可以", "a verb whose object may be missing"),
        ("不错", "said of something"),
        ("好早", "two reactions that together are none"),
        ("好看吗", "a word that begins like one"),
        ("god", "not an emphatic good"),
        ("high", "not hi"),
        ("okra", "not ok"),
        ("是谁", "is who"),
        ("what? lol", "a question with laughter"),
        ("thanks to whom", "not thanks"),
        ("the hague", "not laughter"),
    ],
)
def test_left_to_the_model(utterance: str, why: str) -> None:
    assert reason_unchanged(Dialogue(("hi",), utterance)) is None, why


def test_the_rules_take_no_long_time_to_refuse() -> None:
    started = time.perf_counter()
    for text in (
        *("bye" * 1300 + "x", "bye " * 1000 + "x", "谢谢" * 2000 + "x", "a@" * 2000, "a." * 2000 + "@", "`" * 4000),
        *("://" * 1300, "!" * 4000 + "x", "x" + "!" * 4000 + "x", "ha" * 2000 + "x", "h" * 4000, "o" * 4000 + "x"),
        *("lo" * 2000, ":" + "d" * 4000 + "x", ":d" * 2000, "ok'" * 1300, "ok-" * 1300, "哈" * 4000 + "x"),
    ):
        reason_unchanged(Dialogue(("hi",), text), KeepList.of(["ok", "/^a+b$/"]))
    assert time.perf_counter() - started < 1


KEEP = KeepList.of(["Ticket closed", "  brb ", "/^order \\d+$/", "/ping/", "¯\\_(ツ)_/¯", "/"])


@pytest.mark.parametrize(
    ("utterance", "kept", "why"),
    [
        ("ticket closed", True, "case does not matter"),
        ("  «Ticket closed!» ", True, "marks around it neither"),
        ("BRB", True, "nor white space in the list"),
        ("the ticket closed", False, "the whole utterance"),
        ("ticket  closed", False, "as it is written"),
        ("Order 12", True, "a pattern"),
        ("order 12 please", False, "that is anchored"),
        ("is it pinging", True, "a pattern matches anywhere"),
        ("¯\\_(ツ)_/¯", True, "marks and a letter"),
        ("a / b", False, "a lone slash is no pattern"),
    ],
)
def test_a_users_own_list(utterance: str, kept: bool, why: str) -> None:
    assert (utterance in KEEP) == kept, why
    assert reason_unchanged(Dialogue(("hi",), utterance), KEEP) == ("keep-list" if kept else None), why


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("brb", r"keep: expected a list of words and /patterns/"),
        (None, r"keep: expected a list of words and /patterns/"),
        ([3], r"keep: expected words and /patterns/, found 3"),
        (["  "], r"keep: expected words and /patterns/, found '  '"),
        (["/(/"], r"keep: /\(/ is not a regular expression \(missing \)"),
    ],
)
def test_a_wrong_list_is_named(entries: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        KeepList.of(entries)  # type: ignore[arg-type]


def test_a_file_of_words_to_keep(tmp_path: Path) -> None:
    file = tmp_path / "keep.txt"
    file.write_bytes("\ufeffbrb\r\n\n# comments\n  好滴  \n/^order \\d+$/\n".encode())
    assert read_keep_file(file) == ["brb", "好滴", "/^order \\d+$/"]
    file.write_text("brb\n/(/\n")
    with pytest.raises(InputError, match=r"keep\.txt:2: keep: /\(/ is not a regular expression"):
        read_keep_file(file)
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"keep\.txt: expected text in UTF-8"):
        read_keep_file(file)
    with pytest.raises(InputError, match=r"none: cannot be read: No such file or directory; give a file of words"):
        read_keep_file(tmp_path / "none")
