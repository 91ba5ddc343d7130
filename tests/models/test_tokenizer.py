"""The backbone's tokenizer: lossless, markers apart from text, a word the same tokens everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

pytest.importorskip("transformers")

from teo.layouts import Marker
from teo.models.tokenizer import EOS, PAD, SPECIAL_TOKENS, train_tokenizer, wrap_tokenizer

LINES = [
    "I think Batman is very handsome.",
    "The poster looks a bit like Ben Affleck, don't you think it's him?",
    "iphonex好不好用，我现在就要买。",
    "为什么天龙八部里段誉的武功最高？",
    "(Batman) 'quoted' \"Batman\" 2019年12月 3.5",
] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    built = train_tokenizer(LINES, size=700, alphabet=150)
    built.encode_special_tokens = True
    return built


def roundtrip(tokenizer: Tokenizer, text: str) -> str:
    return tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It is Ben Affleck who acted as Batman.", "plain English"),
        ("  two  spaces  ", "spaces are kept"),
        ("\ttab\nline", "other white space is kept"),
        ("我爱iphonex好", "mixed scripts"),
        (" 我", "a space before Chinese"),
        ("👨\u200d👩\u200d👧 𠮷", "signs outside the alphabet go by bytes"),
        ("▁⁀ ⁀1 ⁀0 ▁▁", "the tokenizer's own signs are text in a user's text"),
        ("[SEP] [I] <0x41> [PAD]", "markers and byte names are text in a user's text"),
        ("CaSe", "case is kept"),
        ("", "nothing"),
    ],
)
def test_lossless(tokenizer: Tokenizer, text: str, reason: str) -> None:
    assert roundtrip(tokenizer, text) == text, reason


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_survives(text: str) -> None:
    assert roundtrip(shared(), text) == text


@given(st.text(alphabet=" ab我是“(1.▁⁀'é😀\n\u3000X[]SEP", max_size=16))
def test_the_awkward_signs_survive_in_any_order(text: str) -> None:
    assert roundtrip(shared(), text) == text


_SHARED: list[Tokenizer] = []


def shared() -> Tokenizer:
    if not _SHARED:
        _SHARED.append(train_tokenizer(LINES, size=700, alphabet=150))
        _SHARED[0].encode_special_tokens = True
    return _SHARED[0]


def test_a_word_is_the_same_tokens_wherever_it_stands(tokenizer: Tokenizer) -> None:
    word = tokenizer.encode("Batman").ids
    for text in ("I like Batman", "我爱Batman", '"Batman"', "(Batman)", "Batman好", "，Batman"):
        ids = tokenizer.encode(text).ids
        assert any(ids[k : k + len(word)] == word for k in range(len(ids))), text


def test_special_tokens_come_first_and_are_single(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == list(range(len(SPECIAL_TOKENS)))
    tokenizer.encode_special_tokens = False
    assert tokenizer.encode("[I]").ids == [SPECIAL_TOKENS.index(Marker.INSERT)]
    tokenizer.encode_special_tokens = True
    assert len(tokenizer.encode("[I]").ids) > 1


def test_chinese_is_one_token_a_character(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("为什么武功").tokens == list("为什么武功")


def test_transformers_form_knows_its_special_tokens(tokenizer: Tokenizer, tmp_path) -> None:
    from transformers import AutoTokenizer

    wrap_tokenizer(tokenizer).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert (loaded.pad_token, loaded.eos_token, loaded.sep_token) == (PAD, EOS, "[SEP]")
    text = "我爱iphonex, don't you?"
    ids = loaded.encode(text, add_special_tokens=False)
    assert loaded.decode(ids, clean_up_tokenization_spaces=False) == text
