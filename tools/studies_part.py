"""The part of docs/results.md on the two-stage method: what `teo reproduce` stored in results/reproduce/BASE."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from teo.evaluation.markdown import percent, plain
from teo.evaluation.storing import read_operations_right, read_right
from teo.study.experiments import DATASETS, DIRECT, TEO, Run

PAGES: Mapping[str, str] = {
    "forms": "Separate, shared, fused",
    "table5": "Table 5: stage-1 EM, E2C and C2E",
    "figure2": "Figure 2: right and wrong in both stages",
    "figure3": "Figure 3: EM against prob_p",
    "errors": "Section 4.9: operations and errors by kind",
    "cases": "The paper's examples",
}
"""The pages of a study that are shown, and their headings here."""
_INTRO = """\
## The two stages, trained

The tables above hold no model of two separately trained stages. Their rows `fused` are of one decoder that writes the
operations and then the rewrite; `gold` gives that decoder the operations of the reference, `stage1` executes its
operations by rule, and `direct` and `fast` are of the same weights. The models in this part are trained apart, each on
one dataset and all from the same base: **separate** has a set of weights for each stage, as in the paper, **shared**
has one set for both stages, **fused** has one decoder for both texts, **direct** has no operations."""
_NONE = """\
Nothing is stored yet. `teo reproduce all --base teo-base --data DIR` trains and measures all of it, and
`python tools/results_page.py` puts it here."""
_WHY = """\
Three causes can be told apart by these figures. *Trust*: the more often stage 2 follows wrong operations, the less it
can mend. *Nothing to mend with*: direct starts from the same pretrained weights and never sees the operations; where it
is wrong too, stage 2 has no better knowledge to set against them, since it also starts from the weights of stage 1.
*Counting*: operations that are harmless count as wrong in stage 1 and, where stage 2 follows them, as mended. The paper
does not say which longest common subsequence gives its operations, so it is not known how many of its 5 to 8% are such
rows. Not measured is whether the noise of algorithm 1, which drops operations or takes random spans of the history, is
too unlike the mistakes of a trained stage 1 to teach stage 2 to find them; figure 3, and the row of table 3 whose
stage 2 was trained on predicted operations, bear on that."""


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
    """Rows that direct has right; None where it is not stored."""


def render_studies(reproduced: Path) -> list[str]:
    """Return the part: each stored study with its claim, the reason as far as it shows, and its pages."""
    studies = [folder for folder in sorted(reproduced.glob("*")) if (folder / "forms.md").is_file()]
    if not studies:
        return [_INTRO, _NONE]
    parts = [_INTRO]
    for study in studies:
        parts += [f"### Models that start from {plain(study.name)}", *_claim(study)]
        for name, heading in PAGES.items():
            file = study / f"{name}.md"
            parts.append(f"#### {plain(heading)}")
            if file.is_file():
                parts.append(embed(file.read_text(encoding="utf-8"), file))
            else:
                parts.append(f"Not stored: `{file.parent.name}/{file.name}`.")
    return parts


def embed(page: str, file: Path) -> str:
    """Return a page without its title, its headings made bold lines, and its pictures found from docs/."""
    lines = page.strip().splitlines()[1:]
    text = "\n".join(f"**{line.lstrip('# ')}**" if line.startswith("## ") else line for line in lines)
    place = f"../results/reproduce/{file.parent.name}"
    return re.sub(r"!\[([^\]]*)\]\(([^)]+)\)", rf"![\1]({place}/\2)", text).strip()


def read_mending(study: Path, dataset: str) -> Mending | None:
    """Return what becomes of wrong operations in the two separate stages; None where that is not stored."""
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
    """Yield the verdicts on the claim that two stages beat one, and why so few rows are mended."""
    yield (
        "The paper's central claim is that two stages beat rewriting at once. The first table below tests it on "
        'the same rows; "undecided" means that the difference may be chance.'
    )
    known = [mending for dataset in DATASETS if (mending := read_mending(study, dataset))]
    if not known:
        yield "Why stage 2 mends what it mends cannot be said yet: no evaluation of separate stages is stored."
        return
    yield "**How much does stage 2 mend?** " + " ".join(map(_sentence, known))
    yield _WHY


def _sentence(mending: Mending) -> str:
    direct = "" if mending.direct is None else f"; direct has {percent(mending.direct)}% of these rows right"
    return (
        f"{mending.dataset}: {percent(mending.all_rows)}% of all rows, which is {percent(mending.mended)}% of those "
        f"with wrong operations. It follows wrong operations in {percent(mending.followed)}%, and in "
        f"{percent(mending.harmless)}% they are harmless{direct}."
    )
