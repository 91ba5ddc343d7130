"""Reading a pretrained decoder from a GGUF file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from teo.errors import InputError, ModelError


def load_gguf(path: Path) -> tuple[dict[str, Tensor], Any, Tokenizer]:
    """Return weights in full precision, configuration and tokenizer of a GGUF file."""
    if not path.is_file():
        raise ModelError(f"{path}: expected a GGUF file, found none; give the path of the pretrained decoder")
    if importlib.util.find_spec("gguf") is None:
        raise InputError("reading a GGUF file needs the library 'gguf', which is not installed: pip install ./lab")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    except Exception as error:  # transformers raises what its parts raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise ModelError(f"{path}: not a decoder that transformers can load ({reason})") from error
    return model.state_dict(), model.config, tokenizer.backend_tokenizer
