"""What a training run is told: one frozen dataclass per TOML table; `teo train --keys` prints the docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from teo.errors import ConfigError
from teo.loading import ROLES
from teo.training.settings import read_settings

RANDOM = "random"
"""The base model's name that means: make a small one from scratch."""
PACKED_ROLES = ("direct", "fused", "fast")
"""Roles that read the dialogue alone: in shared weights, our own backbone encodes a row once for all of them."""
SYNTHETIC = "synthetic"
"""The dataset's name that means: generate the copy task."""


Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A small model that is trained from scratch, its tokenizer learned from the training rows."""

    family: Literal["bart", "t5", "teo"] = "bart"
    """Which architecture and tokenizer: BART, T5, or our own."""
    width: Count = 96
    """Size of the hidden states."""
    layers: Count = 2
    """Layers of the encoder and of the decoder."""
    heads: Count = 4
    """Attention heads."""
    vocabulary: Count = 1000
    """Entries of the tokenizer, at most."""
    dropout: Share = 0.0
    """Dropout."""

    def __post_init__(self) -> None:
        if self.family != "t5":  # its heads have a size of their own
            unit = self.heads * (2 if self.family == "teo" else 1)  # ours turns the halves of each head
            _require(self.width % unit == 0, "width", f"a multiple of {unit} for {self.heads} heads", self.width)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The model that training starts from, and how much it reads and writes."""

    base: str = "facebook/bart-base"
    """Folder or hub name of the model to start from; "teo-base" is our own pretrained backbone, "teo-default" the
    embedded model, "random" makes a small model from scratch (table model.random)."""
    stage1: str = ""
    """A trained teo folder whose stage 1 is taken as it is; then stage1 among the roles is not trained again."""
    source_limit: Count = 256
    """Tokens of a source; above it long turns are read in part and old ones dropped, never utterance or operations."""
    target_limit: Count = 128
    """Tokens that a decoder may write; training rows with longer targets are left out and counted."""
    dropout: Annotated[float, Field(lt=1)] = -1.0
    """Dropout of our own backbone in this run; below 0: as the model has it."""
    frozen_layers: NotNegative = 0
    """Layers of our own backbone's encoder, from the first, that stay as they are, as the embeddings then do; 0: none.
    Training is faster and forgets less, but learns less."""
    layout: Literal[0, 1, 2] = 0
    """Layout of sources: 1 has [SEP] after every turn, 2 has it only before and after the utterance and [T] between
    turns, as in the paper; 0: 1 for our own backbone, which was pretrained on it, else 2."""
    speakers: bool = False
    """Put a mark before each turn that says who said it: the user or the other one."""
    random: RandomModel = field(default_factory=RandomModel)
    """The small model of base = "random"."""


@dataclass(frozen=True, slots=True)
class DataSettings:
    """One dataset: where its rows come from."""

    name: str = "jsonl"
    """Dataset: rewrite, res200k, task, canard, followup, jsonl, or "synthetic" for the generated copy task."""
    path: str = ""
    """Its folder or file."""
    train: str = "train"
    """Split to train on."""
    dev: str = "dev"
    """Split to choose the best checkpoint on; empty for none of this dataset."""
    options: dict[str, str] = field(default_factory=dict)
    """The reader's own options, such as TASK's history and forms."""
    rows: NotNegative = 0
    """Train on the first N rows only; 0 for all."""
    dev_rows: NotNegative = 0
    """Choose on the first N dev rows only; 0 for all."""
    repeat: Count = 1
    """How often each row is seen in an epoch, to balance datasets of different size."""


@dataclass(frozen=True, slots=True)
class UnchangedSettings:
    """Complete utterances made from the datasets' own rows; 0 leaves a kind out."""

    identity: Probability = 0.0
    """Share of the changed rows whose rewrite comes again as a complete utterance, with its own history."""
    foreign: Probability = 0.0
    """Share of the changed rows whose rewrite comes again with the history of another row."""
    reactions: NotNegative = 0
    """Greetings, thanks and the like after dialogues of the datasets; both languages together."""


@dataclass(frozen=True, slots=True)
class PerturbationSettings:
    """Algorithm 1, and which operations stage 2 is trained on."""

    prob_p: Probability = 0.6
    """Probability that an operation is perturbed, and that a random one is added."""
    prob_r: Probability = 0.5
    """Probability that a perturbed operation gets other text, instead of being dropped."""
    operations: Literal["perturbed", "gold", "predicted"] = "perturbed"
    """Operations that stage 2 is trained on; the paper's ablation "predicted" takes stage 1's, without noise."""
    predicted: str = ""
    """JSONL of {"id", "operations"} for the training rows; empty: stage 1 of the same run predicts them."""
    fused_share: Probability = 0.5
    """Share of the rows whose rewrite the fused form also learns from perturbed operations, which carry no loss."""


