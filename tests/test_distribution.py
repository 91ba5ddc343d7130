"""What is uploaded: built as a wheel and as sources, small enough, and complete when installed elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from checkout import ROOT
from teo import Rewriter
from teo.loading import has_default
from teo.version import __version__

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model"),
]
LARGEST = 62_000_000
"""Bytes of a file that is uploaded; the index of packages takes 100 MB."""
CODE = {".py", ".typed", ".js", ".css", ".html", ".svg"}


def run(*command: object, cwd: Path) -> str:
    """Return what a command prints, run without this checkout on its path."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(source: Path, kind: str, out: Path) -> Path:
    """Return the wheel or sdist of a source tree."""
    code = (
        "from hatchling.build import build_sdist, build_wheel; "
        "print({'wheel': build_wheel, 'sdist': build_sdist}[sys.argv[1]](sys.argv[2]))"
    )
    hatchling = pytest.importorskip("hatchling", reason="hatchling is not installed: make test installs it")
    place = str(Path(hatchling.__file__).parents[1])
    out.mkdir(exist_ok=True)
    name = run(sys.executable, "-c", f"import sys; sys.path.append({place!r}); {code}", kind, out, cwd=source)
    return out / name.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


def names_of(wheel: Path) -> list[str]:
    return sorted(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_the_package_and_its_model_alone(wheel: Path) -> None:
    assert wheel.name == f"teo_rewriter-{__version__}-py3-none-any.whl"
    assert wheel.stat().st_size <= LARGEST
    names = [PurePosixPath(name) for name in names_of(wheel)]
    assert {name.parts[0] for name in names} == {"teo", f"teo_rewriter-{__version__}.dist-info"}
    data = {str(name) for name in names if name.parts[0] == "teo" and name.suffix not in CODE}
    others = {name for name in data if not name.startswith("teo/default/")}
    assert others == {"teo/data/registry.toml", "teo/traditional.txt"}, "rows belong to the lab"
    assert {"teo/default/teo.json", "teo/default/tokenizer.json"} <= data


def test_the_metadata_names_the_distribution_its_command_and_its_extras(wheel: Path) -> None:
    folder = f"teo_rewriter-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{folder}/METADATA").decode())
        commands = archive.read(f"{folder}/entry_points.txt").decode()
    assert (metadata["Name"], metadata["Version"]) == ("teo-rewriter", __version__)
    assert commands.split() == ["[console_scripts]", "teo", "=", "teo.cli.app:main"]
    assert {"train", "plots", "serve", "langchain", "llama-index", "haystack", "mcp", "scale"} <= set(
        metadata.get_all("Provides-Extra") or ()
    )


def test_the_sources_are_the_package_alone_and_make_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    assert sdist.stat().st_size <= LARGEST
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {path.name for path in source.iterdir() if path.is_dir()} == {"src"}
    assert [path.name for path in (source / "src").iterdir()] == ["teo"]
    assert names_of(build(source, "wheel", tmp_path / "again")) == names_of(wheel)


def test_the_installed_wheel_rewrites_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    folder = "Scripts" if os.name == "nt" else "bin"
    python, teo = (tmp_path / "venv" / folder / name for name in ("python", "teo"))
    install = ("-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    run(sys.executable, *install, cwd=tmp_path)
    where = "import teo, importlib.metadata as m; print(teo.__file__); print(m.version('teo-rewriter'))"
    file, version = run(python, "-c", where, cwd=tmp_path).splitlines()
    site = Path(file).parents[1]
    assert site.is_relative_to(tmp_path / "venv")
    assert version == __version__
    # Its dependencies are those of this environment; a folder named here is read without its own .pth files.
    shared = [path for path in sys.path if re.fullmatch(r"(site|dist)-packages", Path(path).name)]
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in shared), encoding="utf-8")
    *history, utterance = ("Have you met Anna Schmidt?", "Yes, at the fair.", "What did she say?")
    expected = Rewriter.from_pretrained().rewrite(history=history, utterance=utterance)
    assert expected.changed
    assert run(teo, "rewrite", *history, utterance, cwd=tmp_path) == f"{expected.rewrite}\n"
    assert run(python, "-c", "import teo; print(teo.__file__)", cwd=tmp_path).strip() == file
