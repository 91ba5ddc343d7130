"""The part of lab/docs/results.md on two stages: what `teo-lab reproduce` stored in lab/results/reproduce/BASE."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.evaluation.markdown import percent, plain
from teo_lab.reproduce.experiments import DATASETS, DIRECT, TEO, Run
from teo_lab.reproduce.stored_rows import read_operations_right, read_right

PAGES: Mapping[str, str] = {
    "architectures": "Separate, shared, fused",
    "table5": "Table 5: stage-1 EM, E2C and C2E",
    "figure2": "Figure 2: right and wrong in both stages",
    "figure3": "Figure 3: EM against prob_p",
    "errors": "Section 4.9: operations and errors by kind",
    "cases": "The paper's examples",
}
"""The pages that are shown, and their headings here."""
_INTRO = """\
## The two stages, trained

The embedded model of the tables above is trained on all datasets and runs `fused`: operations first, then the rewrite.
Its rows named direct write the rewrite at once. The models in this part are each trained on one dataset, and all start
from the same base: **separate** has a set of weights for each stage, as in the paper, **shared** has one set for both
stages, **fused** has one decoder for both texts, **direct** has no operations."""
_NONE = """\
Nothing is stored yet. `teo-lab reproduce all --base teo-base --data data` trains and measures all of it, and
`teo-lab pages` puts it here."""
_NOTE = "note.md"
"""What a person reads from the figures, beside them."""
_RUNS_SHOWN = "architectures"
"""The page that names all runs and the command; the others would repeat it."""


@dataclass(frozen=True, slots=True)
class Mending:
    """What becomes of the rows of a dataset whose operations are wrong, in fractions of them."""

    dataset: str
    mended: float
    followed: float
    harmless: float
    all_rows: float
    """Mended rows among all rows."""
    direct: float | None
    """Rows that direct has right; None if it is not stored."""


def render_two_stages(reproduced: Path) -> list[str]:
    """Return the part: each stored study with its claim, the reason as far as it shows, and its pages."""
    studies = [folder for folder in sorted(reproduced.glob("*")) if (folder / "architectures.md").is_file()]
    if not studies:
        return [_INTRO, _NONE]
    parts = [_INTRO]
    for study in studies:
        parts += [f"### Models that start from {plain(study.name)}", *_claim(study)]
        note = study / _NOTE
        if note.is_file():
            parts.append(from_docs(note.read_text(encoding="utf-8"), note).strip())
        for name, heading in PAGES.items():
            file = study / f"{name}.md"
            parts.append(f"#### {plain(heading)}")
            if file.is_file():
                text = embed(file.read_text(encoding="utf-8"), file)
                parts.append(text if name == _RUNS_SHOWN else without_runs(text))
            else:
                parts.append(f"Not stored: `{file.parent.name}/{file.name}`.")
    return parts


def embed(page: str, file: Path) -> str:
    """Return a page without its title, its headings made bold lines, and its pictures found from lab/docs/."""
    lines = page.strip().splitlines()[1:]
    text = "\n".join(f"**{line.lstrip('# ')}**" if line.startswith("## ") else line for line in lines)
    return from_docs(text, file).strip()


def from_docs(text: str, file: Path) -> str:
    """Return a text whose links to the files beside it lead there from lab/docs/."""
    return re.sub(r"\]\(([^)/#]+)\)", rf"](../results/reproduce/{file.parent.name}/\1)", text)


def without_runs(text: str) -> str:
    """Return a page without the table of its runs and the command that made it."""
    return re.split(r"^(?:\*\*Runs\*\*|Made by )", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def read_mending(study: Path, dataset: str) -> Mending | None:
    """Return what becomes of wrong operations in the two separate stages; None if that is not stored."""
    file = study / Run(dataset, TEO.kind).name / f"{dataset}-test-{TEO.variant}.json"
    if not file.is_file():
        return None
    flow = json.loads(file.read_text(encoding="utf-8"))["stage_flow"]
    wrong = flow["wrong_right"] + flow["wrong_wrong"]
    if not wrong:
        return None
    beside = study / Run(dataset, DIRECT.kind).name / f"{dataset}-test-{DIRECT.variant}.json"
    direct = None
    if beside.is_file():
        right = read_right(beside)
        direct = sum(right[key] for key, known in read_operations_right(file).items() if not known) / wrong
    return Mending(
        DATASETS[dataset],
        mended=flow["wrong_right"] / wrong,
        followed=flow["wrong_followed"] / wrong,
        harmless=flow["wrong_harmless"] / wrong,
        all_rows=flow["wrong_right"] / flow["n"],
        direct=direct,
    )


def _claim(study: Path) -> Iterable[str]:
    """Yield what the study tests, and how many rows stage 2 mends."""
    yield (
        "The paper's central claim is that two stages beat rewriting at once. The first table below tests it on the "
        'same\nrows; "undecided" means that the difference may be chance.'
    )
    known = [mending for dataset in DATASETS if (mending := read_mending(study, dataset))]
    if not known:
        yield "How much stage 2 mends cannot be said yet: no evaluation of separate stages is stored."
        return
    yield "**How much does stage 2 mend?**\n\n" + "\n".join(f"- {_sentence(mending)}" for mending in known)


def _sentence(mending: Mending) -> str:
    direct = "" if mending.direct is None else f"; direct has {percent(mending.direct)}% of these rows right"
    return (
        f"{mending.dataset}: {percent(mending.all_rows)}% of all rows, which is {percent(mending.mended)}% of those "
        f"with wrong operations. It follows wrong operations in {percent(mending.followed)}%, and in "
        f"{percent(mending.harmless)}% they are harmless{direct}."
    )
