"""Tiny models of every family, made from scratch: BART with either tokenizer, T5 of both kinds, Marian, our own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from teo.runtime.torch_codec import Codec
from teo.training.backbones import build_random, make_ready
from teo.training.config import RandomModel


def build_family(family: str, folder: Path, texts: Sequence[str], **sizes: int) -> tuple[Any, Codec]:
    """Return a tiny model of a family and its codec; `folder` is for the files of Marian's tokenizer."""
    settings = {"width": 16, "layers": 1, "heads": 2, **sizes}
    if family == "marian":
        return build_marian(folder, texts, **settings)
    if family == "t5-gated":
        return build_gated_t5(texts, **settings)
    if family == "bart-zh":
        return build_chinese_bart(texts, **settings)
    return build_random(RandomModel(family=family, **settings), texts)  # type: ignore[arg-type]


def build_marian(folder: Path, texts: Sequence[str], *, width: int, layers: int, heads: int) -> tuple[Any, Codec]:
    """Return a tiny Marian model whose two SentencePiece models are learned from texts."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer, set_seed

    folder.mkdir(parents=True)
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.Train(
        input=str(folder / "texts.txt"),
        model_prefix=str(folder / "spm"),
        vocab_size=120,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,  # with more, the order of sums and so the pieces differ from run to run
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    pieces = [model.id_to_piece(k) for k in range(model.get_piece_size())]
    words = ["</s>", "<unk>", *(piece for piece in pieces if piece not in {"<s>", "</s>", "<unk>"}), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: k for k, word in enumerate(words)}), encoding="utf-8")
    spm = str(folder / "spm.model")
    tokenizer = MarianTokenizer(source_spm=spm, target_spm=spm, vocab=str(folder / "vocab.json"))
    config = MarianConfig(
        vocab_size=len(words),
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=128,
        pad_token_id=len(words) - 1,
        eos_token_id=0,
        decoder_start_token_id=len(words) - 1,
        forced_eos_token_id=None,
    )
    set_seed(3)
    network = MarianMTModel(config)
    return network, make_ready(network, tokenizer)


def build_gated_t5(texts: Sequence[str], *, width: int, layers: int, heads: int) -> tuple[Any, Codec]:
    """Return a tiny model of T5's later kind (mT5): gated, with an output projection of its own."""
    from transformers import MT5Config, MT5ForConditionalGeneration

    _, plain = build_random(RandomModel(family="t5", width=16, layers=1, heads=2), texts)
    config = MT5Config(
        vocab_size=len(plain),
        d_model=width,
        d_kv=12,
        d_ff=2 * width,
        num_layers=layers,
        num_heads=heads,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        initializer_factor=0.1,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    network = MT5ForConditionalGeneration(config)
    return network, make_ready(network, plain.tokenizer)


def build_chinese_bart(texts: Sequence[str], *, width: int, layers: int, heads: int) -> tuple[Any, Codec]:
    """Return a tiny BART with BERT's tokenizer, as the Chinese BART models have."""
    from transformers import BartConfig, BartForConditionalGeneration, set_seed

    set_seed(0)
    tokenizer = wordpiece_tokenizer(texts)
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        dropout=0.0,
        max_position_embeddings=256,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        decoder_start_token_id=tokenizer.sep_token_id,
        init_std=width**-0.5,
        forced_eos_token_id=None,
    )
    network = BartForConditionalGeneration(config)
    return network, make_ready(network, tokenizer)


def wordpiece_tokenizer(texts: Sequence[str]) -> Any:
    """Return BERT's kind of tokenizer: characters for Chinese, word pieces elsewhere, no token types."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = {word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))}
    letters = sorted({letter for word in words for letter in word})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    entries = [*special, *letters, *(f"##{letter}" for letter in letters), *sorted(words - set(letters))]
    tokenizer = Tokenizer(models.WordPiece({entry: k for k, entry in enumerate(entries)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoders.WordPiece()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "attention_mask"],
    )
