"""TorchGenerator: any sequence-to-sequence model that transformers loads, behind the stages' protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from teo.errors import InputError, ModelError
from teo.layouts import Pieces
from teo.models import TeoForConditionalGeneration
from teo.models.backbone import IGNORED
from teo.runtime.drafts import Marks, batch_drafts
from teo.runtime.generator import Generated, decoder_starts, measure_bounded, text_limit
from teo.runtime.search import Text, search_beams, search_greedily
from teo.runtime.torch_codec import Codec, first_line, load_tokenizer, register_backbone
from teo.runtime.torch_steps import TorchSteps

KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Without cuDNN's, which makes a new plan for every length: a text that grows by a token a step never has the same."""
_DRAFTED_ROWS = 8
"""Rows of a batch up to which drafts pay without a GPU: beyond, a pass takes as long as its padded tokens."""
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


class TorchGenerator:
    """A model and its codec: pieces in, pieces out, in batches of like length; the order of the rows is kept."""

    def __init__(
        self,
        model: Any,
        codec: Codec,
        *,
        device: str = "cpu",
        source_limit: int = 256,
        batch_size: int = 32,
        max_new_tokens: int = 256,
    ) -> None:
        from transformers import GenerationConfig

        self.model = model.to(device).eval()
        self.codec = codec
        self.device = torch.device(device)
        self.batch_size = batch_size
        self.source_limit = source_limit
        """How many tokens a source may have."""
        self._positions = learned_positions(model.config)
        self.max_new_tokens = max_new_tokens
        self.drafts = True
        """Whether greedy search of our own backbone checks drafts from the source: the same texts in fewer passes."""
        self._marks = Marks(codec)
        self._search = GenerationConfig(
            do_sample=False,
            num_beams=1,
            eos_token_id=codec.eos_id,
            pad_token_id=codec.pad_id,
            decoder_start_token_id=codec.decoder_start()[0],
        )

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        *,
        device: str = "auto",
        bf16: bool = False,
        source_limit: int = 256,
        batch_size: int = 32,
        max_new_tokens: int = 256,
    ) -> TorchGenerator:
        """Return the generator of a saved model; `bf16` halves precision and the weights' memory, on CUDA only."""
        chosen = choose_device(device)
        if bf16 and not chosen.startswith("cuda"):
            raise InputError(f"bfloat16: expected a CUDA device, found '{chosen}'; leave it out")
        model = load_model(folder, torch.bfloat16 if bf16 else torch.float32)
        codec = Codec(load_tokenizer(folder), model.config)
        rows = int(model.get_input_embeddings().weight.shape[0])
        if rows < len(codec):
            raise ModelError(
                f"{folder}: expected embeddings for the tokenizer's {len(codec)} tokens, found {rows}; "
                "train the model with this package, which adds the markers, or save its tokenizer again"
            )
        return cls(
            model,
            codec,
            device=chosen,
            source_limit=source_limit,
            batch_size=batch_size,
            max_new_tokens=max_new_tokens,
        )

    def measure(self, text: str) -> int:
        """Return how many tokens a turn takes, its separator included; of one that never fits, more than do."""
        return measure_bounded(self.codec.measure, text, self.source_limit)

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        """Return the most probable text by greedy or beam search for each source, in order, with token scores."""
        return [texts[0] for texts in self._search_texts(sources, prompts, beams, per_token=True)]

    def generate_several(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, count: int
    ) -> list[list[Generated]]:
        """Return at most `count` texts for each source, the most probable first, by beam search of that width."""
        several = self._search_texts(sources, prompts, count, per_token=False)
        return [sorted(texts, key=lambda text: -text.score) for texts in several]

    def _search_texts(
        self, sources: Sequence[Pieces], prompts: Sequence[Pieces] | None, beams: int, *, per_token: bool
    ) -> list[list[Generated]]:
        """Return each source's texts: the best by score per token, or as many as there are beams."""
        encoded = self._encode_sources(sources)
        starts = decoder_starts(self.codec.decoder_start, prompts, len(sources))
        results: dict[int, list[Text]] = {}
        # A batch has starts of one length: transformers' own search would need padding on their left.
        order = sorted(range(len(encoded)), key=lambda k: (len(starts[k]), len(encoded[k])), reverse=True)
        for batch in self._batches(order, [len(start) for start in starts], max(1, self.batch_size // beams)):
            read, mask = self._read([encoded[k] for k in batch])
            start = [starts[k] for k in batch]
            room = self.max_new_tokens
            if self._positions:
                room = max(1, min(room, self._positions - len(start[0])))
            limits = [text_limit(len(encoded[k]), room) for k in batch]
            with sdpa_kernel(KERNELS):
                if isinstance(self.model, TeoForConditionalGeneration):
                    rows = [(sources[k], prompts[k] if prompts else ()) for k in batch]
                    texts = self._search_own(read, mask, rows, start, limits, beams, per_token)
                else:
                    given = torch.tensor(start, device=self.device)
                    texts = self._generate(read, mask, given, limits, beams, 1 if per_token else beams)
            results.update(zip(batch, texts, strict=True))
        decode = self.codec.decode
        return [[Generated(decode(text.ids), tuple(text.scores)) for text in results[k]] for k in range(len(sources))]

    @torch.no_grad()
    def _search_own(
        self,
        read: Any,
        mask: Tensor,
        rows: Sequence[tuple[Pieces, Pieces]],
        starts: Sequence[Sequence[int]],
        limits: Sequence[int],
        beams: int,
        per_token: bool,
    ) -> list[list[Text]]:
        """Return the texts of each source and prompt by our own search; greedy search checks drafts if they pay."""
        steps, end = TorchSteps(self.model, read, mask), self.codec.eos_id
        if beams > 1:
            return search_beams(steps, starts, limits, end, beams, per_token=per_token)
        pays = self.device.type != "cpu" or len(rows) <= _DRAFTED_ROWS
        drafts = batch_drafts(self.codec, self._marks, rows) if self.drafts and pays else None
        return [[text] for text in search_greedily(steps, starts, limits, end, drafts, checked=steps.checked)]

    def _generate(
        self, read: Any, mask: Tensor, start: Tensor, limits: Sequence[int], beams: int, count: int
    ) -> list[list[Text]]:
        """Return `count` texts of each source by transformers' own search, with the log-probabilities of their ids."""
        with self._own_search():
            written = self.model.generate(
                encoder_outputs=_select(read, None),
                attention_mask=mask,
                decoder_input_ids=start,
                num_beams=beams,
                num_return_sequences=count,
                max_new_tokens=max(limits),
            )
        owners = [row for row in range(len(limits)) for _ in range(count)]
        texts = [
            _until_end(ids[: limits[row]], self.codec.eos_id)
            for row, ids in zip(owners, written[:, start.shape[1] :].tolist(), strict=True)
        ]
        rows = torch.tensor(owners, device=self.device)
        scores = self._token_scores(_select(read, rows), mask[rows], start[rows].tolist(), texts)
        found = [Text(*text) for text in zip(texts, scores, strict=True)]
        return [found[first : first + count] for first in range(0, len(found), count)]

    def score(
        self, sources: Sequence[Pieces], targets: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None
    ) -> list[float]:
        """Return the log-probability of each target given its source, its end token included."""
        if len(sources) != len(targets):
            raise InputError(f"score: expected a target per source, found {len(sources)} and {len(targets)}")
        encoded = self._encode_sources(sources)
        written = [self.codec.encode_target(target) for target in targets]
        starts = decoder_starts(self.codec.decoder_start, prompts, len(sources))
        results = [0.0] * len(encoded)
        # Rows of the same source stand together: it is read once for all of its targets.
        order = sorted(range(len(encoded)), key=lambda k: (len(encoded[k]), encoded[k], len(written[k])), reverse=True)
        for batch in self._batches(order, [0] * len(order), self.batch_size):
            unique = {encoded[k]: None for k in batch}
            numbers = {ids: number for number, ids in enumerate(unique)}
            read, mask = self._read(list(unique))
            rows = torch.tensor([numbers[encoded[k]] for k in batch], device=self.device)
            texts = [written[k] for k in batch]
            scores = self._token_scores(_select(read, rows), mask[rows], [starts[k] for k in batch], texts)
            for k, token_scores in zip(batch, scores, strict=True):
                results[k] = sum(token_scores)
        return results

    @contextmanager
    def _own_search(self) -> Iterator[None]:
        """Let the model search by our settings alone, and give it back its own.

        A checkpoint's settings (forced tokens, a least length, sampling) would change what greedy means, and passing
        ours beside them would leave in force what ours do not name.
        """
        stored, self.model.generation_config = self.model.generation_config, self._search
        try:
            yield
        finally:
            self.model.generation_config = stored

    def _encode_sources(self, sources: Sequence[Pieces]) -> list[tuple[int, ...]]:
        encoded = [tuple(self.codec.encode(source)) for source in sources]
        longest = max((len(ids) for ids in encoded), default=0)
        if self._positions and longest > self._positions:
            raise InputError(
                f"source: expected at most {self._positions} tokens, which is all that the model has positions for, "
                f"found {longest}; shorten the utterance"
            )
        return encoded

    def _batches(self, order: Sequence[int], groups: Sequence[int], rows: int) -> Iterator[list[int]]:
        """Yield the numbers of the rows of each batch, in the order given; rows of two groups never share one."""
        batch: list[int] = []
        for k in order:
            if batch and (len(batch) == rows or groups[k] != groups[batch[0]]):
                yield batch
                batch = []
            batch.append(k)
        if batch:
            yield batch

    def _read(self, encoded: Sequence[Sequence[int]]) -> tuple[Any, Tensor]:
        """Return what the encoder makes of a batch of sources, and which of its positions are not padding."""
        ids = _pad(encoded, self.codec.pad_id, self.device)
        lengths = torch.tensor([len(ids) for ids in encoded], device=self.device)
        mask = (torch.arange(ids.shape[1], device=self.device)[None] < lengths[:, None]).long()
        with torch.no_grad():
            return self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True), mask

    def _token_scores(
        self, read: Any, mask: Tensor, starts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """Return the log-probability of each token of each text."""
        inputs = [[*start, *ids[:-1]] for start, ids in zip(starts, texts, strict=True)]
        wanted = [[IGNORED] * (len(start) - 1) + list(ids) for start, ids in zip(starts, texts, strict=True)]
        labels = _pad(wanted, IGNORED, self.device)
        with torch.no_grad():
            output = self.model(
                encoder_outputs=read,
                attention_mask=mask,
                decoder_input_ids=_pad(inputs, self.codec.pad_id, self.device),
                use_cache=False,
            )
            scores = output.logits.float().log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        rows = zip(scores.tolist(), labels.tolist(), strict=True)
        return [[score for score, label in zip(*row, strict=True) if label != IGNORED] for row in rows]


def choose_device(name: str) -> str:
    """Return the device to run on, made ready: `auto` is CUDA if there is one."""
    # cuDNN plans its attention anew for every shape of batch, which takes up to a second; ours have hundreds of shapes.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device: expected auto, cpu or cuda, found '{name}'") from None
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise InputError(f"device: '{name}' was asked for, but torch finds {count} CUDA devices; use --device cpu")
    return name


def load_model(folder: str | Path, dtype: torch.dtype = torch.float32) -> Any:
    """Return a sequence-to-sequence model from a folder; what cannot be loaded is one clear line."""
    from transformers import AutoModelForSeq2SeqLM

    register_backbone()
    path = Path(folder)
    if not path.is_dir():
        raise ModelError(f"{path}: expected a model folder, found none; give the folder that training wrote")
    if not (path / "config.json").is_file():
        raise ModelError(f"{path}: expected a model with its config.json, found none; save the model again")
    if not any((path / name).is_file() for name in _WEIGHTS):
        raise ModelError(f"{path}: expected weights ({_WEIGHTS[0]}), found none; save the model again")
    try:
        with _quiet_logs():
            return AutoModelForSeq2SeqLM.from_pretrained(str(path), dtype=dtype)
    except Exception as error:  # transformers raises what its parts raise: OSError, ValueError, ImportError, KeyError
        raise ModelError(f"{path}: not a sequence-to-sequence model ({first_line(error)})") from error


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep transformers' loading bar out of logs; on a terminal it may show."""
    from transformers.utils import logging

    silenced = not sys.stderr.isatty() and logging.is_progress_bar_enabled()
    if silenced:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if silenced:
            logging.enable_progress_bar()


def learned_positions(config: Any) -> int:
    """Return how many positions a model has vectors for; 0 if they are computed and need no limit."""
    if getattr(config, "model_type", "") in {"bart", "mbart", "marian", "blenderbot", "blenderbot-small"}:
        return int(getattr(config, "max_position_embeddings", 0) or 0)
    return 0


def _until_end(ids: list[int], end: int) -> list[int]:
    """Return the ids up to the end token, which is kept; without one the search ran into its limit."""
    return ids[: ids.index(end) + 1] if end in ids else ids


def _pad(rows: Sequence[Sequence[int]], value: int, device: torch.device) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], device=device)


def _select(read: Any, rows: Tensor | None) -> Any:
    """Return the encoder's output for some of its rows; a copy with the same rows if none are named."""
    chosen = {
        name: value[rows] if rows is not None and isinstance(value, Tensor) else value for name, value in read.items()
    }
    return type(read)(**chosen)
