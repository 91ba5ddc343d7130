"""A batch job in this process: one row for each row, errors in their place, stopping and going on."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import Shouting, contents, make_rows, read_output, write_rows
from teo.errors import InputError, TeoError
from teo.scale.job import Job, StoppedError, run_job
from teo.scale.rows import Columns
from teo.scale.stores import LocalStore
from teo.scale.worker import ModelChoice


def test_every_row_has_its_record_in_its_place(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    rows = make_rows(95)
    totals, progress = run_job(make_job(write_rows(tmp_path / "in.jsonl", rows)))
    records = read_output(tmp_path / "out")
    assert [record["id"] for record in records] == list(range(95))
    assert [record["rewrite"] for record in records] == [row["utterance"].upper() for row in rows]
    assert {record["note"] for record in records} == {"é 字"}
    assert not {"history", "utterance"} & set(records[0])
    assert (totals.rows, totals.errors, totals.changed) == (95, 0, 95)
    assert (progress.done, progress.before, len(list((tmp_path / "out").glob("part-*.jsonl")))) == (95, 0, 10)


def test_a_dialogue_is_decided_once_and_batches_have_rows_of_like_length(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    rows = [{"history": ["x" * (k * 37 % 100)], "utterance": "hm so"} for k in range(100)] * 2
    job = make_job(write_rows(tmp_path / "in.jsonl", rows), part_rows=150, model=ModelChoice(batch_size=8))
    totals, _ = run_job(job)
    batches = shouting.asked[1:]  # the first is the probe
    asked = [dialogue for batch in batches for dialogue in batch]
    assert len(asked) == len(set(asked)) == 100, "those of the second part were known"
    assert totals.repeated == 50, "of the first part alone, so that it does not depend on who did what"
    lengths = [len(dialogue.history[0]) for dialogue in asked]
    assert lengths == sorted(lengths)
    assert max(map(len, batches)) == 8


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([{"history": ["a"], "utterance": "b"}] * 2, "a JSON array"),
        ({"history": ["a"], "utterance": "b"}, "pretty-printed JSON"),
    ],
)
def test_a_document_on_several_lines_is_refused_before_anything_is_written(
    make_job: Callable[..., Job], tmp_path: Path, value: Any, found: str
) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(value, indent=2), encoding="utf-8")
    with pytest.raises(InputError, match=rf"in.jsonl: expected JSON lines .* found {found}; jq -c"):
        run_job(make_job(tmp_path / "in.jsonl"))
    assert not (tmp_path / "out").exists()


def test_a_first_row_that_is_cut_off_is_a_bad_row(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    lines = ['{"history": ["a"],', '{"history": ["a"], "utterance": "fine"}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    totals, _ = run_job(make_job(tmp_path / "in.jsonl"))
    assert (totals.rows, totals.errors) == (2, 1)
    assert "in.jsonl, row 1: expected a JSON object" in totals.fault


def test_bad_rows_become_error_rows_and_are_counted(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    lines = [
        ('{"id": 1, "history": ["a"], "utterance": "fine"}', None),
        ("{no json", "expected a JSON object, found something else"),
        ("", None),  # no row
        ('{"id": 2, "history": "a", "utterance": "b"}', "history: expected a list of strings, found a string"),
        ('{"id": 3, "history": ["a"]}', "utterance: missing"),
        ('{"id": 4, "history": ["a"], "utterance": "explode"}', "the model failed: RuntimeError: the graph failed"),
        ('{"id": 5, "history": ["a"], "utterance": "a long one"}', "history: too long"),
        ('{"id": 6, "history": ["a"], "utterance": "fine too"}', None),
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(line for line, _ in lines), encoding="utf-8")
    totals, _ = run_job(make_job(tmp_path / "in.jsonl", truncation="error"))
    records = read_output(tmp_path / "out")
    expected = [(number, wording) for number, (line, wording) in enumerate(lines, 1) if line]
    assert (totals.rows, totals.errors, len(records)) == (7, 5, 7)
    for record, (number, wording) in zip(records, expected, strict=True):
        if wording is None:
            assert "error" not in record
        else:
            assert (record["error"]["file"], record["error"]["line"]) == ("in.jsonl", number)
            assert record["error"]["message"].startswith(wording)
    assert [record.get("id") for record in records] == [1, None, 2, 3, 4, 5, 6], "other keys stay where there are any"


def test_a_broken_model_ends_the_job_instead_of_every_row(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    job = make_job(write_rows(tmp_path / "in.jsonl", make_rows(20)))
    shouting.broken = True
    with pytest.raises(StoppedError, match=r"the graph failed.*; 0 of 2 parts are done: to resume, run the same"):
        run_job(job)
    shouting.broken = False
    assert run_job(job)[0].errors == 0


def failing_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let the disk be full after so many files."""
    original, written = LocalStore.write, []

    def write(self: LocalStore, path: str, data: bytes) -> None:
        written.append(path)
        if len(written) > after:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        original(self, path, data)

    monkeypatch.setattr(LocalStore, "write", write)


