"""Stored results, read and checked: what others published (published.json) and what we measured."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

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
PUBLISHED_METRICS = frozenset(
    (
        *("em", "bleu1", "bleu2", "bleu3", "bleu4", "rouge1", "rouge2", "rougeL"),
        *("p1", "r1", "f1", "p2", "r2", "f2", "p3", "r3", "f3"),
        *("em_complete", "stage1_em", "e2c", "c2e"),
    )
)
"""What a published row may hold, in percent; p, r and f are precision, recall and F of restoration."""
OUR_METRICS = (
    *("em", "bleu1", "bleu2", "bleu3", "bleu4", "rouge1", "rouge2", "rougeL_rouge_0_3_2", "rougeL_rouge_1_0_1"),
    *("run_f1", "run_f2", "run_f3"),
)
"""What a stored evaluation must hold, as fractions; it may hold more."""
_NAME = re.compile(rf"({'|'.join(DATASETS)})-([^-]+)(-.+)?\.json")
_CARD = '{"pretraining": "...", "trained_on": "..."}'


@dataclass(frozen=True, slots=True)
class Published:
    """A row of a published table."""

    dataset: str
    system: str
    pretraining: str
    metrics: Mapping[str, float | None]
    """In percent, as printed; what was not printed is None or left out."""
    source: str
    cites: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """An evaluation of ours: the metrics.json of `teo evaluate`, kept as results/MODEL/DATASET-SPLIT.json."""

    file: str
    model: str
    metrics: Mapping[str, Any]
    pretraining: str
    trained_on: str

    @property
    def settings(self) -> Mapping[str, Any]:
        """What was evaluated: data, split, variant, options, seed, hashes."""
        settings: Mapping[str, Any] = self.metrics["settings"]
        return settings

    @property
    def name(self) -> str:
        """The model and the variant, with the dataset's options where there are any."""
        options = ", ".join(f"{name}={value}" for name, value in self.settings["options"].items())
        return f"{self.model}, {self.settings['variant']}" + (f" ({options})" if options else "")


def read_published(path: Path) -> list[Published]:
    """Return the published rows in the order of the file, which is that of the papers' tables."""
    rows: list[Published] = []
    for number, row in enumerate(_get(_read(path), f"{path}", "rows", list), start=1):
        place = f"{path}: row {number}"
        if not isinstance(row, dict):
            raise InputError(f"{place}: expected an object, found {_kind(row)}")
        _refuse_others(row, {"dataset", "system", "pretraining", "metrics", "source", "cites", "note"}, place)
        texts = {name: _text(row, place, name) for name in ("dataset", "system", "pretraining", "source")}
        optional = {name: _text(row, place, name) for name in ("cites", "note") if row.get(name) is not None}
        if texts["dataset"] not in DATASETS:
            raise InputError(f"{place}: dataset: expected one of {', '.join(DATASETS)}, found '{texts['dataset']}'")
        metrics = _get(row, place, "metrics", dict)
        _refuse_others(metrics, PUBLISHED_METRICS, f"{place}: metrics")
        if "em" not in metrics:
            raise InputError(f"{place}: metrics: em: missing; expected a number, or null where none was printed")
        for name, value in metrics.items():
            if value is not None:
                _check_number(value, 100, f"{place}: metrics: {name}", "a percentage from 0 to 100, or null")
        one = Published(**texts, metrics=metrics, **optional)
        if any((other.dataset, other.system) == (one.dataset, one.system) for other in rows):
            raise InputError(f"{place}: expected each system once for a dataset, found {one.system} again")
        rows.append(one)
    return rows


def read_ours(results: Path) -> list[Stored]:
    """Return our stored evaluations; other files of the folder are left alone."""
    found: list[Stored] = []
    for path in sorted(results.glob("*/*.json")):
        named = _NAME.fullmatch(path.name)
        if named is None:
            continue
        metrics = _read(path)
        _check_metrics(metrics, path)
        _check_name(metrics["settings"], named, path)
        for other in found:
            if other.settings == metrics["settings"]:
                raise InputError(f"{path}: expected another evaluation, found that of {other.file} again; remove one")
        card = path.with_name("model.json")
        if not card.is_file():
            raise InputError(f"{card}: no such file; say what {path.name}'s model was trained on: {_CARD}")
        about = _read(card)
        _refuse_others(about, {"pretraining", "trained_on"}, str(card))
        said = _text(about, str(card), "pretraining"), _text(about, str(card), "trained_on")
        file = path.relative_to(results.parent).as_posix()
        found.append(Stored(file, path.parent.name, metrics, *said))
    return found


