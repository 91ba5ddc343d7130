"""export_model(...): a trained model folder -> the format that runs without torch, and what that costs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from teo.errors import InputError, MissingExtraError, ModelError
from teo.files import write_json, write_text
from teo.loading import ModelFolder, Role, is_exported, open_model
from teo.runtime.onnx_files import DESCRIPTION, Description
from teo.training.saving import disk_errors, whole_folder
from teo.units import is_exact_match

if TYPE_CHECKING:
    from teo.data.row import Row
    from teo.export.graph import Form
    from teo.pipelines import Prediction

FORMS = ("int8", "none")
_CARD = """# {name}

A model for `teo`, exported from its trained folder. Weights: {weights}.

Roles: {roles}. Languages: {languages}. Sources of at most {limit} tokens.

Run it with `teo rewrite --model FOLDER`, or in Python with `Rewriter.from_pretrained(FOLDER)`.
"""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote."""

    path: Path
    form: str
    parameters: int
    bytes: int


def export_model(folder: str | Path, out: str | Path, *, quantize: str = "int8") -> Exported:
    """Return what was written to `out`: the model's graphs, weights, tokenizer, description and card.

    `quantize`: int8 (a quarter of the size, several times as fast) or none (float32, for comparison). The folder is
    written beside its final path and renamed at the end; roles that share weights share them in the export too.
    """
    if quantize not in FORMS:
        raise InputError(f"quantize: expected {' or '.join(FORMS)}, found '{quantize}'")
    form: Form = "int8" if quantize == "int8" else "none"
    source, target = Path(folder), Path(out)
    described = ModelFolder.load(source)
    if is_exported(source):
        raise ModelError(
            f"{source}: expected the folder that training wrote, found a model that is exported already; "
            "use it as it is"
        )
    names = _weight_folders(described)
    parameters = 0
    with disk_errors(target), whole_folder(target, source) as beside:
        for weights, name in names.items():
            shared = len(names) == 1
            parameters += _export_weights(source / weights, beside / name, beside if shared else beside / name, form)
        roles = {role: Role(names[stored.folder], stored.prompt) for role, stored in described.roles.items()}
        extra = {**described.extra, "export": {"form": form, "parameters": parameters}}
        exported = replace(described, roles=roles, extra=extra)
        exported.save(beside)
        _write_card(source, beside, exported, target.name, form)
        size = sum(file.stat().st_size for file in beside.rglob("*") if file.is_file())
    return Exported(target, form, parameters, size)


@dataclass(frozen=True, slots=True)
class Loss:
    """What an export costs on some rows."""

    rows: int
    em_before: float
    em_after: float
    same: float
    """Share of the rows whose rewrite did not change by a byte."""
    score_gap: float
    """Mean absolute difference of the log-probabilities, over rows whose rewrite did not change."""

    def to_dict(self) -> dict[str, float | int]:
        """Return the numbers by name."""
        return asdict(self)


def measure_loss(
    before: str | Path, after: str | Path, rows: Sequence[Row], *, variant: str | None = None, threads: int = 0
) -> Loss:
    """Return exact match of a model and of its export on the same rows, and how often they agree.

    `before` is a trained folder, run by torch in float32, or an exported one; `after` is an exported one.
    """
    if not rows:
        raise InputError("rows: expected at least one row to compare on, found none")
    first, second = (_predictions(Path(path), rows, variant, threads) for path in (before, after))
    pairs = list(zip(first, second, strict=True))
    same = [old.rewrite == new.rewrite for old, new in pairs]
    gaps = [
        abs(sum(old.scores.values()) - sum(new.scores.values()))
        for (old, new), equal in zip(pairs, same, strict=True)
        if equal
    ]
    return Loss(
        rows=len(rows),
        em_before=_exact_match(rows, first),
        em_after=_exact_match(rows, second),
        same=sum(same) / len(same),
        score_gap=float(np.mean(gaps)) if gaps else 0.0,
    )


def _predictions(path: Path, rows: Sequence[Row], variant: str | None, threads: int) -> list[Prediction]:
    from teo.pipelines import PIPELINES, find_variant, predict

    model = open_model(path, threads=threads or None, device="cpu")
    pipeline = find_variant(variant or model.folder.variant, PIPELINES)
    stages = model.load(pipeline.roles(model.folder.roles))
    return predict(pipeline, stages, [row.dialogue for row in rows])


def _exact_match(rows: Sequence[Row], predictions: Sequence[Prediction]) -> float:
    right = [is_exact_match(prediction.rewrite, row.rewrite) for row, prediction in zip(rows, predictions, strict=True)]
    return sum(right) / len(right)


