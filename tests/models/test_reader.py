"""A BERT-like encoder beside the backbone's layers: same ids, nothing disturbed at first, saved and loaded whole."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer  # noqa: E402

from teo.errors import ModelError  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.backbone import add_reader  # noqa: E402
from teo.models.reader import load_reader, pieces  # noqa: E402
from teo.models.tokenizer import SPECIAL_TOKENS, train_tokenizer  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "苹", "果", "play", "##ing", "##s", "apple", "."]
VOCABULARY = {word: number for number, word in enumerate(WORDS)}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["苹果好吃吗", "playing apples.", "I play."] * 8, size=460, alphabet=140)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("bert")
    settings = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(WORDS), **settings)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return folder


def backbone(tokenizer: Tokenizer, layers: int = 2) -> TeoForConditionalGeneration:
    torch.manual_seed(1)
    size = {"d_model": 32, "encoder_layers": layers, "decoder_layers": 1, "heads": 4, "d_ff": 48}
    return TeoForConditionalGeneration(TeoConfig(vocab_size=tokenizer.get_vocab_size(), **size)).eval()


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("苹", ["苹"]),
        ("▁Playing", ["play", "##ing"]),
        ("ing", ["##ing"]),
        (".", ["."]),
        ("▁quay", ["[UNK]"]),
        ("[M]", ["[MASK]"]),
        ("[EOS]", ["[SEP]"]),
        ("▁", ["[UNK]"]),
    ],
)
def test_a_token_is_made_of_word_pieces(token: str, expected: list[str]) -> None:
    assert pieces(token, VOCABULARY) == [VOCABULARY[word] for word in expected]


def test_words_get_the_backbones_numbers(bert: Path, tokenizer: Tokenizer) -> None:
    settings, weights = load_reader(bert, tokenizer)
    before = transformers.BertModel.from_pretrained(bert).embeddings.word_embeddings.weight
    after = weights["embeddings.word_embeddings.weight"]
    assert settings["vocab_size"] == len(after) == tokenizer.get_vocab_size()
    assert torch.equal(after[tokenizer.token_to_id("果")], before[VOCABULARY["果"]])
    assert torch.equal(after[SPECIAL_TOKENS.index("[SEP]")], before[VOCABULARY["[SEP]"]])


def test_layers_that_can_read_are_not_disturbed(bert: Path, tokenizer: Tokenizer) -> None:
    plain = backbone(tokenizer)
    joined = add_reader(plain, bert, tokenizer).eval()
    ids = torch.tensor([tokenizer.encode("苹果好吃吗").ids])
    given = {"input_ids": ids, "decoder_input_ids": torch.tensor([[2, 3]])}
    assert torch.equal(plain(**given).logits, joined(**given).logits)


def test_without_own_layers_the_reader_is_heard_and_saved(bert: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    plain = backbone(tokenizer, layers=0)
    joined = add_reader(plain, bert, tokenizer).eval()
    ids = torch.tensor([tokenizer.encode("苹果好吃吗").ids, tokenizer.encode("果果好吃吗").ids])
    given = {"input_ids": ids, "decoder_input_ids": torch.tensor([[2, 3]] * 2)}
    said = joined(**given).encoder_last_hidden_state
    assert not torch.allclose(plain(**given).encoder_last_hidden_state, said, atol=1e-2)
    joined.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert torch.allclose(loaded(**given).encoder_last_hidden_state, said, atol=1e-5)


def test_what_is_no_reader_is_said(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"expected a BERT-like encoder with config.json and vocab.txt"):
        load_reader(tmp_path, tokenizer)
