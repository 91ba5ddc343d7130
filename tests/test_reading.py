"""What a model reads of a dialogue, and how its rewrites come back: edits of the user's own string."""

from __future__ import annotations

import pytest

from scripted import ScriptedGenerator, rewriter_of, says
from teo.dialogue import Dialogue
from teo.layouts import Marker
from teo.reading import Reading
from teo.runtime.generator import Generated

DUNE = ("Who wrote Dune?", "Frank Herbert.")
SINGER = ("誰唱的青花瓷", "周杰倫唱的")


@pytest.mark.parametrize(
    ("history", "utterance", "said", "rewrite", "reason"),
    [
        (DUNE, "When was he born?", "When was Frank Herbert born?", "When was Frank Herbert born?", "as it is"),
        (
            DUNE,
            "Thanks.  When was he born, please?",
            "When was Frank Herbert born",
            "Thanks.  When was Frank Herbert born, please?",
            "polite words stay as they were typed",
        ),
        (SINGER, "他還唱過什麼歌", "周杰伦还唱过什么歌", "周杰倫還唱過什麼歌", "in kind"),
        (SINGER, "請問他還唱過什麼歌，謝謝", "周杰伦还唱过什么歌", "請問周杰倫還唱過什麼歌，謝謝", "both"),
        (SINGER, "他还唱过什么歌", "周杰伦还唱过什么歌", "周杰倫还唱过什么歌", "the user's own characters stay"),
        (
            DUNE,
            "\u3000 When\u00a0was he born? \r\n",
            "When was Frank Herbert born?",
            "\u3000 When\u00a0was Frank Herbert born? \r\n",
            "white space stays as it was typed",
        ),
        (
            SINGER,
            "\ufeffＯＫ，他还唱过什么歌",
            "周杰伦还唱过什么歌",
            "\ufeffＯＫ，周杰倫还唱过什么歌",
            "invisible, full width",
        ),
        (DUNE, "\ud800 When was he born?", "� When was Frank Herbert born?", "\ud800 When was Frank Herbert born?", ""),
    ],
)
def test_a_rewrite_is_one_of_the_users_own_string(
    history: tuple[str, ...], utterance: str, said: str, rewrite: str, reason: str
) -> None:
    record = rewriter_of(says(said)).rewrite(history, utterance)
    assert record.rewrite == rewrite, reason
    assert record.edits.apply(utterance) == rewrite
    assert record.prediction is not None
    assert record.prediction.edits.moved_to(utterance).apply(utterance) == rewrite


def test_the_model_reads_neither_polite_words_nor_traditional_characters() -> None:
    generator = says("x")
    rewriter_of(generator).rewrite(SINGER, "請問他還唱過什麼歌")
    assert generator.sources == [
        (Marker.CLS, "谁唱的青花瓷", Marker.SEP, "周杰伦唱的", Marker.SEP, "他还唱过什么歌", Marker.SEP)
    ]


def test_the_model_reads_no_odd_white_space() -> None:
    generator = says("x")
    rewriter_of(generator).rewrite(["\u3000\u3000故宫\u00a0几点开门\n", "１. 八点\n２. 九点\n"], "\u200b几点关门 ")
    assert generator.sources == [
        (Marker.CLS, "故宫 几点开门", Marker.SEP, "1. 八点\n2. 九点", Marker.SEP, "几点关门", Marker.SEP)
    ]


def test_a_rewrite_that_the_model_could_not_spell_is_not_taken() -> None:
    generator = ScriptedGenerator(
        lambda _source, _prompt: ("When was \ufffd\ufffd born?",),
        several=[Generated(("When was \ufffd born?",), (-0.1,)), Generated(("When was Frank born?",), (-0.5,))],
    )
    record = rewriter_of(generator).rewrite(DUNE, "When was he born?", min_confidence=0.0)
    assert (record.changed, record.reason, record.confidence) == (False, "unsure", 0.0)
    record = rewriter_of(generator).rewrite(DUNE, "When was he born?", n_best=3, min_confidence=0.0)
    assert [each.rewrite for each in record.alternatives] == ["When was Frank born?", "When was he born?"]
    own = rewriter_of(says("Who is \ufffd?")).rewrite(["\ufffd sings."], "Who is he?", min_confidence=0.0)
    assert own.rewrite == "Who is \ufffd?", "the dialogue has it"


def test_operations_come_back_in_kind() -> None:
    pieces = (Marker.DELETE, "他", Marker.REPLACE, "周杰伦", Marker.SEP, "周杰伦还唱过什么歌")
    record = rewriter_of(says(*pieces), variant="fused").rewrite(SINGER, "好的，他還唱過什麼歌")
    assert record.operations == "[D] 他 [R] 周杰倫"
    assert record.edits.to_dicts() == [{"op": "replace", "start": 3, "end": 4, "old": "他", "new": "周杰倫"}]


def test_alternatives_come_back_too() -> None:
    generator = ScriptedGenerator(
        lambda _source, _prompt: ("When was Frank Herbert born?",),
        several=[Generated(("When was Dune born?",), (-0.5,)), Generated(("When was he born?",), (-0.7,))],
    )
    record = rewriter_of(generator).rewrite(DUNE, "Thanks. When was he born?", n_best=3)
    assert {each.rewrite for each in record.alternatives} == {
        "Thanks. When was Frank Herbert born?",
        "Thanks. When was Dune born?",
        "Thanks. When was he born?",
    }
    for each in record.alternatives:
        assert each.edits.apply("Thanks. When was he born?") == each.rewrite
    assert generator.scored[0][1] == ("When was he born?",), "unchanged: what the model reads stays as it is"


def test_a_reaction_in_traditional_characters_needs_no_model() -> None:
    generator = says("x")
    record = rewriter_of(generator).rewrite(SINGER, "謝謝")
    assert (record.rewrite, record.reason) == ("謝謝", "reaction")
    assert generator.sources == []


def test_an_utterance_that_the_model_leaves_alone_is_unchanged_byte_for_byte() -> None:
    utterance = "OK,  請問幾點關門 ，謝謝"
    record = rewriter_of(says("几点关门")).rewrite(SINGER, utterance)
    assert (record.rewrite, record.changed, record.reason) == (utterance, False, "complete")


def test_a_plain_dialogue_is_read_as_it_is() -> None:
    dialogue = Dialogue(DUNE, "When was he born?", ("user", "assistant", "user"))
    assert Reading.of(dialogue).dialogue == dialogue
