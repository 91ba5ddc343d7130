"""A variant as users get it: what a rule or the model's thresholds keep stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from teo.calibration import IDENTITY, Calibration, Thresholds
from teo.data.row import Row
from teo.folder import ModelFolder
from teo.pipelines import Prediction, Variant
from teo.runtime.rules import reason_to_keep
from teo.stages import Cast

SUFFIX = "+threshold"
"""What the name of such a variant ends with."""


def abstaining(variant: Variant, folder: ModelFolder) -> Variant:
    """Return the variant with the rules and the thresholds that a rewriter applies to it."""
    curve, thresholds = calibration_of(folder, variant.name)

    def run(cast: Cast, rows: Sequence[Row], seed: int) -> list[Prediction]:
        answers = []
        for row, one in zip(rows, ask(variant, cast, rows, seed), strict=True):
            if one is None:
                answers.append(Prediction(row.dialogue.utterance, ""))
            elif curve.confidence(one.evidence(curve.rest_weight)) < thresholds.of(row.dialogue):
                answers.append(replace(one, rewrite=row.dialogue.utterance))
            else:
                answers.append(one)
        return answers

    return replace(variant, name=variant.name + SUFFIX, run=run, read=None)


def ask(variant: Variant, cast: Cast, rows: Sequence[Row], seed: int = 0) -> list[Prediction | None]:
    """Return a pipeline's prediction of each row, in order; None where a rule keeps the utterance unasked."""
    kept = [reason_to_keep(row.dialogue) is not None for row in rows]
    predictions = iter(variant.run(cast, [row for row, keeps in zip(rows, kept, strict=True) if not keeps], seed))
    return [None if keeps else next(predictions) for keeps in kept]


def calibration_of(folder: ModelFolder, variant: str) -> tuple[Calibration, Thresholds]:
    """Return a variant's calibration and thresholds; without its own, raw probability and the model's threshold."""
    stored = folder.extra.get("calibration", {})
    curve = stored.get(variant) if isinstance(stored, dict) else None
    if curve is None:
        return IDENTITY, Thresholds(folder.threshold)
    return Calibration.from_dict(curve), Thresholds.from_dict(curve, folder.threshold)
