"""Every kind of row that the lab makes, in one place: a recipe in, rows that `teo train` reads out."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from zlib import crc32

from teo.data.row import Row
from teo.errors import DataError
from teo.files import open_text, write_jsonl
from teo.training.rows import read_rows
from teo.training.unchanged import identity_rows
from teo_lab.paths import ROWS, require_rows
from teo_lab.rows.choices import Language
from teo_lab.rows.closeness import whole_benchmark
from teo_lab.rows.counting import counting_rows
from teo_lab.rows.dialogues import dialogue_rows, drawn_rows
from teo_lab.rows.everyday import everyday_rows
from teo_lab.rows.followups import request_rows
from teo_lab.rows.labels import read_labels, read_sampled
from teo_lab.rows.mudoco import mudoco_rows
from teo_lab.rows.requests import Request, read_requests
from teo_lab.rows.settings import RowsRecipe
from teo_lab.rows.switches import History, reaction_rows, row_histories, switch_rows
from teo_lab.rows.variations import polite_rows, renamed_rows, typed_rows, unrelated_rows

OWN = "own"
"""Instead of a path: the answers, or the sampled rows, of lab/rows."""

logger = logging.getLogger(__name__)


def build_rows(recipe: RowsRecipe, out: Path) -> int:
    """Write the rows of a recipe as JSONL, in random order, and return how many there are.

    Rows that are held out go to a file beside it, whose name ends with `-held`, each different one once.
    """
    made = make_rows(recipe, read_lenders(recipe))
    random.Random(f"order/{recipe.seed}").shuffle(made)
    out.parent.mkdir(parents=True, exist_ok=True)
    if recipe.held:
        held = [row for row in made if _is_held(row, recipe.held)]
        different = {(row.dialogue, row.rewrite): row for row in held}
        count = write_jsonl(out.with_stem(f"{out.stem}-held"), (row.to_dict() for row in different.values()))
        logger.info("%d different rows held out", count)
        left_out = {row.rewrite for row in held}
        made = [row for row in made if row.rewrite not in left_out]
    return write_jsonl(out, (row.to_dict() for row in made))


def _is_held(row: Row, every: int) -> bool:
    """Tell whether a row is held out; its variations have the same rewrite, so that they are too."""
    return crc32(row.rewrite.casefold().encode()) % every == 0


def read_lenders(recipe: RowsRecipe) -> list[Row]:
    """Return the rows of the recipe's datasets, which lend rewrites and histories."""
    datasets = [replace(data, repeat=1, dev="") for data in recipe.data]
    return read_rows(datasets, Path(), writes=False).train


def make_rows(recipe: RowsRecipe, rows: Sequence[Row] = ()) -> list[Row]:
    """Return the rows of a recipe, and log how many there are of each kind.

    `rows` lend rewrites and histories; they are not in what is returned.
    """
    require_rows()
    made: list[Row] = []
    for kind, added in _kinds(recipe, rows):
        logger.info("%d rows of %s", len(added), kind)
        made += added
    for kind, added in _variations(recipe, [*rows, *made]):
        logger.info("%d rows of %s", len(added), kind)
        made += added
    return made


