"""Complete incomplete utterances of a dialogue by editing operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.edits import EditScript
from teo.errors import TeoError
from teo.version import __version__

if TYPE_CHECKING:
    from teo.result import Rewrite
    from teo.rewriter import Rewriter

__all__ = [
    "Dialogue",
    "EditScript",
    "Rewrite",
    "Rewriter",
    "TeoError",
    "__version__",
    "derive_edits",
]


def __getattr__(name: str) -> Any:
    """Return what is imported only when asked for: a rewriter brings numpy and onnxruntime along."""
    if name == "Rewriter":
        from teo.rewriter import Rewriter

        return Rewriter
    if name == "Rewrite":
        from teo.result import Rewrite

        return Rewrite
    raise AttributeError(f"module 'teo' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names of the package, those that are imported only when asked for included."""
    return sorted({*globals(), *__all__})
