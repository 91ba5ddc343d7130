"""Pieces to ids and back, for a tokenizer of every family, built in memory."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from family_models import build_family
from teo.errors import ModelError
from teo.layouts import Layout, Marker
from teo.runtime.torch_codec import THEN, Codec, load_tokenizer

torch.set_num_threads(1)

TEXTS = [
    "he likes tea </s> [SEP] [I] <pad> \\ < > / s I S E P",
    "it is ben affleck who acted as batman, isn't it? 3.5 good-bye",
    "我喜欢天龙八部里的段誉",
    "abcdefghijklmnopqrstuvwxyz 0123456789",
] * 5
FAMILIES = ("bart", "bart-zh", "t5", "teo")


def codec_of(family: str, texts: Sequence[str]) -> Codec:
    return build_family(family, Path(), texts, width=8, layers=1, heads=1)[1]


@pytest.fixture(scope="module", params=FAMILIES)
def codec(request: pytest.FixtureRequest) -> Codec:
    return codec_of(request.param, TEXTS)


@pytest.fixture(scope="module")
def bart() -> Codec:
    return codec_of("bart", TEXTS)


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ((Marker.INSERT, "as batman"), "an insertion"),
        ((Marker.DELETE, "he", Marker.REPLACE, "ben affleck"), "a replacement"),
        ((Marker.DELETE, "he", Marker.REPLACE), "a pure deletion: nothing after [R]"),
        ((Marker.PLACE, "who", Marker.INSERT, "天龙八部"), "the executable template, in Chinese"),
        ((Marker.INSERT, "tea", Marker.SEP, "he likes tea"), "a fused decoder: [SEP] must not end the text"),
        ((), "nothing to do"),
    ],
)
def test_what_a_decoder_is_to_write_is_read_back_as_it_was(codec: Codec, pieces: tuple[str, ...], reason: str) -> None:
    ids = codec.encode_target(pieces)
    assert ids[-1] == codec.eos_id, "the end token is part of the target"
    assert codec.eos_id not in ids[:-1], "nothing before the end may end the text"
    assert codec.decode(ids) == pieces, reason


@pytest.mark.parametrize("literal", ["[SEP]", "[I]", "</s>", "<pad>", "[CLS]", "<s>", "[E]", THEN, "a[D]b", "</s></s>"])
def test_text_that_spells_a_marker_stays_text(codec: Codec, literal: str) -> None:
    special = set(codec.tokenizer.all_special_ids) | {
        number for number, token in codec.tokenizer.added_tokens_decoder.items() if token.special
    }
    special.discard(codec.tokenizer.unk_token_id)
    ids = codec.encode_text(f"he says {literal} to me")
    assert not special.intersection(ids), f"{literal} became a token of the model's"
    assert all(not isinstance(piece, Marker) for piece in codec.decode([*ids, codec.eos_id]))


def test_text_with_literal_markers_survives_where_the_tokenizer_is_lossless(bart: Codec) -> None:
    text = "he says [SEP] </s> [I] <pad>"
    assert bart.decode(bart.encode_target((Marker.INSERT, text))) == (Marker.INSERT, text)


def test_a_word_has_the_same_ids_wherever_it_stands(codec: Codec) -> None:
    alone, inside = codec.encode_text("tea"), codec.encode_text("he likes tea")
    assert inside[-len(alone) :] == alone, "copying a word from a turn into an operation must be copying ids"


def test_half_an_emoji_is_the_replacement_character(codec: Codec) -> None:
    assert codec.encode_text("good \ud83d tea") == codec.encode_text("good \ufffd tea")


def test_a_turns_measure_counts_its_separator(codec: Codec) -> None:
    source = codec.encode(("he likes tea", Marker.SEP))
    assert codec.measure("he likes tea") == len(source)


@pytest.mark.parametrize(
    ("family", "start", "reason"),
    [
        ("bart", ["</s>", "<s>"], "BART was pretrained to write <s> after its start"),
        ("bart-zh", ["[SEP]", "[CLS]"], "the same with BERT's tokenizer"),
        ("t5", ["<pad>"], "T5 starts with its padding"),
        ("teo", ["[CLS]"], "our own backbone"),
    ],
)
def test_what_a_decoders_text_starts_with(family: str, start: list[str], reason: str) -> None:
    codec = codec_of(family, TEXTS)
    ids = codec.decoder_start((Marker.WRITE_REWRITE,))
    assert codec.tokenizer.convert_ids_to_tokens(ids) == [*start, "[Y]"], reason


def test_t5_has_no_cls_and_it_is_left_out() -> None:
    codec = codec_of("t5", TEXTS)
    assert codec.encode((Marker.CLS, "tea", Marker.SEP)) == [*codec.encode_text("tea"), codec.eos_id]


def test_bert_tokenizers_give_no_token_types_and_bart_sources_its_own_separator() -> None:
    codec = codec_of("bart-zh", TEXTS)
    ids = codec.encode((Marker.CLS, "段誉", Marker.SEP))
    assert codec.tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "段", "誉", "[SEP]"]
    assert "token_type_ids" not in codec.tokenizer.model_input_names


@pytest.mark.parametrize(
    ("text", "decoded", "reason"),
    [
        ("我喜欢天龙八部", "我喜欢天龙八部", "no spaces between Chinese characters"),
        ("我喜欢batman吗", "我喜欢batman吗", "none around a Latin word inside Chinese"),
        ("ben affleck acted", "ben affleck acted", "spaces between Latin words are kept"),
        ("it's 3.5, isn't it?", "it's 3.5, isn't it?", "no spaces inside clitics and numbers, none before signs"),
        ("good-bye", "good-bye", "nor around hyphens"),
    ],
)
def test_word_pieces_are_joined_as_a_writer_would(text: str, decoded: str, reason: str) -> None:
    codec = codec_of("bart-zh", [*TEXTS, text])
    assert codec.decode(codec.encode_target((text,))) == (decoded,), reason


def test_padding_and_start_tokens_are_not_text(bart: Codec) -> None:
    ids = [0, *bart.encode_target(("tea",)), bart.pad_id, bart.pad_id]
    assert bart.decode(ids) == ("tea",)


def test_markers_are_added_once(bart: Codec) -> None:
    again = Codec(bart.tokenizer, SimpleNamespace(eos_token_id=bart.eos_id, model_type="bart"))
    assert bart.added > 0
    assert again.added == 0
    assert len(again) == len(bart)


def test_a_codec_goes_to_another_process(codec: Codec) -> None:
    copy = pickle.loads(pickle.dumps(codec))
    assert copy.encode(("tea",)) == codec.encode(("tea",))


def test_a_saved_codec_gives_the_same_ids(codec: Codec, tmp_path: Path) -> None:
    codec.tokenizer.save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.encode("tea", add_special_tokens=False) == codec.tokenizer.encode("tea", add_special_tokens=False)
    assert loaded.convert_tokens_to_ids("[P]") == codec.tokenizer.convert_tokens_to_ids("[P]")


def test_a_folder_without_a_tokenizer_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        ModelError, match=r"expected a tokenizer beside the model, found none of tokenizer\.json"
    ) as error:
        load_tokenizer(tmp_path)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_tokenizer_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("not json")
    with pytest.raises(ModelError, match="the tokenizer cannot be loaded") as error:
        load_tokenizer(tmp_path)
    assert "\n" not in str(error.value)


def test_a_model_without_an_end_token_is_one_clear_line() -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    with pytest.raises(ModelError, match="expected token ids for its start, end and padding"):
        Codec(tokenizer, SimpleNamespace())


def test_a_joiner_that_joins_nothing_is_left_out() -> None:
    codec = codec_of("teo", TEXTS)
    joiner = codec.tokenizer.convert_tokens_to_ids("⁀")
    word, chinese = list(codec.encode_text("batman")), list(codec.encode_text("段誉"))
    end = [codec.eos_id]
    assert codec.decode([*chinese, joiner, *word, *end]) == ("段誉batman",), "it takes back the space of the word"
    assert codec.decode([*chinese, joiner, *end]) == ("段誉",), "a decoder that stops behind it"
    assert codec.decode([*chinese, joiner, *chinese, *end]) == ("段誉段誉",), "nothing to take back"
    assert codec.decode([*codec.encode_text("a⁀"), *end]) == ("a⁀",), "a user's own sign stays"


def test_the_border_has_a_token_of_its_own_only_where_the_layout_has_it(bart: Codec) -> None:
    before = len(bart)
    assert bart.encode((Marker.TURN,)) == [], "a model of the first layout has no such token"
    tokenizer = codec_of("bart", TEXTS).tokenizer
    codec = Codec(tokenizer, SimpleNamespace(eos_token_id=bart.eos_id, model_type="bart"), Layout(2, speakers=True))
    assert len(codec) == before + 3
    (turn,), (border,) = codec.encode((Marker.TURN,)), codec.encode((Marker.SEP,))
    assert turn != border
    again = Codec(tokenizer, SimpleNamespace(eos_token_id=bart.eos_id, model_type="bart"))
    assert again.encode((Marker.TURN, Marker.USER)) == codec.encode((Marker.TURN, Marker.USER)), "as it was saved"
