"""How examples of pretraining are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoiseSettings:
    """How examples are made; the defaults are the shipped recipe."""

    infilling: float = 0.4
    """Share of examples that are infilling; the rest are rewriting."""
    blanked: float = 0.2
    """Share of an infilling source's tokens that become blanks."""
    blank_length: float = 3.0
    """Mean length of a blanked span (Poisson)."""
    masked: float = 0.12
    """Share of an infilling source's other tokens that the encoder must fill."""
    pronoun: float = 0.35
    """Chance that a left-out span gives way to a pronoun."""
    unchanged: float = 0.15
    """Share of rewriting examples whose turn stays unchanged, so that the model learns to leave complete ones so;
    turns with a pronoun are not taken for these."""
    phrase: float = 0.75
    """Chance that an English span leaves with the words that belong to it: its article, its preposition, its 's."""
    joined: float = 0.12
    """Share of examples in which several turns of the history stand as one long turn, as an assistant's answer."""
    perturbation: float = 0.3
    """prob_p of Algorithm 1 for the targets that start from perturbed operations."""
    replacement: float = 0.5
    """prob_r of Algorithm 1."""
