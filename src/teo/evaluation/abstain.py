"""A variant as users get it: what a rule or the model's thresholds keep stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from teo.calibration import IDENTITY, Calibration, Thresholds
from teo.data.row import Row
from teo.evaluation.stages import Cast
from teo.evaluation.variants import Prediction, Variant
from teo.folder import ModelFolder
from teo.runtime.rules import reason_to_keep

SUFFIX = "+threshold"
"""What the name of such a variant ends with."""


def abstaining(variant: Variant, folder: ModelFolder) -> Variant:
    """Return the variant with the rules and the thresholds that a rewriter applies to it."""
    curve, thresholds = calibration_of(folder, variant.name)

    def run(cast: Cast, rows: Sequence[Row], seed: int) -> list[Prediction]:
        asked = [row for row in rows if reason_to_keep(row.dialogue) is None]
        predicted = dict(zip((id(row) for row in asked), variant.run(cast, asked, seed), strict=True))
        answers = []
        for row in rows:
            one = predicted.get(id(row))
            if one is None:
                answers.append(Prediction(row.dialogue.utterance, ""))
            elif curve.confidence(one.evidence(curve.rest_weight)) < thresholds.of(row.dialogue):
                answers.append(replace(one, rewrite=row.dialogue.utterance))
            else:
                answers.append(one)
        return answers

    return replace(variant, name=variant.name + SUFFIX, run=run, read=None)


def calibration_of(folder: ModelFolder, variant: str) -> tuple[Calibration, Thresholds]:
    """Return a variant's calibration and thresholds; without its own, raw probability and the model's threshold."""
    stored = folder.extra.get("calibration", {})
    curve = stored.get(variant) if isinstance(stored, dict) else None
    if curve is None:
        return IDENTITY, Thresholds(folder.threshold)
    return Calibration.from_dict(curve), Thresholds.from_dict(curve, folder.threshold)
