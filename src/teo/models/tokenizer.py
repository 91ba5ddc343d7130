"""The backbone's tokenizer: lossless, single characters for Chinese, Japanese and Korean, byte-fallback BPE elsewhere.

A word is the same tokens wherever it stands: every alphabetic word carries a leading space, a real one or one that
`⁀` takes back ("我爱iphone" reads as "我爱⁀ iphone"), so that copying it from anywhere to anywhere is copying tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from teo.layouts import BASIC_MARKERS, Marker
from teo.units import CJK

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, EOS, MASK = "[PAD]", "[EOS]", "[MASK]"
SPECIAL_TOKENS = (PAD, EOS, *(marker.value for marker in BASIC_MARKERS), MASK, *(f"[X{k}]" for k in range(8)))
"""Ids 0, 1, 2 ...; the last eight are free for users' own markers."""

_SPACE, _JOINER = "▁", "⁀"
_BEFORE_WORD = rf"(?<=[{CJK}]|[^\s\p{{L}}\p{{N}}\p{{M}}{_JOINER}'’.,:/_&+-])"
"""After these a word has no space of its own and gets one that is taken back; not inside it's, 3.5, a/b, x-ray."""
_LETTERS = rf"[\p{{L}}\p{{M}}&&[^{CJK}]]"
_SIGN = rf"[^\s\p{{L}}\p{{N}}{_SPACE}]"
_WORD = rf"[{CJK}]|'(?:s|t|re|ve|m|ll|d)(?!\p{{L}})|{_SPACE}?{_LETTERS}+|{_SPACE}?\p{{N}}|{_SPACE}?{_SIGN}"


def _normalizer() -> normalizers.Normalizer:
    return normalizers.Sequence(
        [
            normalizers.Replace(_JOINER, f"{_JOINER}0"),  # what we use ourselves is escaped first
            normalizers.Replace(_SPACE, f"{_JOINER}1"),
            normalizers.Replace(Regex(rf"{_BEFORE_WORD}(?=[\p{{L}}\p{{N}}&&[^{CJK}]])"), f"{_JOINER} "),
            normalizers.Replace(Regex(rf"\A(?=[^{CJK}])"), " "),
            normalizers.Replace(" ", _SPACE),
        ]
    )


def _decoder() -> decoders.Decoder:
    return decoders.Sequence(
        [
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Replace(f"{_JOINER}{_SPACE}", ""),
            decoders.Replace(_SPACE, " "),
            decoders.Replace(f"{_JOINER}1", _SPACE),
            decoders.Replace(f"{_JOINER}0", _JOINER),
            decoders.Strip(" ", 1, 0),
        ]
    )


def train_tokenizer(texts: Iterable[str] | Iterator[str], size: int = 16_384, alphabet: int = 7_200) -> Tokenizer:
    """Return a tokenizer of `size` entries learned from texts; characters beyond the alphabet become bytes."""
    learner = Tokenizer(models.BPE())
    learner.normalizer = _normalizer()
    learner.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), "isolated")
    room = size - len(SPECIAL_TOKENS) - 256
    ascii_signs = [chr(code) for code in range(33, 127)]
    learner.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=room,
            limit_alphabet=alphabet,
            initial_alphabet=[*ascii_signs, _SPACE, _JOINER],
            show_progress=False,
        ),
    )
    return assemble_tokenizer(learner)


def assemble_tokenizer(learner: Tokenizer) -> Tokenizer:
    """Return the final tokenizer: special tokens first, then the 256 bytes, then what was learned."""
    import json

    learned = json.loads(learner.to_str())["model"]
    names = [*SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256))]
    names += sorted(learned["vocab"], key=learned["vocab"].__getitem__)
    merges = [tuple(pair) for pair in learned["merges"]]
    tokenizer = Tokenizer(models.BPE({name: k for k, name in enumerate(names)}, merges, byte_fallback=True))
    tokenizer.normalizer = _normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), "isolated")
    tokenizer.decoder = _decoder()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS])
    return tokenizer


def wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Return the tokenizer in transformers' form, for AutoTokenizer and the trainer."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        cls_token=Marker.CLS.value,
        sep_token=Marker.SEP.value,
        mask_token=MASK,
        additional_special_tokens=[
            token for token in SPECIAL_TOKENS if token not in {PAD, EOS, MASK, Marker.CLS, Marker.SEP}
        ],
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )
