"""Stored results, read and checked: what others published (published.json) and what we measured."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from teo.errors import InputError

DATASETS: Mapping[str, str] = {
    "rewrite": "REWRITE",
    "task": "TASK",
    "res200k": "RES200K",
    "canard": "CANARD",
    "followup": "FollowUp",
}
"""The datasets that have a table, in its order, and what their authors call them."""
SPLITS = ("test", "dev", "valid")
_PAPER = "Cao et al. 2025"
_ELSEWHERE = ("GPT-4",)
"""Systems of the paper that stand in none of its tables 2 to 5."""
PUBLISHED_METRICS = (
    *("em", "bleu1", "bleu2", "bleu3", "bleu4", "rouge1", "rouge2", "rougeL"),
    *("p1", "r1", "f1", "p2", "r2", "f2", "p3", "r3", "f3"),
    *("em_complete", "stage1_em", "e2c", "c2e"),
)
"""What a published row may hold, in percent; p, r and f are precision, recall and F of restoration."""
OUR_METRICS = (
    *("em", "bleu1", "bleu2", "bleu3", "bleu4", "rouge1", "rouge2", "rougeL_rouge_0_3_2", "rougeL_rouge_1_0_1"),
    *("run_f1", "run_f2", "run_f3"),
)
"""What a stored evaluation must hold, as fractions; it may hold more."""
_NAME = re.compile(rf"({'|'.join(DATASETS)})-([^-]+)(-.+)?\.json")
_EXPECTED = {
    "string_too_short": "some text",
    "string_type": "some text",
    "float_type": "a number",
    "model_type": "an object",
    "mapping_type": "an object",
}
"""What a fault that pydantic found expected, if its own words are those of Python."""
_CARD = '{"pretraining": "...", "trained_on": "..."}'

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Fraction = Annotated[float, Field(ge=0, le=1, strict=True)]
Percentage = Annotated[float, Field(ge=0, le=100, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
_Model = TypeVar("_Model", bound=BaseModel)


class _Exact(BaseModel):
    """A file written by hand: a key that is not known is a typo."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Open(BaseModel):
    """A file that `teo evaluate` wrote: it may hold more than the page shows."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Published(_Exact):
    """A row of a published table."""

    dataset: Literal["rewrite", "task", "res200k", "canard", "followup"]
    system: Text
    pretraining: Text
    metrics: Mapping[str, Percentage | None]
    """In percent, as printed; what was not printed is None or left out."""
    source: Text
    cites: Text | None = None
    note: Text | None = None

    @field_validator("metrics")
    @classmethod
    def _require_known(cls, metrics: Mapping[str, float | None]) -> Mapping[str, float | None]:
        if unknown := [name for name in metrics if name not in PUBLISHED_METRICS]:
            raise ValueError(f"only {', '.join(PUBLISHED_METRICS)}; remove '{unknown[0]}'")
        if "em" not in metrics:
            raise ValueError("a number for em, or null if none was printed")
        return metrics


class Card(_Exact):
    """What a model was trained on: lab/results/MODEL/model.json."""

    pretraining: Text
    trained_on: Text


class Intervals(_Open):
    """The 95% intervals that the page shows."""

    em: tuple[Fraction, Fraction]


class Group(_Open):
    """Rows of one kind; a group without rows has no EM."""

    n: Count
    em: Fraction | None = None

    @model_validator(mode="after")
    def _require_em(self) -> Self:
        if self.n and self.em is None:
            raise ValueError(f"em for a group of {self.n} rows")
        return self


class Breakdown(_Open):
    """EM on the utterances that need no rewriting, and on those that do."""

    complete: Group
    incomplete: Group


class Flow(_Open):
    """What stage 2 makes of right and wrong operations."""

    stage1_em: Fraction | None = None
    e2c: Fraction | None = None
    c2e: Fraction | None = None


class StoredSettings(_Open):
    """What was evaluated; two evaluations of equal settings are the same one."""

    data: Text
    split: Text
    variant: Text
    options: Mapping[str, str]
    model: Text
    model_hash: Text
    data_hash: Text
    seed: int
    precision: Text


class StoredRun(_Open):
    """The circumstances of an evaluation."""

    git_commit: str | None
    limit: Count | None


class Evaluation(_Open):
    """The metrics.json of `teo evaluate`, as far as the page shows it."""

    n: Count
    em: Fraction
    bleu1: Fraction
    bleu2: Fraction
    bleu3: Fraction
    bleu4: Fraction
    rouge1: Fraction
    rouge2: Fraction
    rougeL_rouge_0_3_2: Fraction  # noqa: N815
    rougeL_rouge_1_0_1: Fraction  # noqa: N815
    run_f1: Fraction
    run_f2: Fraction
    run_f3: Fraction
    intervals: Intervals
    breakdown: Breakdown
    stage_flow: Flow | None
    signatures: Mapping[str, Text]
    settings: StoredSettings
    run: StoredRun

    @field_validator("signatures")
    @classmethod
    def _require_all(cls, signatures: Mapping[str, str]) -> Mapping[str, str]:
        if missing := [name for name in (*OUR_METRICS, "em_complete", "intervals") if name not in signatures]:
            raise ValueError(f"one for each metric, {missing[0]} too")
        return signatures

    @model_validator(mode="after")
    def _require_all_rows(self) -> Self:
        if self.run.limit is not None and self.settings.split == "test":
            raise ValueError(f"all rows of the test set, found the first {self.n}; evaluate without --limit")
        return self


@dataclass(frozen=True, slots=True)
class Stored:
    """An evaluation of ours, stored as lab/results/MODEL/DATASET-SPLIT.json, and what its model was trained on."""

    file: str
    model: str
    metrics: Evaluation
    card: Card

    @property
    def settings(self) -> StoredSettings:
        """What was evaluated."""
        return self.metrics.settings

    @property
    def name(self) -> str:
        """The model and the variant, with the dataset's options if there are any."""
        options = ", ".join(f"{name}={value}" for name, value in self.settings.options.items())
        return f"{self.model}, {self.settings.variant}" + (f" ({options})" if options else "")


def read_published(path: Path) -> list[Published]:
    """Return the published rows in the order of the file, which is that of the papers' tables."""
    file = read_json(path)
    if not isinstance(file.get("rows"), list):
        raise InputError(f'{path}: rows: missing; expected {{"rows": [...]}}')
    rows: list[Published] = []
    for number, value in enumerate(file["rows"], start=1):
        at = f"{path}: row {number}"
        row = _check(Published, value, at)
        if any((other.dataset, other.system) == (row.dataset, row.system) for other in rows):
            raise InputError(f"{at}: expected each system once for a dataset, found {row.system} again; remove one")
        rows.append(row)
    return rows


def read_paper(path: Path) -> list[Published]:
    """Return the paper's rows of tables 2 to 5 in the order of the file; those of other papers are left out."""
    return [row for row in read_published(path) if row.source.startswith(_PAPER) and row.system not in _ELSEWHERE]


def read_ours(results: Path) -> list[Stored]:
    """Return our stored evaluations; other files of the folder are skipped."""
    ours: list[Stored] = []
    for path in sorted(results.glob("*/*.json")):
        named = _NAME.fullmatch(path.name)
        if named is None:
            continue
        metrics = _check(Evaluation, read_json(path), str(path))
        _check_name(metrics.settings, named, path)
        for other in ours:
            if other.settings == metrics.settings:
                raise InputError(f"{path}: expected another evaluation, found that of {other.file} again; remove one")
        card = path.with_name("model.json")
        if not card.is_file():
            raise InputError(f"{card}: no such file; say what {path.name}'s model was trained on: {_CARD}")
        file = path.relative_to(results.parent).as_posix()
        ours.append(Stored(file, path.parent.name, metrics, _check(Card, read_json(card), str(card))))
    return ours


def _check_name(settings: StoredSettings, named: re.Match[str], path: Path) -> None:
    if named[2] not in SPLITS:
        raise InputError(f"{path}: expected a name DATASET-SPLIT.json with a split of {', '.join(SPLITS)}")
    if (named[1], named[2]) != (settings.data, settings.split):
        raise InputError(f"{path}: expected {named[1]} ({named[2]}), found {settings.data} ({settings.split})")


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; a file that is none is named."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number")

    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: expected JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object, found {json.dumps(value)[:40]}")
    return value


def _check(model: type[_Model], value: object, at: str) -> _Model:
    """Return the checked value; its first fault is named by file and field: expected, found, what to do."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    where = ": ".join([at, *(str(part) for part in fault["loc"])])
    if fault["type"] == "missing":
        raise InputError(f"{where}: missing")
    if fault["type"] == "extra_forbidden":
        known = ", ".join(model.model_fields)
        raise InputError(f"{where}: expected only {known}; remove this key or correct its name")
    words = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    expected = _EXPECTED.get(fault["type"], words)
    found = "" if fault["type"] == "value_error" else f", found {json.dumps(fault['input'])[:40]}"
    raise InputError(f"{where}: expected {expected}{found}")
