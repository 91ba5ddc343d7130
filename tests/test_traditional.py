"""Traditional characters: read as Simplified ones in their place, written back as the dialogue writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teo.dialogue import Dialogue
from teo.traditional import read_simplified, write_in_kind

SINGER = Dialogue(("誰唱的青花瓷", "周杰倫唱的"), "他還唱過什麼歌")


@pytest.mark.parametrize(
    ("text", "read", "reason"),
    [
        ("誰寫了這本書", "谁写了这本书", "every character of Traditional text alone"),
        ("髮型、發現", "发型、发现", "two characters that are one in Simplified text"),
        ("關於他後來的著作", "关于他后来的着作", "those that both have are read too beside a certain one"),
        ("著名作家于今年乾杯", "著名作家于今年乾杯", "but not without one"),
        ("什么时候", "什么时候", "Simplified text"),
        ("Who wrote Dune?", "Who wrote Dune?", "no Chinese at all"),
        ("東京タワーへ行く", "东京タワーへ行く", "Japanese is read so as well, and written back by copying"),
        ("\ud800學", "\ud800学", "a lone surrogate stays"),
    ],
)
def test_what_is_read(text: str, read: str, reason: str) -> None:
    assert read_simplified(Dialogue((), text)).utterance == read, reason
    assert read_simplified(Dialogue((text,), "")).history == (read,), reason


def test_one_certain_character_makes_the_whole_dialogue_traditional() -> None:
    assert read_simplified(Dialogue(("乾杯", "後天"), "學")) == Dialogue(("干杯", "后天"), "学")


def test_a_dialogue_without_them_is_the_same_object_and_speakers_stay() -> None:
    simplified = Dialogue(("谁唱的",), "他呢")
    assert read_simplified(simplified) is simplified
    spoken = Dialogue(("誰",), "他", ("assistant", "user"))
    assert read_simplified(spoken) == Dialogue(("谁",), "他", ("assistant", "user"))


@pytest.mark.parametrize(
    ("text", "written", "reason"),
    [
        ("周杰伦还唱过什么歌", "周杰倫還唱過什麼歌", "copied from the dialogue"),
        ("周杰伦的发型", "周杰倫的發型", "a character that the dialogue does not have, as it is usual"),
        ("周杰伦只唱过", "周杰倫只唱過", "one that Traditional text has as it is"),
        ("Jay 唱过 3 首", "Jay 唱過 3 首", "other scripts"),
        ("", "", "nothing"),
    ],
)
def test_what_is_written(text: str, written: str, reason: str) -> None:
    assert write_in_kind(text, SINGER) == written, reason


def test_the_dialogue_decides_between_forms() -> None:
    assert write_in_kind("里面", Dialogue(("箱子裡面",), "")) == "裡面", "Taiwan"
    assert write_in_kind("里面", Dialogue(("箱子裏面",), "")) == "裏面", "Hong Kong"
    assert write_in_kind("干杯", Dialogue(("不要乾杯",), "")) == "乾杯", (
        "as the dialogue has it, whatever else it may be"
    )


@given(st.lists(st.text(alphabet="乾干後后學学誰谁 a,著着\n", max_size=12), min_size=1, max_size=4))
def test_what_a_dialogue_has_comes_back_as_it_was(turns: list[str]) -> None:
    dialogue = Dialogue(tuple(turns[:-1]), turns[-1])
    read = read_simplified(dialogue)
    assert [len(turn) for turn in read.history] == [len(turn) for turn in dialogue.history]
    assert len(read.utterance) == len(dialogue.utterance)
    assert read_simplified(read) == read, "Simplified text is left alone"
    written = write_in_kind(read.utterance, dialogue)
    assert written.translate(str.maketrans("乾後學誰著", "干后学谁着")) == dialogue.utterance.translate(
        str.maketrans("乾後學誰著", "干后学谁着")
    )


def test_a_long_text_takes_no_time() -> None:
    words = "".join(chr(0x4E00 + number) for number in range(3000))
    assert len(write_in_kind(words, Dialogue((words[::-1], words * 3), "學"))) == 3000
