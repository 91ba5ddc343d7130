"""The systems that ours is measured against, in transformers with float32 weights; they need torch."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from race import Work, measure_process
from teo.errors import MissingExtraError
from teo.layouts import Marker

try:
    import torch
    from transformers import BartConfig, BartForConditionalGeneration
except ModuleNotFoundError as missing:
    raise MissingExtraError("measuring against transformers", str(missing.name), "train") from missing

BART_VOCABULARY = 21_128


class TwoPassBart:
    """Two passes of a BART-base-shaped model, as the paper's system makes them; weights are random, lengths true."""

    def __init__(self, threads: int) -> None:
        torch.manual_seed(0)
        self.threads = threads
        self.name = f"two-pass BART-base, transformers fp32, {_threads(threads)}"
        self.model = make_bart()

    def do(self, rows: Sequence[Work]) -> None:
        """Generate operations, then encode them too and generate the rewrite."""
        torch.set_num_threads(self.threads)
        sources = [row.source for row in rows]
        generate(self.model, sources, max(row.operations for row in rows))
        longer = [(*row.source, *row.source[: row.operations]) for row in rows]
        generate(self.model, longer, max(row.rewrite for row in rows))


class OursInTorch:
    """Our own trained model in torch: operations and rewrite in one text, which it generates itself."""

    def __init__(self, weights: Path, threads: int) -> None:
        from teo.runtime.torch_generator import TorchGenerator

        self.generator, self.threads = TorchGenerator.from_pretrained(weights, device="cpu"), threads
        self.name = f"teo, torch fp32, {_threads(threads)}"

    def do(self, rows: Sequence[Work]) -> None:
        """Generate operations and rewrite."""
        torch.set_num_threads(self.threads)
        prompts = [(Marker.WRITE_OPERATIONS,)] * len(rows)
        self.generator.generate([row.pieces for row in rows], prompts=prompts)


def make_bart() -> Any:
    """Return a random model of BART-base's shape with the vocabulary of the Chinese one."""
    return BartForConditionalGeneration(BartConfig(**bart_settings())).eval()


def bart_settings() -> dict[str, Any]:
    """Return BART-base's sizes: 6 + 6 layers, 768 wide."""
    settings: dict[str, Any] = {"vocab_size": BART_VOCABULARY, "d_model": 768, "max_position_embeddings": 1024}
    for side in ("encoder", "decoder"):
        settings |= {f"{side}_layers": 6, f"{side}_attention_heads": 12, f"{side}_ffn_dim": 3072}
    return settings


def generate(model: Any, sources: Sequence[Sequence[int]], length: int) -> None:
    """Encode these sources as one batch and generate `length` tokens for each."""
    width = max(map(len, sources))
    ids = torch.tensor([[*source, *[0] * (width - len(source))] for source in sources])
    mask = torch.tensor([[1] * len(source) + [0] * (width - len(source)) for source in sources])
    with torch.no_grad():
        model.generate(
            ids,
            attention_mask=mask,
            min_new_tokens=length,
            max_new_tokens=length,
            do_sample=False,
            num_beams=1,
        )


_FIRST_PASSES = """
import sys
import torch
from transformers import BartForConditionalGeneration
torch.set_num_threads(int(sys.argv[2]))
stages = [BartForConditionalGeneration.from_pretrained(sys.argv[1]).eval() for _ in range(2)]
ids = torch.arange(10, 40)[None]
with torch.no_grad():
    for stage in stages:
        stage.generate(ids, min_new_tokens=10, max_new_tokens=10, do_sample=False)
"""


def measure_bart_start(threads: int = 1) -> dict[str, Any]:
    """Return the cold start and the memory of the two stages in transformers, loaded from disk."""
    with tempfile.TemporaryDirectory() as folder:
        make_bart().save_pretrained(folder)
        return measure_process("two-pass BART-base, transformers fp32", _FIRST_PASSES, folder, str(threads))


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"