def _weight_folders(described: ModelFolder) -> dict[str, str]:
    """Return the exported folder of each set of weights: `onnx` if there is only one."""
    folders = list(dict.fromkeys(role.folder for role in described.roles.values()))
    if not folders:
        raise ModelError("teo.json: expected at least one role, found none; train the model again")
    if len(folders) == 1:
        return {folders[0]: "onnx"}
    return {name: "onnx/" + name.strip("./").replace("/", "-") for name in folders}


def _export_weights(source: Path, out: Path, tokenizer_folder: Path, form: Form) -> int:
    """Write one set of weights; return how many parameters it has."""
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise MissingExtraError("exporting a model", "onnx", "train") from error
    from teo.export.families import read_network
    from teo.export.model import decoder_graph, embedding_tensors, encoder_graph, probe_graph
    from teo.runtime.onnx_session import PROBE
    from teo.runtime.onnx_weights import WeightWriter

    model = _load(source)
    network = read_network(model, source)
    shape, weights = network.shape, network.weights
    out.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(model, source, tokenizer_folder)
    writer = WeightWriter(out)
    onnx.save(encoder_graph(writer, form, shape, weights), str(out / "encoder.onnx"))
    onnx.save(decoder_graph(writer, form, shape, weights), str(out / "decoder.onnx"))
    if form == "int8":
        onnx.save(probe_graph(), str(out / PROBE))
    for name, tensor in embedding_tensors(form, weights).items():
        writer.write(name, tensor)  # the runtime maps it; graphs that project by it have written it already
    ids = {name: getattr(model.config, f"{name}_token_id", None) for name in ("pad", "eos", "sep", "decoder_start")}
    description = Description(
        form=form,
        d_model=shape.d_model,
        heads=shape.heads,
        head_size=shape.head_size,
        decoder_layers=shape.decoder_layers,
        turn_types=network.turn_types,
        pad_id=_id(ids["pad"]),
        eos_id=_id(ids["eos"]),
        sep_id=_id(ids["sep"], ids["eos"]),
        start_id=_id(ids["decoder_start"], ids["pad"]),
        embedding=writer.slices["embedding"],
        embedding_scale=writer.slices.get("embedding:scale"),
        positions=network.positions,
    )
    write_json(out / DESCRIPTION, description.to_dict())
    return int(sum(parameter.numel() for parameter in model.parameters()))


def _load(source: Path) -> Any:
    """Return a trained model in float32."""
    try:
        from teo.runtime.torch_generator import load_model
    except ModuleNotFoundError as error:
        raise MissingExtraError("exporting a model", str(error.name), "train") from error
    return load_model(source).eval()


def _write_tokenizer(model: Any, source: Path, out: Path) -> None:
    """Write a model's tokenizer: ours as it is, another family's with how it is used."""
    if model.config.model_type != "teo":
        from teo.export.tokenizer import write_tokenizer
        from teo.runtime.torch_codec import Codec, load_tokenizer

        codec = Codec(load_tokenizer(source), model.config)
        rows = int(model.get_input_embeddings().weight.shape[0])
        if rows < len(codec):
            raise ModelError(
                f"{source}: expected embeddings for the tokenizer's {len(codec)} tokens, found {rows}; "
                "train the model with this package, which adds the markers"
            )
        write_tokenizer(codec, out, source)
        return
    tokenizer = source / "tokenizer.json"
    if not tokenizer.is_file():
        raise ModelError(f"{source}: expected tokenizer.json beside the weights, found none; save the model again")
    shutil.copyfile(tokenizer, out / tokenizer.name)


def _id(*numbers: Any) -> int:
    """Return the first id that is there; a list of end tokens counts by its first, and none is 0."""
    found = next((number for number in numbers if number is not None), 0)
    return int(found[0] if isinstance(found, list | tuple) else found)


def _write_card(source: Path, out: Path, described: ModelFolder, name: str, form: str) -> None:
    """Write the model's own card if it has one, else a short one."""
    card = source / "README.md"
    if card.is_file():
        shutil.copyfile(card, out / "README.md")
        return
    weights = "8-bit, a scale per output channel" if form == "int8" else "32-bit"
    text = _CARD.format(
        name=name,
        weights=weights,
        roles=", ".join(described.roles),
        languages=", ".join(described.languages) or "not stated",
        limit=described.source_limit,
    )
    write_text(out / "README.md", text)