@pytest.mark.parametrize("after", range(1, 12))
def test_a_full_disk_leaves_a_state_to_go_on_from(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, after: int
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    run_job(make_job(source, tmp_path / "whole"))
    job = make_job(source, tmp_path / "stopped")
    with pytest.MonkeyPatch.context() as patch:
        failing_disk(patch, after)
        with pytest.raises(
            StoppedError, match=r"No space left on device.*to resume, run the same command again"
        ) as caught:
            run_job(job)
    assert caught.value.exit_code == 1, "not the user's mistake: a scheduler may try again"
    _, progress = run_job(job)
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
    assert progress.before == min(45, 10 * ((after - 1) // 2)), "a part is two files, after the manifest"
    assert run_job(job)[1].done == 0


def test_a_file_that_vanishes_leaves_a_state_to_go_on_from(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        write_rows(tmp_path / "d" / f"{name}.jsonl", make_rows(10))
    run_job(make_job(tmp_path / "d", tmp_path / "whole"))
    job, hidden = make_job(tmp_path / "d"), tmp_path / "hidden"
    with pytest.raises(
        StoppedError, match=r"b\.jsonl: cannot be read: No such file.*; 1 of 2 parts are done"
    ) as caught:
        run_job(job, lambda progress: progress.done and (tmp_path / "d" / "b.jsonl").rename(hidden))
    assert caught.value.exit_code == 1
    hidden.rename(tmp_path / "d" / "b.jsonl")
    assert run_job(job)[1].before == 10
    assert contents(tmp_path / "whole") == contents(tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"columns": Columns(id="note")}, "found another settings.columns.id: note, which was None"),
        ({"min_confidence": 0.5}, "found another settings.min_confidence: 0.5, which was None"),
        ({"n_best": 2}, "found another settings.n_best: 2, which was 1"),
        ({"part_rows": 20}, "found another settings.part_rows: 20, which was 10"),
        ({"model": ModelChoice(variant="direct")}, "found another model.fingerprint: |found another model.variant"),
        ({"model": ModelChoice(keep=("no",))}, r"found another settings.keep.count: 1, which was 0"),
    ],
)
def test_other_settings_are_refused(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, change: dict[str, Any], wording: str
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(15))
    run_job(make_job(source))
    with pytest.raises(InputError, match=wording):
        run_job(make_job(source, **change))


def test_another_input_is_refused_and_the_same_elsewhere_is_not(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    rows = make_rows(15)
    source = write_rows(tmp_path / "in.jsonl", rows)
    run_job(make_job(source))
    (tmp_path / "moved").mkdir()
    source.rename(tmp_path / "moved" / "in.jsonl")
    assert run_job(make_job(tmp_path / "moved" / "in.jsonl"))[1].done == 0
    rows[3]["utterance"] = "way 3"  # as long as before
    write_rows(tmp_path / "moved" / "in.jsonl", rows)
    with pytest.raises(InputError, match=r"found another input\.files\[0\]\.digest"):
        run_job(make_job(tmp_path / "moved" / "in.jsonl"))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "cut off: its size shows it"),
        (lambda data: data.replace(b"SAY", b"YAS"), "changed: its hash shows it"),
    ],
)
def test_a_part_that_was_damaged_is_made_anew(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    source, job = write_rows(tmp_path / "in.jsonl", make_rows(45)), make_job(tmp_path / "in.jsonl")
    run_job(make_job(source, tmp_path / "whole"))
    with pytest.MonkeyPatch.context() as patch:
        failing_disk(patch, 7)
        with pytest.raises(StoppedError):
            run_job(job)
    part = tmp_path / "out" / "part-000001.jsonl"
    part.write_bytes(damage(part.read_bytes()))
    for _ in range(2):
        try:
            run_job(job)
        except TeoError as error:
            assert re.search(r"part-000001\.jsonl: expected 10 rows as they were written", str(error)), reason
    assert contents(tmp_path / "whole") == contents(tmp_path / "out"), reason


def test_a_part_that_is_gone_after_the_end_is_made_again(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    job = make_job(write_rows(tmp_path / "in.jsonl", make_rows(45)))
    run_job(job)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "part-000003.jsonl").unlink()
    assert run_job(job)[1].done == 10
    assert contents(tmp_path / "out") == before


def test_one_file_is_joined_from_the_parts_and_known_to_be_finished(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(25))
    run_job(make_job(source, tmp_path / "folder"))
    job = make_job(source, tmp_path / "out.jsonl")
    run_job(job)
    joined = (tmp_path / "out.jsonl").read_bytes()
    assert joined == b"".join(part.read_bytes() for part in sorted((tmp_path / "folder").glob("part-*")))
    assert [path.name for path in (tmp_path / "out.jsonl.parts").iterdir()] == ["_manifest.json"]
    assert run_job(job)[1].done == 0
    (tmp_path / "out.jsonl").unlink()
    with pytest.raises(InputError, match=r"out\.jsonl: expected the file of a finished job, found none"):
        run_job(job)


@pytest.mark.parametrize(
    ("files", "source", "target", "wording"),
    [
        ({}, "gone.jsonl", "out", "gone.jsonl: cannot be read: No such file"),
        ({"x.csv": "a"}, "x.csv", "out", "expected a file that ends in .jsonl, .ndjson, .parquet"),
        ({"d/x.csv": "a", "d/y.csv": ""}, "d", "out", "expected files that end in .jsonl"),
        ({"d/x.jsonl": "{}", "d/y.parquet": ""}, "d", "out", "expected JSONL or Parquet, found both"),
        (
            {"d/x.jsonl": "{}", "d/y.jsonl.gz": ""},
            "d",
            "out",
            "found {}/d/y.jsonl.gz; convert or move them, or give",
        ),
        ({"d/x.jsonl": "{}", "d/y.json": "", "d/z.txt": ""}, "d", "out", "found {}/d/y.json and 1 more; convert"),
        (
            {"d/x.jsonl": "{}", "d/y.txt": ""},
            "d/*",
            "out",
            "found {}/d/y.txt; convert or move them, or give a glob",
        ),
        ({}, "nofolder", "out", "nofolder: expected a file, a folder or a glob, found nothing of that name; check"),
        ({"x.jsonl": ""}, "x.jsonl/y", "out", "x.jsonl/y: expected a file, a folder or a glob, found nothing of that"),
        ({"x.jsonl": "{}"}, "x.jsonl", "x.jsonl", "x.jsonl: expected another file for the output, found one that the"),
        ({"d/x.jsonl": "{}"}, "d", "d", "expected another folder for the output, found that of the input"),
        ({"x.jsonl": "{}", "out/mine.txt": ""}, "x.jsonl", "out", "expected an empty folder or a job to resume"),
        ({"x.jsonl": "{}", "y.jsonl": ""}, "x.jsonl", "y.jsonl", "y.jsonl: expected a new file, found one"),
        ({"x.jsonl": "{}"}, "x.jsonl", "y.parquet", "expected the input's format, jsonl, found parquet"),
        ({"x.parquet": "no"}, "x.parquet", "out", "x.parquet: expected a Parquet file, found something else"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line(
    make_job: Callable[..., Job], tmp_path: Path, files: dict[str, str], source: str, target: str, wording: str
) -> None:
    if source.endswith("parquet"):
        pytest.importorskip("pyarrow")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=re.escape(wording.format(tmp_path))):
        run_job(make_job(tmp_path / source, tmp_path / target))
    assert contents(tmp_path) == before
    assert not (tmp_path / f"{target}.parts").exists()


def test_endings_in_capitals_are_read_and_written(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    for number, name in enumerate(("a.jsonl", "b.JSONL", "_SUCCESS", ".c.txt")):
        write_rows(tmp_path / "d" / name, make_rows(number + 1))
    totals, _ = run_job(make_job(tmp_path / "d", tmp_path / "OUT.JSONL"))
    assert totals.rows == 3
    assert (tmp_path / "OUT.JSONL").is_file()


@pytest.mark.parametrize(
    ("settings", "wording"),
    [
        ({"prefer": "serach"}, "prefer: expected search, balanced, careful; found 'serach'"),
        ({"prefer": "search", "min_confidence": 0.5}, "prefer, min_confidence: expected one of them, found both"),
        ({"model": ModelChoice(variant="teo"), "n_best": 3}, "n_best: expected a variant that writes one text"),
        ({"model": ModelChoice(variant="tao")}, "variant: expected one of .* found 'tao'"),
    ],
)
def test_a_mistyped_option_leaves_nothing_behind(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, settings: dict[str, Any], wording: str
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(15))
    with pytest.raises(InputError, match=wording) as caught:
        run_job(make_job(source, **settings))
    assert "to resume" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert run_job(make_job(source))[0].rows == 15


def test_a_mistake_that_a_worker_finds_blocks_no_output(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("keep: expected a pattern, found none")

    source = write_rows(tmp_path / "in.jsonl", make_rows(15))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelChoice, "load", refuse)
        with pytest.raises(StoppedError) as caught:
            run_job(make_job(source, n_best=2))
    assert str(caught.value) == "keep: expected a pattern, found none", "to run it again would change nothing"
    assert caught.value.exit_code == InputError.exit_code
    assert run_job(make_job(source))[0].rows == 15


@pytest.mark.parametrize(
    ("columns", "wording"),
    [
        (Columns(id="key"), "key: expected the column of the id, found id, history, utterance, note"),
        (Columns(history="turns"), "turns: expected the column of the history, found id, history, utterance, note"),
        (Columns(id="id"), None),
    ],
)
def test_a_row_without_a_column_that_was_named_is_a_bad_row(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, columns: Columns, wording: str | None
) -> None:
    totals, _ = run_job(make_job(write_rows(tmp_path / "in.jsonl", make_rows(3)), columns=columns))
    assert totals.errors == (3 if wording else 0)
    for record in read_output(tmp_path / "out"):
        assert record.get("error", {}).get("message") == wording


def test_a_rows_own_error_does_not_pass_for_one_of_the_job(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    rows = [{**row, "error": {"line": 7}, "alternatives": ["x"]} for row in make_rows(3)]
    run_job(make_job(write_rows(tmp_path / "in.jsonl", [*rows, {"error": "old", "alternatives": 1}])))
    *good, bad = read_output(tmp_path / "out")
    assert not any({"error", "alternatives"} & set(record) for record in good)
    assert bad["error"]["message"].startswith("utterance: missing")


def test_a_gpu_needs_a_trained_folder(make_job: Callable[..., Job], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(1))
    job = make_job(source, model=ModelChoice(device="cuda"))
    with pytest.raises(InputError, match=r"a GPU runs the torch weights of a trained folder: give the folder"):
        run_job(job)


def test_several_files_and_no_rows(shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path) -> None:
    (tmp_path / "d" / "deep").mkdir(parents=True)
    write_rows(tmp_path / "d" / "b.jsonl", make_rows(12))
    write_rows(tmp_path / "d" / "deep" / "a.ndjson", [{"bad": 1}])
    (tmp_path / "d" / "empty.jsonl").touch()
    totals, _ = run_job(make_job(tmp_path / "d"))
    assert (totals.rows, totals.errors) == (13, 1)
    assert read_output(tmp_path / "out")[-1]["error"]["file"] == "deep/a.ndjson"
    totals, _ = run_job(make_job(tmp_path / "d" / "empty.jsonl", tmp_path / "nothing"))
    assert totals.rows == 0
    stored = json.loads((tmp_path / "nothing" / "_manifest.json").read_text())
    assert stored["totals"] == {"rows": 0, "errors": 0, "changed": 0, "repeated": 0, "fault": ""}


def test_the_time_left_and_the_idle_share(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    source = write_rows(tmp_path / "in.jsonl", make_rows(40))
    run_job(make_job(source), lambda progress: seen.append((replace(progress), progress.left is None)))
    assert [(progress.done, unknown) for progress, unknown in seen] == [
        (0, True),
        (10, False),
        (20, False),
        (30, False),
        (40, False),
    ]
    last = replace(seen[-1][0], started=100.0, ended=110.0, busy=15.0, processes=2, done=20)
    assert (last.rate, last.left, last.idle) == (2.0, 10.0, 0.25)
