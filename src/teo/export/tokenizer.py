"""The tokenizer of an exported model: a file that the light library reads, and how it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from teo.errors import ModelError
from teo.files import write_json
from teo.runtime.onnx_codec import CODING
from teo.runtime.onnx_files import to_stored
from teo.runtime.torch_codec import Codec

_UNIGRAM = 1
_NORMAL, _UNKNOWN = 1, 2
_ABSENT = "\ue000"
"""Before pieces that no text may become, a character that no text has after SentencePiece's normalisation."""


def write_tokenizer(codec: Codec, out: Path, source: Path) -> None:
    """Write `tokenizer.json` and `codec.json` of a model of another family; raises if they cannot hold its tokenizer.

    `source` is the folder that the tokenizer came from, for messages.
    """
    tokenizer, coding = codec.tokenizer, to_stored(codec.coding)
    if getattr(tokenizer, "is_fast", False):
        converted = tokenizer.backend_tokenizer
    elif hasattr(tokenizer, "spm_source") and not tokenizer.separate_vocabs:
        converted = _convert_sentencepiece(tokenizer.spm_source, source)
        names = {number: token for token, number in tokenizer.get_vocab().items()}
        coding |= {"pieces": [names.get(k, "") for k in range(len(tokenizer))], "unknown": tokenizer.unk_token_id}
    else:
        raise ModelError(
            f"{source}: expected a tokenizer with a tokenizer.json or Marian's with one vocabulary, found "
            f"{type(tokenizer).__name__}; run the model with runtime='torch'"
        )
    converted.save(str(out / "tokenizer.json"))
    write_json(out / CODING, coding)


def _convert_sentencepiece(processor: Any, source: Path) -> Tokenizer:
    """Return a SentencePiece model in the format of `tokenizers`: a Unigram model with the same normalisation."""
    from sentencepiece import sentencepiece_model_pb2

    stored = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    stored.ParseFromString(processor.serialized_model_proto())
    kinds = {piece.type for piece in stored.pieces if not piece.piece.startswith("<")}
    if stored.trainer_spec.model_type != _UNIGRAM or stored.trainer_spec.byte_fallback or kinds != {_NORMAL}:
        raise ModelError(
            f"{source}: expected SentencePiece's Unigram model without bytes and pieces of a user's own, found another "
            "kind; run the model with runtime='torch'"
        )
    pieces = [
        (piece.piece if piece.type in (_NORMAL, _UNKNOWN) else _ABSENT + piece.piece, piece.score)
        for piece in stored.pieces
    ]
    unknown = next(k for k, piece in enumerate(stored.pieces) if piece.type == _UNKNOWN)
    tokenizer = Tokenizer(models.Unigram(pieces, unknown, byte_fallback=False))
    rules = stored.normalizer_spec
    steps: list[normalizers.Normalizer] = []
    if rules.precompiled_charsmap:
        steps.append(normalizers.Precompiled(rules.precompiled_charsmap))
    if rules.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    prepend = "always" if rules.add_dummy_prefix else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend, split=False)
    return tokenizer
