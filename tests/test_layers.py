"""The direction of imports: a module imports only what stands above it, lazy and type-checking imports included."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "teo"
LAYERS = """\
version errors arguments files provenance
dialogue units edits alignment excerpts layouts placement reactions keeping
models default
runtime
stages
loading
pipelines
abstain
result interface answers rewriter records
data
metrics
training
export
evaluation
study
scale
integrations server cli
__init__ __main__"""
"""Top to bottom, and on a line from left to right; modules of one folder may import each other, but not in a circle."""

RANKS = {name: rank for rank, name in enumerate(LAYERS.split())}
LINES = {name: line for line in LAYERS.splitlines() for name in line.split()}
MODULES = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}


def imports_of(path: Path) -> list[tuple[int, str]]:
    """Return line and module, below the package, of every import of the package; the package itself is __init__."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, module = name.partition(".")
            while package == "teo" and module and module not in MODULES and f"{module}.__init__" not in MODULES:
                module = module.rpartition(".")[0]
            if package == "teo":
                found.append((node.lineno, module or "__init__"))
    return found


def test_imports_go_upwards_only() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {target}: '{LINES[own]}' stands above '{LINES[other]}'"
        for module, path in sorted(MODULES.items())
        for line, target in imports_of(path)
        for own, other in [(module.split(".")[0], target.split(".")[0])]
        if RANKS[other] > RANKS[own]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_imports_in_a_circle() -> None:
    graph = {module: {target for _, target in imports_of(path)} - {module} for module, path in MODULES.items()}
    TopologicalSorter(graph).prepare()  # raises and names the circle
