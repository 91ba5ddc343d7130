"""Loading a model: what its `teo.json` holds, where it lies, and which runtime runs it. Nothing else knows these.

A saved model is one folder: `teo.json`, one subfolder per set of weights, and the card. `teo.json` names the subfolder
of each role and the prompt of its decoder, so that stages can be separate models or share one. A folder with
`graphs.json` beside its weights was exported and runs on ONNX Runtime; any other runs on torch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, ClassVar, Literal

from teo.arguments import describe, require_integer
from teo.cores import available_cores
from teo.edits import Order
from teo.errors import InputError, MissingExtraError, ModelError
from teo.files import write_json
from teo.layouts import PLAIN, Layout, Marker
from teo.runtime.generator import Generator
from teo.runtime.onnx_files import DESCRIPTION
from teo.stages import Stage, Stages

logger = logging.getLogger(__name__)

Runtime = Literal["onnx", "torch"]
Dtype = Literal["float32", "bfloat16"]

FORMAT_VERSION = 1
ROLES = ("stage1", "stage2", "rfis", "direct", "fast", "fused")
"""What a set of weights may be trained for."""
DEFAULT_MODEL = Path(__file__).parent / "default"
"""The model that comes with the package."""
_HASHED = (".json", ".safetensors", ".onnx", ".bin", ".txt", ".model", ".spm")
_CHUNK = 1 << 22
_HUB = "hub:"
_HUB_ID = re.compile(r"(?P<id>[\w][\w.-]*/[\w][\w.-]*)(?:@(?P<revision>[\w][\w./-]*))?")
_THREADS_PER_CORE = 4
"""How many threads may be asked for, by core."""


@dataclass(frozen=True, slots=True)
class Role:
    """The subfolder of a role's weights, and the markers that its decoder's text starts with."""

    folder: str
    prompt: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What `teo.json` holds."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    roles: dict[str, Role]
    languages: tuple[str, ...] = ()
    order: Order = "position"
    """Order of the operations that stage 1 generates: position or insertions-first."""
    source_limit: int = 256
    """Tokens a source may have; a longer history is read in part."""
    threshold: float = 0.0
    """The confidence below which an utterance stays unchanged; 0: the package's own."""
    variant: str = "teo"
    """Pipeline that a rewriter uses unless told otherwise."""
    layout: Layout = PLAIN
    """How a dialogue becomes a source."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further facts about the model, kept as they are: calibration, training data, scores."""

    def save(self, path: Path) -> None:
        """Write `teo.json` into a folder, whole or not at all."""
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / "teo.json", {"format": FORMAT_VERSION, **asdict(self)})

    @classmethod
    def load(cls, path: Path) -> ModelFolder:
        """Return what a folder's `teo.json` says."""
        file = path / "teo.json"
        if not file.is_file():
            raise ModelError(
                f"{path}: expected a teo model folder, found no teo.json; give the folder that training wrote"
            )
        from pydantic import TypeAdapter, ValidationError

        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            version = stored.pop("format")
            if version != FORMAT_VERSION:
                raise ModelError(f"{file}: expected format {FORMAT_VERSION}, found {version}; install a matching teo")
            described = TypeAdapter(cls).validate_python(stored)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ModelError(f"{file}: {where}: {first['msg'].lower()}; save the model again") from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ModelError(f"{file}: not a teo model description ({error}); save the model again") from error
        for name, role in described.roles.items():
            _require_inside(file, f"roles.{name}.folder", role.folder)
        return described


