"""System: a saved model folder with a generator per role, built when first asked for and shared by roles that can."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from teo.edits import Order
from teo.errors import ModelError
from teo.folder import ModelFolder, Role
from teo.layouts import Marker
from teo.runtime.generator import Generator
from teo.runtime.locate import is_exported
from teo.stages import Player

Build = Callable[[Path], Generator]
_HASHED = (".json", ".safetensors", ".onnx", ".bin", ".txt", ".model", ".spm")
_CHUNK = 1 << 22


class System:
    """Who plays which role of a model folder."""

    def __init__(self, path: Path, folder: ModelFolder, build: Build) -> None:
        self.path = path
        self.folder = folder
        self._build = build
        self._generators: dict[Path, Generator] = {}

    @classmethod
    def load(cls, path: str | Path, *, device: str = "auto", bf16: bool = False, batch_size: int = 32) -> System:
        """Return the system of a folder that training or export wrote; weights are loaded when first needed."""
        path = Path(path)
        if is_exported(path):
            from teo.runtime.onnx_generator import load_system

            return load_system(path, batch_size=batch_size)
        folder = ModelFolder.load(path)

        def build(weights: Path) -> Generator:
            from teo.runtime.torch_generator import TorchGenerator

            return TorchGenerator.from_pretrained(
                weights, device=device, bf16=bf16, source_limit=folder.source_limit, batch_size=batch_size
            )

        return cls(path, folder, build)

    @property
    def order(self) -> Order:
        """The order of the operations that stage 1 writes."""
        if self.folder.order not in ("position", "insertions-first"):
            raise ModelError(
                f"{self.path / 'teo.json'}: order: expected position or insertions-first, found '{self.folder.order}'"
            )
        return cast(Order, self.folder.order)

    def has(self, role: str) -> bool:
        """Tell whether the folder has the role."""
        return role in self.folder.roles

    def player(self, role: str) -> Player:
        """Return the role's player; roles that name the same subfolder share its weights."""
        stored = self._role(role)
        weights = (self.path / stored.folder).resolve()
        if weights not in self._generators:
            self._generators[weights] = self._build(self.path / stored.folder)
        return Player(self._generators[weights], tuple(self._marker(role, one) for one in stored.prompt))

    def fingerprint(self, roles: Iterable[str]) -> str:
        """Return a hash of the description and of the weights that play these roles."""
        digest = hashlib.blake2b(digest_size=16)
        folders = sorted({self._role(role).folder for role in roles if self.has(role)})
        files = [file for folder in folders for file in sorted((self.path / folder).glob("*"))]
        for file in [self.path / "teo.json", *files]:
            if file.is_file() and file.suffix in _HASHED:
                digest.update(file.name.encode())
                with file.open("rb") as stream:
                    while chunk := stream.read(_CHUNK):
                        digest.update(chunk)
        return digest.hexdigest()

    def _role(self, role: str) -> Role:
        if role not in self.folder.roles:
            known = ", ".join(self.folder.roles) or "none"
            raise ModelError(
                f"{self.path}: expected the role {role}, found {known}; train it or choose another variant"
            )
        return self.folder.roles[role]

    def _marker(self, role: str, text: str) -> Marker:
        try:
            return Marker(text)
        except ValueError:
            known = ", ".join(marker.value for marker in Marker)
            raise ModelError(
                f"{self.path / 'teo.json'}: roles.{role}.prompt: expected markers ({known}), found '{text}'"
            ) from None