def _check_metrics(metrics: Mapping[str, Any], path: Path) -> None:
    place = str(path)
    rows = _get(metrics, place, "n", int)
    for name in OUR_METRICS:
        _check_number(_get(metrics, place, name, object), 1, f"{place}: {name}")
    intervals = _get(metrics, place, "intervals", dict)
    interval = _get(intervals, f"{place}: intervals", "em", list)
    if len(interval) != 2:
        raise InputError(f"{place}: intervals: em: expected two numbers, found {len(interval)}")
    for value in interval:
        _check_number(value, 1, f"{place}: intervals: em")
    broken = _get(metrics, place, "breakdown", dict)
    for group in ("complete", "incomplete"):
        one = _get(broken, f"{place}: breakdown", group, dict)
        if _get(one, f"{place}: breakdown: {group}", "n", int):
            _check_number(one.get("em"), 1, f"{place}: breakdown: {group}: em")
    flow = _get(metrics, place, "stage_flow", (dict, type(None)))
    for name in ("stage1_em", "e2c", "c2e") if flow is not None else ():
        if flow.get(name) is not None:
            _check_number(flow[name], 1, f"{place}: stage_flow: {name}")
    signatures = _get(metrics, place, "signatures", dict)
    for name in (*OUR_METRICS, "em_complete", "intervals"):
        _text(signatures, f"{place}: signatures", name)
    settings = _get(metrics, place, "settings", dict)
    for name in ("data", "split", "variant", "model", "model_hash", "data_hash", "precision"):
        _text(settings, f"{place}: settings", name)
    _get(settings, f"{place}: settings", "options", dict)
    _get(settings, f"{place}: settings", "seed", int)
    run = _get(metrics, place, "run", dict)
    _get(run, f"{place}: run", "git_commit", (str, type(None)))
    limit = _get(run, f"{place}: run", "limit", (int, type(None)))
    if limit is not None and settings["split"] == "test":
        raise InputError(
            f"{place}: expected all rows of the test set, found the first {rows}; evaluate without --limit"
        )


def _check_name(settings: Mapping[str, Any], named: re.Match[str], path: Path) -> None:
    if named[2] not in SPLITS:
        raise InputError(f"{path}: expected a name DATASET-SPLIT.json with a split of {', '.join(SPLITS)}")
    if (named[1], named[2]) != (settings["data"], settings["split"]):
        raise InputError(f"{path}: expected {named[1]} ({named[2]}), found {settings['data']} ({settings['split']})")


def _read(path: Path) -> dict[str, Any]:
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
        raise InputError(f"{path}: expected an object, found {_kind(value)}")
    return value


def _get(value: Mapping[str, Any], place: str, name: str, kind: type | tuple[type, ...]) -> Any:
    if name not in value:
        raise InputError(f"{place}: {name}: missing")
    if not isinstance(value[name], kind):
        expected = kind if isinstance(kind, type) else kind[0]
        raise InputError(f"{place}: {name}: expected {_KINDS[expected]}, found {_kind(value[name])}")
    return value[name]


def _text(value: Mapping[str, Any], place: str, name: str) -> str:
    text: str = _get(value, place, name, str)
    if not text.strip():
        raise InputError(f"{place}: {name}: expected some text, found none")
    return text


def _check_number(value: object, most: int, place: str, expected: str = "a fraction from 0 to 1") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        found = value if isinstance(value, int | float) else _kind(value)
        raise InputError(f"{place}: expected {expected}, found {found}")


def _refuse_others(value: Mapping[str, Any], known: frozenset[str] | set[str], place: str) -> None:
    for name in value:
        if name not in known:
            raise InputError(f"{place}: expected only {', '.join(sorted(known))}; found '{name}'")


_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS[type(value)]