@dataclass(frozen=True, slots=True)
class Model:
    """A model folder, and how its weights are run once they are loaded."""

    path: Path
    folder: ModelFolder
    runtime: Runtime
    device: str = "cpu"
    bf16: bool = False
    threads: int | None = None
    """Processor threads of a call; None: as many as there are, at most four on ONNX Runtime."""
    batch_size: int = 32

    @property
    def name(self) -> str:
        """The name of the folder; the embedded model is the default."""
        return self.path.resolve().name

    @property
    def precision(self) -> str:
        """What the weights are computed in: fp32, bf16 or, if exported so, int8."""
        exported = self.folder.extra.get("export", {}).get("form", "none")
        return str(exported) if exported != "none" else "bf16" if self.bf16 else "fp32"

    def load(self, roles: Iterable[str]) -> Stages:
        """Return the stages of these roles; those that name the same subfolder share its weights."""
        generators: dict[str, Generator] = {}
        stages = {}
        for role in roles:
            if role not in self.folder.roles:
                found = ", ".join(self.folder.roles) or "none"
                raise ModelError(f"{self.path}: expected the role {role}, found {found}; choose another variant")
            stored = self.folder.roles[role]
            try:
                prompt = tuple(map(Marker, stored.prompt))
            except ValueError as error:
                known = ", ".join(marker.value for marker in Marker)
                raise ModelError(
                    f"{self.path / 'teo.json'}: roles.{role}.prompt: expected markers ({known}); {error}"
                ) from None
            if stored.folder not in generators:
                generators[stored.folder] = self._generator(self.path / stored.folder)
            stages[role] = Stage(generators[stored.folder], prompt)
        return Stages(stages, self.folder.order, self.folder.layout)

    def fingerprint(self, roles: Iterable[str]) -> str:
        """Return a hash of the model's description, tokenizer and the weights of these roles.

        Roles that the model lacks do not count.
        """
        digest = hashlib.blake2b(digest_size=16)
        folders = {self.folder.roles[role].folder for role in roles if role in self.folder.roles}
        files = {file for folder in (".", *folders) for file in (self.path / folder).glob("*")}
        for file in sorted(files):
            if file.is_file() and file.suffix in _HASHED:
                digest.update(file.relative_to(self.path).as_posix().encode())
                with file.open("rb") as stream:
                    while chunk := stream.read(_CHUNK):
                        digest.update(chunk)
        return digest.hexdigest()

    def _generator(self, weights: Path) -> Generator:
        limits = {"source_limit": self.folder.source_limit, "batch_size": self.batch_size}
        if self.runtime == "onnx":
            from teo.runtime.onnx_generator import OnnxGenerator

            _require_own_files(weights / DESCRIPTION)
            return OnnxGenerator(weights, threads=self.threads or 0, **limits)
        import torch

        from teo.runtime.torch_generator import TorchGenerator

        if self.threads:
            torch.set_num_threads(self.threads)
        return TorchGenerator.from_pretrained(weights, device=self.device, bf16=self.bf16, **limits)


def open_model(
    path: str | Path | None = None,
    *,
    runtime: Runtime | None = None,
    threads: int | None = None,
    device: str = "auto",
    bf16: bool = False,
    batch_size: int = 32,
) -> Model:
    """Return a model by its folder or `hub:owner/name`, or the embedded one; weights are loaded when its stages are.

    `runtime`: by default the one that the folder is made for; the other one is refused. `device` and `bf16` are for
    torch: an exported model runs on the CPU as it is.
    """
    if runtime is not None:
        require_runtime(runtime)
    if threads is not None:
        threads = _cap_threads(require_integer("threads", threads, 1))
    root = locate(path)
    folder = ModelFolder.load(root)
    if is_exported(root):
        if runtime == "torch":
            raise ModelError(
                f"{root}: expected a trained folder for runtime 'torch', found an exported one; leave runtime out, "
                "or give the folder that training wrote"
            )
        if device not in ("auto", "cpu") or bf16:
            name, found = ("device", device) if device not in ("auto", "cpu") else ("dtype", "bfloat16")
            raise InputError(
                f"{name}: an exported model runs on the CPU as it is, found {found}; leave it out, or give the folder "
                "that training wrote with runtime 'torch'"
            )
        return Model(root, folder, "onnx", threads=threads, batch_size=batch_size)
    if runtime == "onnx":
        raise ModelError(
            f"{root}: expected an exported model, found no {DESCRIPTION}; export it with `teo export`, "
            "or run the trained one with runtime='torch'"
        )
    return Model(root, folder, "torch", _torch_device(device), bf16, threads, batch_size)


