"""Where a model is: in the package, on disk, or on a hub."""

from __future__ import annotations

from pathlib import Path

from teo.errors import ModelError

DEFAULT_MODEL = Path(__file__).parents[1] / "default"
"""The model that comes with the package."""
DESCRIPTION = "graphs.json"
"""The file beside exported graphs that says what they are."""


def is_exported(path: str | Path) -> bool:
    """Tell whether a model folder is in the exported form."""
    return any(Path(path).glob(f"**/{DESCRIPTION}"))


def has_default() -> bool:
    """Tell whether this installation has an embedded model."""
    return (DEFAULT_MODEL / "teo.json").is_file()


def locate_model(path: str | Path | None) -> Path:
    """Return the folder of a model: the embedded one, a folder on disk, or one fetched from a hub by its id."""
    if path is None:
        if not has_default():
            raise ModelError(
                "no model: this installation has no embedded default; give a model folder "
                "(--model FOLDER, or Rewriter.from_pretrained('FOLDER'))"
            )
        return DEFAULT_MODEL
    folder = Path(path)
    if folder.is_dir() or not _is_hub_id(str(path)):
        return folder
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError:
        raise ModelError(
            f"{path}: expected a model folder, found none; to fetch one, install huggingface_hub"
        ) from None
    try:
        return Path(snapshot_download(str(path)))
    except Exception as error:  # network, rights and names each have their own classes
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise ModelError(f"{path}: no such folder, and it cannot be fetched from the hub ({reason})") from error


def _is_hub_id(text: str) -> bool:
    owner, slash, name = text.partition("/")
    return (
        bool(slash) and all(part and part.strip(".") and "\\" not in part for part in (owner, name)) and "/" not in name
    )
