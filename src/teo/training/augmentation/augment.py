"""Every kind of row that is added to a run's datasets, made in one place."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from teo.data.row import Row
from teo.errors import DataError
from teo.files import open_text
from teo.training.augmentation.choices import Language
from teo.training.augmentation.counting import counting_rows
from teo.training.augmentation.dialogues import dialogue_rows
from teo.training.augmentation.followups import request_rows
from teo.training.augmentation.identity import identity_rows
from teo.training.augmentation.labels import read_labels, read_sampled
from teo.training.augmentation.mudoco import mudoco_rows
from teo.training.augmentation.requests import Request, read_requests
from teo.training.augmentation.settings import AugmentationSettings
from teo.training.augmentation.switches import History, reaction_rows, row_histories, switch_rows

PACKAGE = "package"
"""In the place of a file: the answers, or the sampled rows, that come with the package."""

logger = logging.getLogger(__name__)


def augment(settings: AugmentationSettings, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that come in addition to `rows`, and log how many there are of each kind.

    `rows` lend rewrites and histories; they are not in what is returned.
    """
    made: list[Row] = []
    for kind, added in _kinds(settings, rows):
        logger.info("augmentation: %d rows of %s", len(added), kind)
        made += added
    return made


def _kinds(settings: AugmentationSettings, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the kinds that are asked for, each with its rows."""
    if settings.identity or settings.foreign:
        yield "identity", list(identity_rows(rows, settings.identity, settings.foreign, settings.seed))
    yield from _written_kinds(settings)
    yield from _request_kinds(settings, rows)
    if settings.mudoco:
        yield "MuDoCo-QR", _copy_mudoco(Path(settings.mudoco), settings.mudoco_copies)
    if settings.labels:
        yield "labels", _draw_labels(Path(settings.labels), settings.labels_rows, settings.seed)
    if settings.sampled:
        yield "sampled", list(read_sampled(_find(settings.sampled, "sampled")))


def _written_kinds(settings: AugmentationSettings) -> Iterator[tuple[str, list[Row]]]:
    """Yield what was written for training: frames and lists filled in, and whole dialogues."""
    languages: tuple[Language, ...] = ("en", "zh")
    makers: dict[str, Callable[[Language, int], Iterable[Row]]] = {
        "everyday": lambda language, count: _everyday(language, count, settings),
        "dialogues": lambda language, copies: dialogue_rows(language, copies, settings.seed),
        "counting": lambda language, count: counting_rows(language, count, settings.seed),
    }
    for kind, make in makers.items():
        for language in languages:
            count = getattr(settings, f"{kind}_{language}")
            if count:
                yield f"{kind}-{language}", list(make(language, count))


def _request_kinds(settings: AugmentationSettings, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield what is made of complete requests and reactions."""
    requests: dict[Language, list[Request]] = {}
    counts: dict[Language, int] = {"en": settings.requests_en, "zh": settings.requests_zh}
    for language, count in counts.items():
        if count or settings.switches:
            requests[language] = read_requests(Path(settings.requests), language)
        if count:
            yield f"requests-{language}", list(request_rows(requests[language], language, count, settings.seed))
    if settings.switches or settings.reactions:
        histories = row_histories(rows) + (read_answers(settings.answers) if settings.answers else [])
        if settings.switches:
            texts = [request.text for found in requests.values() for request in found]
            yield "switches", list(switch_rows(histories, texts, settings.switches, settings.seed))
        if settings.reactions:
            yield "reactions", list(reaction_rows(histories, settings.reactions, settings.seed))


def _everyday(language: Language, count: int, settings: AugmentationSettings) -> list[Row]:
    # Imported here: the frames are read and checked only where they are asked for.
    from teo.training.augmentation.frames import make_rows

    answers: dict[str, str] = {}
    if settings.answers and language == "en":
        answers = {history[0]: history[1] for history in read_answers(settings.answers)}
    return list(make_rows(language, count, settings.seed, answers=answers))


def _copy_mudoco(folder: Path, copies: int) -> list[Row]:
    rows = [row for name in ("train.jsonl", "dev.jsonl") for row in mudoco_rows(folder / name, "train")]
    return [replace(row, id=f"{row.id}#{copy}") for copy in range(copies) for row in rows]


def _draw_labels(path: Path, count: int, seed: int) -> list[Row]:
    """Return as many labelled rows as asked for, half of them changed where there are enough."""
    rows = list(read_labels(path))
    random.Random(f"labels/{seed}").shuffle(rows)
    changed = [row for row in rows if not row.is_complete]
    kept = [row for row in rows if row.is_complete]
    half = max(count // 2, count - len(kept))
    return [*changed[:half], *kept[: count - min(half, len(changed))]]


def _find(name: str, kind: str) -> Path:
    """Return the path of a file, or of what comes with the package of that kind."""
    return Path(__file__).parent / kind / "en.jsonl.xz" if name == PACKAGE else Path(name)


def read_answers(name: str) -> list[History]:
    """Return the questions and answers of a JSONL file, packed with xz or not, each pair as a history."""
    path = _find(name, "answers")
    if not path.is_file():
        raise DataError(f'{path}: no such file; expected JSON lines of {{"question", "answer"}}, or "{PACKAGE}"')
    histories: list[History] = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                histories.append((str(value["question"]), str(value["answer"])))
            except (json.JSONDecodeError, KeyError, TypeError):
                found = line.strip()[:60]
                raise DataError(f'{path}:{number}: expected {{"question", "answer"}}, found {found!r}') from None
    return histories
