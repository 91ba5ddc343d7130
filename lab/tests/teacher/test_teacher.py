"""The teacher: its texts, its sampling against transformers' own, and what is taken of what it samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

from teo.data.row import Row
from teo.dialogue import Dialogue
from teo.errors import DataError, ModelError
from teo_lab.cli.app import app
from teo_lab.rows.dialogues import hand_written_rows
from teo_lab.teacher.answers import cut_at_sentence
from teo_lab.teacher.gguf import load_gguf
from teo_lab.teacher.model import read_fields
from teo_lab.teacher.notation import Notation
from teo_lab.teacher.screen import ScreenLimits, find_flaw
from teo_lab.teacher.streams import SamplingSettings, Streams
from teo_lab.teacher.tune import TuneSettings, collate, tune, weighted_loss

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<file_sep>"]
WORDS = ["written", "Where", "is", "it", "he", "who", "did", "Ben", "act", "and", "why", "not", "?"]
TALK = Dialogue(("Where is Ben ?", "he did act"), "why not ?")


def run(*words: object) -> str:
    """Return what a command of the lab printed; its errors come through."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).stdout


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


@pytest.mark.parametrize("rewrite", ["why did Ben not act ?", "why not ?"], ids=["changed", "unchanged"])
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


@pytest.mark.train
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


@pytest.mark.parametrize(
    ("text", "ended", "cut", "reason"),
    [
        ("It is blue. It scat", True, "It is blue. It scat", "an answer that ended stays whole"),
        ("It is blue. It scat", False, "It is blue.", "an unfinished sentence goes"),
        ("Two things:\n1. Air.\n2.", False, "Two things:\n1. Air.", "a bare number is no sentence"),
        ("It scatters", False, "", "nothing is left"),
    ],
)
def test_answers_end_with_a_sentence(text: str, ended: bool, cut: str, reason: str) -> None:
    assert cut_at_sentence(text, ended) == cut, reason


def test_a_missing_or_wrong_gguf_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a GGUF file, found none"):
        load_gguf(tmp_path / "x.gguf")
    pytest.importorskip("gguf", reason="reading GGUF files needs gguf")
    (tmp_path / "y.gguf").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"y\.gguf: not a decoder that transformers can load"):
        load_gguf(tmp_path / "y.gguf")


@pytest.mark.train
def test_a_teacher_is_tuned_saved_and_asked(
    notation: Notation, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From rows.jsonl to rewrites, through the command; a tiny model stands for the GGUF file, steps for seconds."""

    def tune_by_steps(model: Any, texts: Sequence[Sequence[int]], mark: int, settings: TuneSettings) -> int:
        optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate)
        ids, weights = collate(texts, mark, settings.rewrite_weight)
        for _ in range(60):
            weighted_loss(model, ids, weights).backward()
            optimizer.step()
            optimizer.zero_grad()
        return 60

    torch.set_num_threads(1)
    found = (model.state_dict(), model.config, notation.tokenizer)
    monkeypatch.setattr("teo_lab.teacher.model.load_gguf", lambda path: found)
    monkeypatch.setattr("teo_lab.teacher.model.tune", tune_by_steps)
    row = {"id": "1", "history": list(TALK.history), "utterance": TALK.utterance, "source": "written"}
    rows, teacher, out = tmp_path / "rows.jsonl", tmp_path / "teacher", tmp_path / "out.jsonl"
    rows.write_text(8 * (json.dumps({**row, "rewrite": "why did Ben not act ?"}) + "\n"), encoding="utf-8")
    tuned = run("teacher", "tune", "x.gguf", rows, teacher, "--learning-rate", 0.02)
    assert tuned == f"{teacher}: 60 updates\n"
    assert run("teacher", "rewrite", teacher, rows, out, "--length", 40) == f"{out}: 8 rows\n"
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [each["prediction"] for each in written] == ["why did Ben not act ?"] * 8
    assert all(each["logprob"] < 0 and each["id"] == "1" for each in written)


def test_rows_to_learn_and_openings_are_english(tmp_path: Path) -> None:
    shard, recipe, folder = tmp_path / "shard.jsonl", tmp_path / "rows.toml", tmp_path / "teacher"
    shard.write_text('{"turns": ["Is it open?", "Until six."]}\n', encoding="utf-8")
    recipe.write_text("everyday_en = 5\ncounting_zh = 5\ncounting_en = 3\n", encoding="utf-8")
    printed = run("teacher", "prepare", recipe, folder, "--dialogues", shard)
    rows, openings = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("rows.jsonl", "openings.jsonl")
    )
    assert printed == f"{folder}: 8 rows, {len(openings)} openings\n"
    assert sorted(row["source"] for row in rows) == ["counting"] * 3 + ["everyday"] * 5
    histories = [tuple(opening["history"]) for opening in openings]
    first = hand_written_rows("en")[0].history
    assert histories.count(first) >= 4 and first[:1] in histories
    assert {("Is it open?",), ("Until six.",), ("Is it open?", "Until six.")} & set(histories), "runs of the shard"


def test_a_file_without_the_fields_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: no such file; expected JSON lines with history"):
        read_fields(tmp_path / "none.jsonl", "history")
    file = tmp_path / "a.jsonl"
    file.write_text('{"history": []}\n{"utterance": "Hi."}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected the field history, found none"):
        read_fields(file, "history")
    file.write_text("nonsense\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.jsonl:1: expected a JSON object, found 'nonsense'"):
        read_fields(file, "history")