@dataclass(frozen=True, slots=True)
class OptimisationSettings:
    """How the weights are fitted; the defaults are the paper's if it names them (appendix B)."""

    epochs: Count = 30
    """Passes over the rows, for each stage."""
    steps: NotNegative = 0
    """Stop after N updates; 0: the epochs decide."""
    minutes: Weight = 0.0
    """The learning rate is zero after this time, even if the epochs are not done, for each set of weights; 0: never."""
    batch_size: Count = 32
    """Rows of an update, per process; each role of a row counts, unless all learn from one encoding of it."""
    batch_tokens: NotNegative = 0
    """Tokens of an update at most, per process (sources, targets, padding), so that long rows come in smaller batches;
    0 is off."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-5
    """Peak learning rate of AdamW."""
    warmup: Share = 0.0
    """Share of the updates over which the learning rate rises."""
    weight_decay: Weight = 0.01
    """AdamW's weight decay."""
    clip: Annotated[float, Field(gt=0)] = 1.0
    """Largest norm of a gradient; a larger one is scaled down to it."""
    r_drop: Weight = 0.0
    """Weight of R-Drop: the divergence between two passes with different dropout; 0 is off."""
    ema: Share = 0.0
    """Decay of the running average of the weights that is evaluated and saved, such as 0.999; 0 is off."""
    bf16: bool = True
    """On a GPU that can: compute in bfloat16 (the weights stay in full precision)."""
    cpu_bf16: bool = False
    """On a CPU too: two to three times as fast if the chip has it, slower if not; other chips give other weights."""
    compile: bool = False
    """Compile the layers, which pays on a GPU in runs of several minutes."""
    workers: NotNegative = 0
    """Processes that prepare batches; the noise does not depend on their number."""


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Exact match on dev by greedy decoding, which chooses the checkpoint."""

    every: NotNegative = 1
    """Evaluate after every N epochs, and after the last; 0: only after the last."""
    batch_size: Count = 64
    """Rows decoded at once."""
    operations: Literal["predicted", "gold"] = "predicted"
    """Operations that stage 2 and rfis are given on dev, if a stage 1 is there to predict them."""


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """What is written beside the model."""

    checkpoint_epochs: NotNegative = 1
    """Save what resuming needs after every N epochs; 0: never."""
    log_every: Count = 50
    """Updates between two lines of the log."""
    plots: bool = True
    """Draw loss and exact match as PNG (needs matplotlib)."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """A whole run: which roles are trained, on what, from what, how, and where to."""

    output: str
    """Folder that the model is written to."""
    roles: tuple[str, ...] = ("stage1", "stage2")
    """Roles to train, in order: stage1, stage2, rfis, direct, fast, fused; stage2 and rfis start from stage1."""
    shared: bool = False
    """One set of weights for all roles, told apart by the first token of the decoder's text; our own backbone encodes a
    row once for direct, fused and fast, if no other role is among them."""
    order: Literal["position", "insertions-first"] = "position"
    """Order of the operations: by position (the paper's text and figure) or insertions first (its equation 2)."""
    languages: tuple[str, ...] = ()
    """Languages of the data, for the model's description."""
    seed: Seed = 0
    """Seed of the noise, the order of the rows, dropout and new weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes a GPU if there is one."""
    overwrite: bool = False
    """Start again in an output folder that already holds a run."""
    model: ModelSettings = field(default_factory=ModelSettings)
    """The model to start from."""
    data: tuple[DataSettings, ...] = ()
    """The datasets, one table each."""
    unchanged: UnchangedSettings = field(default_factory=UnchangedSettings)
    """Complete utterances that are added to the datasets, so that the model learns to leave them unchanged."""
    perturbation: PerturbationSettings = field(default_factory=PerturbationSettings)
    """The noise of stage 2's operations."""
    optimisation: OptimisationSettings = field(default_factory=OptimisationSettings)
    """The fitting."""
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    """The choice of the best checkpoint."""
    writing: OutputSettings = field(default_factory=OutputSettings)
    """What is written beside the model."""

    def __post_init__(self) -> None:
        _require(bool(self.output), "output", "a folder", "nothing")
        _require(bool(self.data), "data", "at least one dataset", "none")
        for settings in self.data:
            named = bool(settings.path) or settings.name == SYNTHETIC
            _require(named, "data.path", "the dataset's folder or file", "nothing")
        _require(bool(self.roles), "roles", "at least one role", "none")
        for role in self.roles:
            _require(role in ROLES, "roles", f"roles among {', '.join(ROLES)}", role)
        _require(len(set(self.roles)) == len(self.roles), "roles", "each role once", ", ".join(self.roles))
        model, made = self.model, self.model.random
        fixed = model.base == RANDOM and made.family != "teo" and model.dropout >= 0
        expected = f"that of model.random.dropout ({made.dropout:g}) for a {made.family} from scratch"
        _require(not fixed or model.dropout == made.dropout, "model.dropout", expected, model.dropout)
        clash = self.shared and {"stage1", "fused"} <= set(self.roles)
        _require(not clash, "roles", "stage1 or fused (fused writes the operations too) in shared weights", "both")

    @property
    def one_source(self) -> bool:
        """Whether one set of weights learns roles that all read the dialogue alone."""
        return self.shared and set(self.roles) <= set(PACKED_ROLES)


def read_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Return the run that a TOML file and `key=value` overrides describe."""
    return read_settings(path, TrainConfig, overrides)


def _require(holds: bool, key: str, expected: str, found: object) -> None:
    if not holds:
        raise ConfigError(f"{key}: expected {expected}, found {found}")