def locate(path: str | Path | None) -> Path:
    """Return the folder of a model: the embedded one, a folder on disk, or one of a hub.

    Only `hub:owner/name` or `hub:owner/name@revision` asks a hub; any other path that is not there stays an error.
    """
    if path is None:
        if not has_default():
            raise ModelError(
                "no model: this installation has no embedded default; give a model folder "
                "(--model FOLDER, or Rewriter.from_pretrained('FOLDER'))"
            )
        return DEFAULT_MODEL
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"model: expected a folder or hub:owner/name, found {describe(path)}")
    if isinstance(path, str) and path.startswith(_HUB):
        return _fetch(path.removeprefix(_HUB))
    folder = Path(path)
    if not folder.exists():
        meant = f" (a model of a hub is hub:{path})" if _HUB_ID.fullmatch(str(path)) else ""
        raise ModelError(f"{path}: expected a model folder, found none; give the folder that training wrote{meant}")
    return folder


def _fetch(name: str) -> Path:
    """Return the folder of a hub's model, fetched if it is not here yet."""
    match = _HUB_ID.fullmatch(name)
    if match is None:
        raise InputError(f"model: expected hub:owner/name or hub:owner/name@revision, found 'hub:{name}'")
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError:
        raise MissingExtraError(f"hub:{name}", "huggingface_hub", "train") from None
    try:
        return Path(snapshot_download(match["id"], revision=match["revision"]))
    except Exception as error:  # network, rights and names each have their own classes
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise ModelError(f"hub:{name}: it cannot be fetched from the hub ({reason})") from error


def _require_inside(file: Path, key: str, name: str) -> None:
    """Raise if a name in a model's description leads out of its folder."""
    paths = (PurePosixPath(name), PureWindowsPath(name))
    if any(path.is_absolute() or path.drive or ".." in path.parts for path in paths):
        raise ModelError(f"{file}: {key}: expected a name inside the model's folder, found '{name}'")


def _require_own_files(description: Path) -> None:
    """Raise if exported weights name a file that is not beside them."""
    try:
        stored = json.loads(description.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # whoever reads it next says so
    for key, place in stored.items() if isinstance(stored, dict) else ():
        if isinstance(place, dict) and isinstance(place.get("file"), str):
            _require_inside(description, f"{key}.file", place["file"])


def _cap_threads(threads: int) -> int:
    """Return how many threads are used of those asked for: far more than cores only take memory and time."""
    most = _THREADS_PER_CORE * available_cores()
    if threads > most:
        logger.warning("threads: %s are more than this machine's cores can use, %s are used", threads, most)
    return min(threads, most)


def require_runtime(name: str) -> Runtime:
    """Return the runtime of a name; raises where there is none."""
    if name not in ("onnx", "torch"):
        raise InputError(f"runtime: expected onnx or torch, found '{name}'")
    return "onnx" if name == "onnx" else "torch"


def require_dtype(name: str) -> Dtype:
    """Return the precision of a name; raises where there is none."""
    if name not in ("float32", "bfloat16"):
        raise InputError(f"dtype: expected float32 or bfloat16, found '{name}'")
    return "bfloat16" if name == "bfloat16" else "float32"


def has_default() -> bool:
    """Tell whether this installation has an embedded model."""
    return (DEFAULT_MODEL / "teo.json").is_file()


def is_exported(path: str | Path) -> bool:
    """Tell whether a model folder is in the exported form."""
    return any(Path(path).glob(f"**/{DESCRIPTION}"))


def _torch_device(name: str) -> str:
    """Return the device that torch runs on; without torch the extra to install is named."""
    try:
        from teo.runtime.torch_generator import choose_device
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise MissingExtraError("a model that was not exported", str(error.name), "train") from None
    return choose_device(name)
