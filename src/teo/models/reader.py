"""A BERT-like encoder that reads beside the backbone's own layers, or in their place.

Its words are given new numbers: entry k of its embedding becomes what its vocabulary makes of the backbone's token k,
so that both read the same ids. What it says is added to the encoder's states.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from teo.errors import ModelError
from teo.layouts import Marker
from teo.models.tokenizer import EOS, MASK, PAD, SPECIAL_TOKENS

VOCABULARY = "vocab.txt"
_SAME = {PAD: "[PAD]", EOS: "[SEP]", MASK: "[MASK]", Marker.BLANK: "[MASK]", Marker.CLS: "[CLS]", Marker.SEP: "[SEP]"}
_UNKNOWN = "[UNK]"


class Reader(nn.Module):
    """The encoder and the map from its width to the backbone's."""

    def __init__(self, settings: dict[str, Any], width: int) -> None:
        super().__init__()
        settings = dict(settings)
        config = AutoConfig.for_model(settings.pop("model_type"), **settings)
        options = {"add_pooling_layer": False} if config.model_type in {"bert", "roberta"} else {}
        self.model = AutoModel.from_config(config, **options)
        self.projection = nn.Linear(config.hidden_size, width)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return what it says of each token, in the backbone's width."""
        # Places and types are given: a model that was loaded piece by piece may not have made its own.
        places = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
        mask = None if attention_mask is None else attention_mask.long()
        read = self.model(
            input_ids=input_ids, attention_mask=mask, position_ids=places, token_type_ids=torch.zeros_like(input_ids)
        )
        said: Tensor = self.projection(read.last_hidden_state)
        return said


def load_reader(folder: Path, tokenizer: Tokenizer) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the settings and weights of the encoder in a folder, its words numbered as the tokenizer numbers them."""
    if not (folder / VOCABULARY).is_file() or not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder}: expected a BERT-like encoder with config.json and {VOCABULARY}, found no such files; "
            "save the model and its vocabulary there"
        )
    try:
        model = AutoModel.from_pretrained(folder, dtype=torch.float32)
    except Exception as error:  # transformers raises what its parts raise
        raise ModelError(f"{folder}: not an encoder that transformers can load ({error})") from error
    vocabulary = {word: k for k, word in enumerate((folder / VOCABULARY).read_text(encoding="utf-8").splitlines())}
    missing = [word for word in (*_SAME.values(), _UNKNOWN) if word not in vocabulary]
    if missing:
        raise ModelError(f"{folder / VOCABULARY}: expected BERT's special words, found no {missing[0]}")
    size = tokenizer.get_vocab_size()
    words = model.get_input_embeddings().weight.detach()
    rows = [words[pieces(str(tokenizer.id_to_token(k)), vocabulary)].mean(0) for k in range(size)]
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("pooler.")}
    (name,) = (name for name, value in weights.items() if value.data_ptr() == words.data_ptr())
    weights[name] = torch.stack(rows)
    settings = model.config.to_diff_dict()
    settings.update(model_type=model.config.model_type, vocab_size=size, pad_token_id=SPECIAL_TOKENS.index(PAD))
    for unwanted in ("architectures", "transformers_version", "dtype", "_name_or_path"):
        settings.pop(unwanted, None)
    return settings, weights


def pieces(token: str, vocabulary: dict[str, int]) -> list[int]:
    """Return the word pieces of a token of ours, the longest first from the left; unknown where it has none."""
    if token in _SAME:
        return [vocabulary[_SAME[token]]]
    bare = token.lstrip("▁").lower()
    found: list[int] = []
    at = 0
    while at < len(bare):
        inside = at > 0 or not token.startswith("▁")
        for end in range(len(bare), at, -1):
            part = bare[at:end]
            entry = vocabulary.get(f"##{part}" if inside and part.isascii() and part.isalpha() else part)
            if entry is not None:
                found.append(entry)
                at = end
                break
        else:
            return [vocabulary[_UNKNOWN]]
    return found or [vocabulary[_UNKNOWN]]
