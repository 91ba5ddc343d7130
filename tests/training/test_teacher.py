"""The teacher: its texts, its sampling against transformers' own, and what is taken of what it samples."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import ModelError
from teo.training.teacher.notation import Notation
from teo.training.teacher.screen import ScreenLimits, find_flaw
from teo.training.teacher.streams import SamplingSettings, Streams
from teo.training.teacher.tune import TuneSettings, collate, tune

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<file_sep>"]
WORDS = ["written", "Where", "is", "it", "he", "who", "did", "Ben", "act", "and", "why", "not", "?"]
TALK = Dialogue(("Where is Ben ?", "he did act"), "why not ?")


@pytest.fixture
def notation() -> Notation:
    """Return the notation of a tokenizer with one id a word."""
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate([*MARKS, *WORDS])}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return Notation(tokenizer)


@pytest.fixture
def model() -> Any:
    """Return a tiny Llama with grouped heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        **{"vocab_size": len(MARKS) + len(WORDS), "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2},
        **{"num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": True, "initializer_range": 0.5},
    )
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("rewrite", ["why did Ben not act ?", "why not ?"], ids=["changed", "kept"])
def test_text_comes_back_as_row(notation: Notation, rewrite: str) -> None:
    ids = notation.write("written", Row("1", TALK, rewrite))
    assert notation.read(ids) == (TALK, rewrite)
    assert (ids[-2] == notation.marks.rewrite) == (rewrite == TALK.utterance)


def test_broken_texts_are_no_rows(notation: Notation) -> None:
    marks, whole = notation.marks, notation.write("written", Row("1", TALK, "why did Ben not act ?"))
    broken = {
        "no end": whole[:-1],
        "no rewrite": [each for each in whole if each != marks.rewrite],
        "two rewrites": [*whole[:-1], marks.rewrite, marks.end],
        "a turn in the rewrite": [*whole[:-1], marks.turn, marks.end],
        "an empty turn": [*notation.begin("written", ["Where ?"]), marks.turn, *whole[-8:]],
        "no history": [*notation.begin("written"), *notation.ask("written", TALK)[-3:], marks.end],
    }
    assert {name: notation.read(ids) for name, ids in broken.items()} == dict.fromkeys(broken)


def test_tokenizer_without_marks_is_refused() -> None:
    with pytest.raises(ModelError, match=r"expected a tokenizer with <\|im_end\|> or <0x01>, found neither"):
        Notation(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))


def test_a_tokenizer_like_llamas_marks_with_bytes_that_no_text_has() -> None:
    words = ["<s>", "</s>", "<0x01>", "<0x02>", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    notation = Notation(tokenizer)
    ids = notation.write("written", Row("1", TALK, "why did Ben not act ?"))
    assert [tokenizer.id_to_token(each) for each in ids if each < 4] == ["<s>", *["<0x01>"] * 3, "<0x02>", "</s>"]
    assert notation.read(ids) == (TALK, "why did Ben not act ?")


def test_streams_continue_as_transformers_does(notation: Notation, model: Any) -> None:
    """Every prompt ends with the mark of the rewrite, after which the likeliest token is taken."""
    turns = [
        ["Where is it ?"],
        ["he did"],
        ["Ben", "act and act", "why"],
        ["it is he who did act"],
        ["not he ?", "who"],
    ]
    prompts = [notation.ask("written", Dialogue(tuple(each), "why not ?")) for each in turns]
    length = 40
    settings = SamplingSettings(columns=2, length=length)
    found = {each.prompt: each for each in Streams(model, notation.marks, prompts, settings, "cpu").run(chunk=7)}
    for number, prompt in enumerate(prompts):
        ids = torch.tensor([prompt])
        logs = []
        while ids[0, -1] != notation.marks.end and ids.shape[1] < length:
            with torch.no_grad():
                logits = model(input_ids=ids).logits[0, -1]
            logits[notation.marks.start] = -torch.inf
            chances = logits.log_softmax(-1)
            logs.append(float(chances.max()))
            ids = torch.cat([ids, chances.argmax()[None, None]], dim=1)
        if ids[0, -1] != notation.marks.end:
            assert number not in found, "a text that runs into the limit is dropped"
            continue
        assert found[number].ids == ids[0].tolist()
        assert found[number].logprob == pytest.approx(sum(logs), abs=1e-3)
        assert found[number].lowest == pytest.approx(min(logs), abs=1e-3)
    assert found, "the seed must give at least one text that ends"


def test_every_prompt_has_its_turn(notation: Notation, model: Any) -> None:
    prompts = [notation.begin("written", ["Where is Ben ?"]) for _ in range(11)]
    settings = SamplingSettings(columns=3, length=24, temperature=2.0, min_p=0.0001)
    texts = list(Streams(model, notation.marks, prompts, settings, "cpu").run(chunk=5))
    assert len({text.prompt for text in texts}) == len(texts) <= 11
    assert all(text.ids[: len(prompts[0])] == prompts[0] and text.ids[-1] == notation.marks.end for text in texts)


def test_tuning_learns_a_row_and_weighs_its_rewrite(notation: Notation, model: Any) -> None:
    text = notation.write("written", Row("1", TALK, "why did Ben not act ?"))
    ids, weights = collate([text, text[:-2] + text[-1:]], notation.marks.rewrite, 2.0)
    cut = text.index(notation.marks.rewrite)
    assert weights[0].tolist() == [0.0] + [1.0] * cut + [2.0] * (len(text) - cut - 1)
    assert weights[1, -1] == 0 and ids.shape == weights.shape
    updates = tune(model, [text] * 8, notation.marks.rewrite, TuneSettings(seconds=3, learning_rate=0.01, warmup=0.1))
    assert updates > 5
    prompt = notation.ask("written", TALK)
    settings = SamplingSettings(columns=1, length=40)
    (learned,) = Streams(model.eval(), notation.marks, [prompt], settings, "cpu").run(chunk=8)
    assert notation.read(learned.ids) == (TALK, "why did Ben not act ?")


HISTORY = ("I left my keys at the Harbour Café.", "Oh no, is it far?")


@pytest.mark.parametrize(
    ("utterance", "rewrite", "logprob", "lowest", "flaw"),
    [
        ("When does it close?", "When does the Harbour Café close?", -0.3, -0.2, None),
        ("Where?", "Where did you leave your keys?", -0.3, -0.2, None),
        ("When does it close?", "When does the Harbour Café close?", -0.9, -0.2, "unsure"),
        ("When does it close?", "When does the Harbour Café close?", -0.6, -0.55, "unsure"),
        ("I see.", "I see.", -0.05, -0.05, None),
        ("I see.", "I see.", -0.2, -0.2, "unsure"),
        ("When does it close?", "when does it close", -0.1, -0.1, "only marks or case"),
        ("When does it close?", "When does the museum close?", -0.1, -0.1, "word from nowhere"),
        ("Is it?", "Oh no, is it far?", -0.1, -0.1, "copy of a turn"),
        ("It is so so so so so so so far.", "The café is far.", -0.1, -0.1, "repeats itself"),
        ("?", "Is the Harbour Café far?", -0.1, -0.1, "empty"),
        ("It? " + "no it " * 2, "It " + " ".join(f"far{n}" for n in range(30)), -0.1, -0.1, "too long"),
        (" ".join(f"far{n}" for n in range(40)), "Far.", -0.1, -0.1, "long utterance"),
    ],
)
def test_screen(utterance: str, rewrite: str, logprob: float, lowest: float, flaw: str | None) -> None:
    assert find_flaw(Dialogue(HISTORY, utterance), rewrite, logprob, lowest, ScreenLimits()) == flaw
