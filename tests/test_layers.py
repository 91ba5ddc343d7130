"""The direction of imports in both packages, lazy and type-checking imports included, and one name per class."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from checkout import ROOT

TEO_LAYERS = """\
version errors arguments files cores provenance
dialogue units noise html_text plain_text edits alignment excerpts layouts placement rules wrappers openings traditional
models default
runtime
stages
loading
pipelines
reading result decision interface rewriter records
data
metrics
training
export
evaluation
scale
integrations server cli
__init__ __main__"""
LAB_LAYERS = """\
__init__ paths
rows sheets pretraining teacher encoded average ranking regraph
reproduce
baselines llm judging retrieval
report pages
cli
__main__"""
"""Top to bottom, and on a line from left to right: a module imports only what stands before it.

Modules of one folder may import each other, but not in a circle.
"""


@dataclass(frozen=True)
class Package:
    name: str
    source: Path
    layers: str
    above: tuple[str, ...] = ()
    """Other packages of this repository that it may import."""

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """Every module, by its name below the package."""
        files = sorted(self.source.rglob("*.py"))
        return {
            ".".join(file.relative_to(self.source).with_suffix("").parts): ast.parse(file.read_text(encoding="utf-8"))
            for file in files
        }

    def parts(self) -> set[str]:
        """Return the names that stand in the layers: folders with code, and modules at the top."""
        return {module.split(".")[0] for module in self.modules}

    def imports(self, module: str) -> list[tuple[int, str, str]]:
        """Return line, package and module below it of every import of this repository's packages."""
        found: list[tuple[int, str, str]] = []
        for node in ast.walk(self.modules[module]):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.name}.{module}:{node.lineno}: a relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                package, _, target = name.partition(".")
                if package in PACKAGES:
                    found.append((node.lineno, package, PACKAGES[package].module_of(target)))
        return found

    def module_of(self, path: str) -> str:
        """Return the module that a dotted path below the package leads to; the package itself is __init__."""
        while path and path not in self.modules and f"{path}.__init__" not in self.modules:
            path = path.rpartition(".")[0]
        return path or "__init__"

    def graph(self) -> dict[str, set[str]]:
        """Return which modules of its own each module imports; a folder is its __init__."""
        return {
            module: {
                target if target in self.modules else f"{target}.__init__"
                for _, package, target in self.imports(module)
                if package == self.name
            }
            - {module}
            for module in self.modules
        }


PACKAGES = {
    package.name: package
    for package in (
        Package("teo", ROOT / "src" / "teo", TEO_LAYERS),
        Package("teo_lab", ROOT / "lab" / "src" / "teo_lab", LAB_LAYERS, above=("teo",)),
    )
}
both = pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)


@both
def test_every_part_stands_in_a_layer_once(package: Package) -> None:
    layers = Counter(package.layers.split())
    data_alone = {folder.name for folder in package.source.iterdir() if folder.is_dir()} - package.parts()
    assert package.parts() - layers.keys() == set(), "new: put these into the layers"
    assert layers.keys() - package.parts() - data_alone == set(), "gone: take these out of the layers"
    assert max(layers.values()) == 1


@both
def test_imports_go_upwards_only(package: Package) -> None:
    rank = {part: rank for rank, part in enumerate(package.layers.split())}
    last = len(rank)
    wrong = [
        f"{package.name}.{module}:{line} imports {target}, which stands below it"
        for module in package.modules
        for line, owner, target in package.imports(module)
        if owner == package.name and rank.get(target.split(".")[0], last) > rank.get(module.split(".")[0], last)
    ]
    assert not wrong, "\n".join(wrong)


@both
def test_no_imports_in_a_circle(package: Package) -> None:
    try:
        TopologicalSorter(package.graph()).prepare()
    except CycleError as error:
        pytest.fail(" > ".join(error.args[1]), pytrace=False)


@both
def test_a_package_imports_only_those_above_it(package: Package) -> None:
    wrong = [
        f"{package.name}.{module}:{line} imports {owner}"
        for module in package.modules
        for line, owner, _ in package.imports(module)
        if owner not in (package.name, *package.above)
    ]
    assert not wrong, "\n".join(wrong)


@both
def test_every_import_of_a_package_leads_to_a_module(package: Package) -> None:
    wrong = [
        f"{package.name}.{module}:{node.lineno} imports {node.module}"
        for module, tree in package.modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for owner, _, target in [node.module.partition(".")]
        if owner in PACKAGES and target and PACKAGES[owner].module_of(target) != target
    ]
    assert not wrong, "\n".join(wrong)


@both
def test_a_class_name_occurs_once(package: Package) -> None:
    places: dict[str, list[str]] = {}
    for module, tree in package.modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    assert len(places) > 50
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}, "give one another name"
