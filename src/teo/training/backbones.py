"""The model that training starts from: any seq2seq model of a hub or a folder, or a small one made from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from teo.errors import ModelError
from teo.layouts import PLAIN, Layout
from teo.loading import DEFAULT_MODEL
from teo.models.configuration import TeoConfig
from teo.models.storage import BASE, BYTES, find_base, load_bytes
from teo.runtime.torch_codec import Codec, first_line, load_tokenizer, register_backbone
from teo.runtime.torch_reading import find_graphs, read_exported
from teo.training.config import RandomModel

EMBEDDED = "teo-default"
"""The name of the embedded model as a model to start from."""


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """The layout that a configuration names, which may depend on the model's family."""

    version: Literal[0, 1, 2] = 0
    """0: 1 for our own backbone, which was pretrained on it, else 2."""
    speakers: bool = False

    def of_model(self, config: Any) -> Layout:
        """Return the layout for a model."""
        own = getattr(config, "model_type", "") == TeoConfig.model_type
        return Layout(self.version or (1 if own else 2), self.speakers)


PLAIN_CHOICE = LayoutChoice(PLAIN.version)


def load_base(name: str, layout: LayoutChoice = PLAIN_CHOICE) -> tuple[Any, Codec]:
    """Return a model and its codec from a folder or a hub, with the markers of its layout among its tokens."""
    import transformers

    register_backbone()
    if name in (BASE, EMBEDDED):
        name = str(find_base() if name == BASE else DEFAULT_MODEL)
    path = Path(name)
    if (graphs := find_graphs(path)) is not None:
        exported = read_exported(graphs)
        return exported, make_ready(exported, _exported_tokenizer(path), layout.of_model(exported.config))
    if path.is_dir() and not (path / "config.json").is_file():
        raise ModelError(f"{path}: expected a model folder, found no config.json in it; give the folder of one model")
    tokenizer = load_tokenizer(name)
    if (path / BYTES).is_file():
        stored = load_bytes(path)
        return stored, make_ready(stored, tokenizer, layout.of_model(stored.config))
    try:
        # Full precision whatever the file's: fine-tuning in 16-bit weights loses small updates.
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(name), dtype=torch.float32)
    except Exception as error:  # transformers raises what its parts raise: OSError, ValueError, KeyError, ImportError
        raise ModelError(
            f"{name}: expected a sequence-to-sequence model such as BART, T5 or Marian ({first_line(error)})"
        ) from error
    return model, make_ready(model, tokenizer, layout.of_model(model.config))


def _exported_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of an exported model of our own, which lies in one file."""
    from tokenizers import Tokenizer

    from teo.models.tokenizer import wrap_tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ModelError(f"{folder}: expected tokenizer.json beside the graphs, found none; export the model again")
    return wrap_tokenizer(Tokenizer.from_file(str(file)))


def make_ready(model: Any, tokenizer: Any, layout: Layout = PLAIN) -> Codec:
    """Return the codec of a model, with embeddings for every token and generation set to plain greedy."""
    import transformers

    codec = Codec(tokenizer, model.config, layout)
    if len(codec) > model.get_input_embeddings().weight.shape[0]:
        try:
            model.resize_token_embeddings(len(codec))
        except Exception as error:
            raise ModelError(
                f"{type(model).__name__}: its embeddings cannot take the {codec.added} markers ({first_line(error)})"
            ) from error
    model.config.use_cache = True
    # A checkpoint's own settings (beams, forced tokens, no repeated n-grams) would forbid copying what is repeated.
    model.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=codec.decoder_start()[0], eos_token_id=codec.eos_id, pad_token_id=codec.pad_id
    )
    return codec


def build_random(settings: RandomModel, texts: Iterable[str], seed: int = 0) -> tuple[Any, Codec]:
    """Return a small model with random weights and a tokenizer learned from texts."""
    import transformers

    transformers.set_seed(seed)
    texts = list(texts)
    if settings.family == "teo":
        model, tokenizer = _random_teo(settings, texts)
    elif settings.family == "t5":
        tokenizer = _unigram_tokenizer(texts, settings.vocabulary)
        model = _random_t5(settings, len(tokenizer))
    else:
        tokenizer = _bpe_tokenizer(texts, settings.vocabulary)
        model = _random_bart(settings, tokenizer)
    return model, make_ready(model, tokenizer)


def _random_bart(settings: RandomModel, tokenizer: Any) -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=len(tokenizer),
            d_model=settings.width,
            encoder_layers=settings.layers,
            decoder_layers=settings.layers,
            encoder_attention_heads=settings.heads,
            decoder_attention_heads=settings.heads,
            encoder_ffn_dim=4 * settings.width,
            decoder_ffn_dim=4 * settings.width,
            dropout=settings.dropout,
            max_position_embeddings=256,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.eos_token_id,
            init_std=settings.width**-0.5,  # BART's own 0.02 is for 768 wide: a narrow model would not start to learn
            forced_eos_token_id=None,
        )
    )


def _random_t5(settings: RandomModel, vocabulary: int) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=vocabulary,
            d_model=settings.width,
            d_kv=settings.width // settings.heads,
            d_ff=4 * settings.width,
            num_layers=settings.layers,
            num_heads=settings.heads,
            dropout_rate=settings.dropout,
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
        )
    )


def _random_teo(settings: RandomModel, texts: Sequence[str]) -> tuple[Any, Any]:
    from teo.models import TeoConfig, TeoForConditionalGeneration
    from teo.models.tokenizer import train_tokenizer, wrap_tokenizer

    tokenizer = wrap_tokenizer(train_tokenizer(texts, size=max(settings.vocabulary, 512), alphabet=200))
    config = TeoConfig(
        vocab_size=len(tokenizer),
        d_model=settings.width,
        encoder_layers=settings.layers,
        decoder_layers=settings.layers,
        heads=settings.heads,
        d_ff=4 * settings.width,
        dropout=settings.dropout,
    )
    return TeoForConditionalGeneration(config), tokenizer


def _bpe_tokenizer(texts: Sequence[str], size: int) -> Any:
    """Return a byte-level BPE tokenizer with BART's special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    # The codec starts every piece with a space: so do the texts that the merges are learned from.
    tokenizer.train_from_iterator(
        (f" {text}" for text in texts),
        trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )


def _unigram_tokenizer(texts: Sequence[str], size: int) -> Any:
    """Return a Unigram tokenizer with T5's special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        texts,
        trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
