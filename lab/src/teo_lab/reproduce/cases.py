"""The paper's examples (tables 1, 6 and 8): what each stage of the trained models writes for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.edits import format_operations
from teo.loading import open_model
from teo.pipelines import PIPELINES, predict
from teo_lab.reproduce.experiments import ARCHITECTURES, Run


@dataclass(frozen=True, slots=True)
class Case:
    """An example of the paper, and the dataset whose model rewrites it."""

    title: str
    dataset: str
    dialogue: Dialogue
    reference: str

    @property
    def operations(self) -> str:
        """The operations that the reference needs."""
        return format_operations(derive_edits(self.dialogue.utterance, self.reference).operations)


EXAMPLES = (
    Case(
        "Table 1",
        "task",
        Dialogue(
            ("I think Batman is very handsome.", "The poster looks a bit like Ben Affleck."), "It is he who acted."
        ),
        "It is Ben Affleck who acted as Batman.",
    ),
    Case(
        "Table 6",
        "task",
        Dialogue(
            (
                "Don't you have any musical instruments that you want to learn? "
                "I think the piano and guitar sound great.",
                "Piano.",
            ),
            "The sound of this musical instrument sounds very pleasant, wow.",
        ),
        "The sound of the piano sounds very pleasant, wow.",
    ),
    Case(
        "Table 8", "rewrite", Dialogue(("天龙八部里谁的武功最高", "是段誉"), "为什么"), "为什么天龙八部里段誉的武功最高"
    ),
)


def rewrite_cases(folder: Path, run: Run, device: str) -> dict[str, Any]:
    """Return what a run's model makes of each example in its language: operations if it has any, and the rewrite."""
    architecture = next(system for system in ARCHITECTURES if system.kind == run.kind)
    model, pipeline = open_model(folder, device=device), PIPELINES[architecture.variant]
    cases = [case for case in EXAMPLES if case.dataset == run.dataset]
    stages = model.load(pipeline.roles(model.folder.roles))
    predictions = predict(pipeline, stages, [case.dialogue for case in cases])
    return {
        case.title: {"operations": prediction.operations, "rewrite": prediction.rewrite}
        for case, prediction in zip(cases, predictions, strict=True)
    }
