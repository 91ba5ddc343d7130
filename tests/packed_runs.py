"""A tiny backbone of our own, and a recipe that trains it packed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from teo.models import TeoConfig, TeoForConditionalGeneration
from teo.models.storage import save_bytes
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer
from teo.training.config import TrainConfig, read_config

RECIPE = """
output = "OUT"
roles = ["fused", "direct", "fast"]
shared = true
device = "cpu"
[model]
base = "BASE"
source_limit = 64
target_limit = 40
dropout = 0.0
[[data]]
name = "synthetic"
rows = 256
dev_rows = 16
[perturbation]
prob_p = 0.3
[optimisation]
epochs = 2
batch_size = 32
learning_rate = 3e-3
warmup = 0.1
[evaluation]
every = 0
[writing]
log_every = 4
plots = false
"""


def tiny_base(folder: Path, texts: Sequence[str]) -> Path:
    """Return the folder of a backbone with the tokenizer of these texts, saved in 8 bits."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # The alphabet has room for all of ASCII: which of equally rare signs would be left out is random.
    tokenizer = train_tokenizer([*texts] * 4, size=450, alphabet=150)
    wrap_tokenizer(tokenizer).save_pretrained(folder)
    config = TeoConfig(
        vocab_size=tokenizer.get_vocab_size(), d_model=32, encoder_layers=2, decoder_layers=1, heads=4, d_ff=64
    )
    save_bytes(TeoForConditionalGeneration(config), folder, folder / "bytes")
    return folder / "bytes"


def recipe(folder: Path, base: Path, *overrides: str) -> TrainConfig:
    """Return a run of the recipe, which lies in the folder as packed.toml."""
    file = folder / "packed.toml"
    file.write_text(RECIPE.replace("OUT", str(folder / "model")).replace("BASE", str(base)))
    return read_config(file, overrides)
