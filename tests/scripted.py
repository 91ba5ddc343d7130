"""Scripted generators: stages and rewriters whose texts a test decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from teo.layouts import Pieces
from teo.loading import ModelFolder, Role
from teo.rewriter import Rewriter
from teo.runtime.generator import Generated
from teo.stages import Stage, Stages


@dataclass(eq=False)
class ScriptedGenerator:
    """A generator that answers from a function of source and prompt, and remembers what it was asked."""

    answer: Callable[[Pieces, Pieces], Pieces]
    token_scores: Callable[[Pieces], tuple[float, ...]] = lambda _source: (-0.25, -0.25)
    value: Callable[[Pieces, Pieces], float] = lambda _source, _target: -1.0
    """The log-probability of a target after a source."""
    source_limit: int = 1000
    tokens: Callable[[str], int] = len
    """The tokens of a text, without its separator."""
    several: list[Generated] = field(default_factory=list)
    """What `generate_several` gives for any source."""
    asked: list[tuple[Pieces, Pieces]] = field(default_factory=list)
    scored: list[tuple[Pieces, Pieces]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def measure(self, text: str) -> int:
        return self.tokens(text) + 1

    def generate(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, beams: int = 1
    ) -> list[Generated]:
        pairs = list(zip(sources, prompts or [()] * len(sources), strict=True))
        self.asked += pairs
        return [Generated(self.answer(*pair), self.token_scores(pair[0])) for pair in pairs]

    def generate_several(
        self, sources: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None, count: int
    ) -> list[list[Generated]]:
        self.counts.append(count)
        return [self.several[:count] for _ in sources]

    def score(
        self, sources: Sequence[Pieces], targets: Sequence[Pieces], *, prompts: Sequence[Pieces] | None = None
    ) -> list[float]:
        pairs = list(zip(sources, targets, strict=True))
        self.scored += pairs
        return [self.value(*pair) for pair in pairs]

    @property
    def sources(self) -> list[Pieces]:
        """The sources that were read, in order."""
        return [source for source, _ in self.asked]


def says(*pieces: str, **settings: Any) -> ScriptedGenerator:
    """Return a generator that says the same to everything."""
    return ScriptedGenerator(lambda _source, _prompt: pieces, **settings)


def stages_of(**generators: ScriptedGenerator) -> Stages:
    """Return stages without prompts by their roles."""
    return Stages({role: Stage(generator) for role, generator in generators.items()})


def rewriter_of(generator: ScriptedGenerator, *, variant: str = "direct", **settings: Any) -> Rewriter:
    """Return a rewriter with one generator in every role of a pipeline with a single text."""
    roles = ("direct", "fused", "fast")
    folder = ModelFolder({role: Role("weights") for role in roles}, variant=variant, **settings)
    return Rewriter(stages_of(**dict.fromkeys(roles, generator)), folder, name="scripted")