def _kinds(recipe: RowsRecipe, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the kinds that are asked for, each with its rows."""
    if recipe.identity or recipe.foreign:
        yield "identity", list(identity_rows(rows, recipe.identity, recipe.foreign, recipe.seed))
    yield from _written_kinds(recipe)
    yield from _request_kinds(recipe, rows)
    if recipe.mudoco:
        yield "MuDoCo-QR", _copy_mudoco(Path(recipe.mudoco), recipe.mudoco_copies)
    if recipe.labels:
        yield "labels", _draw_labels(Path(recipe.labels), recipe.labels_rows, recipe.seed)
    if recipe.sampled:
        least = recipe.sampled_logprob or -inf
        sampled = read_sampled(_find(recipe.sampled, "sampled"), recipe.openings, least)
        yield "sampled", [row for row in sampled if not _is_close(row)]


def _variations(recipe: RowsRecipe, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield copies of rows with a difference that should not matter."""
    makers = {"unrelated": unrelated_rows, "polite": polite_rows, "typed": typed_rows, "renamed": renamed_rows}
    for kind, make in makers.items():
        share = getattr(recipe, kind)
        if share:
            yield kind, list(make(rows, share, recipe.seed))


def _written_kinds(recipe: RowsRecipe) -> Iterator[tuple[str, list[Row]]]:
    """Yield what was written for training: hand-written dialogues, and templates and lists filled in."""
    languages: tuple[Language, ...] = ("en", "zh")
    makers: dict[str, Callable[[Language, int], Iterable[Row]]] = {
        "everyday": lambda language, count: _everyday(language, count, recipe),
        "dialogues": lambda language, copies: dialogue_rows(language, copies, recipe.seed),
        "drawn": lambda language, count: drawn_rows(
            language, count, recipe.seed, getattr(recipe, f"drawn_files_{language}")
        ),
        "counting": lambda language, count: counting_rows(language, count, recipe.seed),
    }
    for kind, make in makers.items():
        for language in languages:
            count = getattr(recipe, f"{kind}_{language}")
            if count:
                yield f"{kind}-{language}", list(make(language, count))


def _request_kinds(recipe: RowsRecipe, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield what is made of complete requests and reactions."""
    requests: dict[Language, list[Request]] = {}
    counts: dict[Language, int] = {"en": recipe.requests_en, "zh": recipe.requests_zh}
    for language, count in counts.items():
        if count or recipe.switches:
            requests[language] = read_requests(Path(recipe.requests), language, recipe.request_sources)
        if count:
            yield f"requests-{language}", list(request_rows(requests[language], language, count, recipe.seed))
    if recipe.switches or recipe.reactions:
        histories = row_histories([*rows, *_written_once(recipe)])
        histories += read_answers(recipe.answers) if recipe.answers else []
        if recipe.switches:
            texts = [request.text for found in requests.values() for request in found]
            yield "switches", list(switch_rows(histories, texts, recipe.switches, recipe.seed))
        if recipe.reactions:
            yield "reactions", list(reaction_rows(histories, recipe.reactions, recipe.seed))


def _written_once(recipe: RowsRecipe) -> list[Row]:
    """Return the hand-written rows of the languages that the recipe takes them in."""
    copies: dict[Language, int] = {"en": recipe.dialogues_en, "zh": recipe.dialogues_zh}
    return [row for language, count in copies.items() if count for row in dialogue_rows(language, 1, recipe.seed)]


def _everyday(language: Language, count: int, recipe: RowsRecipe) -> list[Row]:
    answers: dict[str, str] = {}
    if recipe.answers and language == "en":
        answers = {history[0]: history[1] for history in read_answers(recipe.answers)}
    return list(everyday_rows(language, count, recipe.seed, answers=answers))


def _is_close(row: Row) -> bool:
    """Tell whether a row is close to a dialogue of the English benchmark, which a teacher may have hit by chance."""
    return whole_benchmark("en").find_close(row.dialogue.history, row.dialogue.utterance) is not None


def _copy_mudoco(folder: Path, copies: int) -> list[Row]:
    rows = [row for name in ("train.jsonl", "dev.jsonl") for row in mudoco_rows(folder / name, "train")]
    return [replace(row, id=f"{row.id}#{copy}") for copy in range(copies) for row in rows]


def _draw_labels(path: Path, count: int, seed: int) -> list[Row]:
    """Return `count` labelled rows, half of them changed if there are enough."""
    rows = list(read_labels(path))
    random.Random(f"labels/{seed}").shuffle(rows)
    changed = [row for row in rows if not row.is_complete]
    unchanged = [row for row in rows if row.is_complete]
    half = max(count // 2, count - len(unchanged))
    return [*changed[:half], *unchanged[: count - min(half, len(changed))]]


def _find(name: str, kind: str) -> Path:
    """Return the path of a file, or of the lab's own of that kind."""
    return ROWS / kind / "en.jsonl.xz" if name == OWN else Path(name)


def read_answers(name: str) -> list[History]:
    """Return the questions and answers of a JSONL file, packed with xz or not, each pair as a history."""
    path = _find(name, "answers")
    if not path.is_file():
        raise DataError(f'{path}: no such file; expected JSON lines of {{"question", "answer"}}, or "{OWN}"')
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
