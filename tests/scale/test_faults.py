"""What a batch job must survive: killed processes, a power cut, state that cannot be read, two jobs at once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batch_jobs import SITE, Shouting, contents, make_rows, write_rows
from teo import cores, files
from teo.cores import available_cores
from teo.errors import InputError
from teo.scale.engines import RayWorker
from teo.scale.inputs import plan_input
from teo.scale.job import Job, StoppedError, run_job
from teo.scale.manifest import TRIES
from teo.scale.parts import Part
from teo.scale.worker import BatchTask

TESTS = Path(__file__).parents[1]
KILLS = int(os.environ.get("TEO_KILLS", "12"))
"""How often a process of a job is killed; more of them with TEO_KILLS=100."""


def start(folder: Path, target: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    paths = [str(folder / "site"), str(TESTS), str(TESTS.parent / "src")]
    return subprocess.Popen(
        [sys.executable, "-m", "teo", "batch", str(folder / "in.jsonl"), str(target), "--part-rows", "4", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **env},
    )


def children(pid: int) -> list[int]:
    try:
        found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    except OSError:
        return []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_processes_killed_at_random_moments_from_the_first_millisecond_on_cost_no_row(tmp_path: Path) -> None:
    rows = make_rows(400)
    write_rows(tmp_path / "in.jsonl", rows)
    whole = start(tmp_path, tmp_path / "whole", "--processes", "1")
    assert whole.communicate(timeout=120)[1].startswith("teo: 400 rows")
    chance = random.Random(7)
    killed, runs, log = 0, 0, ""
    while killed < KILLS:
        target, seen = tmp_path / f"out{runs}", set[int]()
        process = start(tmp_path, target, "--processes", "2", SHOUTING_SECONDS="0.02")
        runs += 1
        while process.poll() is None:
            fresh = [one for one in children(process.pid) if one not in seen]
            seen.update(fresh)
            for victim in fresh[: 1 if len(seen) < 20 else 0]:  # never three times the same part
                if chance.random() < 0.6:
                    time.sleep(chance.choice([0, 0.001, 0.05, 0.2, 0.4, 0.8, 1.5]))
                    try:
                        os.kill(victim, signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass
            time.sleep(0.005)
        log = process.communicate(timeout=120)[1]
        if process.returncode == 1 and "3 times" in log:  # chance hit one part three times: it resumes
            again = start(tmp_path, target, "--processes", "2")
            log = again.communicate(timeout=120)[1]
            assert again.returncode == 0, log
        else:
            assert process.returncode == 0, log
        assert contents(target) == contents(tmp_path / "whole")


@pytest.mark.process
def test_a_part_that_kills_every_process_is_reported_after_three(tmp_path: Path) -> None:
    write_rows(tmp_path / "in.jsonl", [*make_rows(20), {"history": ["a"], "utterance": "always dies"}])
    process = start(tmp_path, tmp_path / "out", "--processes", "2", SHOUTING_ABORT="always dies")
    log = process.communicate(timeout=120)[1]
    assert process.returncode == 1
    assert "the process that rewrote rows 21 and on ended by signal 6, 3 times" in log


def test_an_actor_that_dies_three_times_over_a_part_reports_it(tmp_path: Path, shouting: Shouting) -> None:
    write_rows(tmp_path / "in.jsonl", make_rows(4))
    plan = plan_input(str(tmp_path / "in.jsonl"), 4)
    task = BatchTask(str(tmp_path / "in.jsonl"), str(tmp_path / "out"), "jsonl")
    row = {name: getattr(plan.parts[0], name) for name in Part.__dataclass_fields__}
    for _ in range(3):

        def die(part: Part) -> Any:
            raise SystemExit(f"killed in {part.name}")

        actor = RayWorker(task)
        actor._worker.report = die  # type: ignore[method-assign]
        with pytest.raises(SystemExit):
            actor(row)
    report = RayWorker(task)(row)
    assert (report["status"], "3 times" in report["failure"]) == (1, True)
    for path in (tmp_path / "out" / TRIES).iterdir():
        path.unlink()
    assert RayWorker(task)(row)["failure"] == ""


# ---- a power cut ----


class Disk:
    """What a disk holds for sure: the content of a file when it was last synced, the names when the folder was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.events = root, list[tuple[str, str]]()
        self.bytes: dict[int, bytes] = {}
        self.names: dict[str, dict[str, int]] = {}
        real = files.sync

        def sync(path: Path) -> None:
            real(path)
            if path.is_dir():
                self.names[str(path)] = {one.name: one.stat().st_ino for one in path.iterdir()}
            else:
                self.bytes[path.stat().st_ino] = path.read_bytes()

        monkeypatch.setattr(files, "sync", sync)
        monkeypatch.setattr("teo.scale.stores.sync", sync)

    def cut_power(self, folder: Path) -> None:
        """Leave of every file only what was synced; a name that was not is gone."""
        for path in sorted(folder.rglob("*"), reverse=True):
            known = self.names.get(str(path.parent), {})
            if path.is_dir():
                continue
            if known.get(path.name) != path.stat().st_ino:
                path.unlink()
            else:
                path.write_bytes(self.bytes.get(path.stat().st_ino, b""))


@pytest.mark.parametrize("after", range(1, 11))
@pytest.mark.parametrize("name", ["out", "out.jsonl"])
def test_a_power_cut_costs_no_row_that_was_said_to_be_done(
    shouting: Shouting,
    make_job: Callable[..., Job],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    name: str,
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    run_job(make_job(source, tmp_path / "whole" / name))
    target = tmp_path / "cut" / name
    job, disk = make_job(source, target), Disk(monkeypatch, tmp_path)

    class PowerCutError(BaseException):
        pass

    def listen(progress: Any) -> None:
        if progress.done >= 5 * after:
            raise PowerCutError

    with contextlib.suppress(PowerCutError):
        run_job(job, listen)
    disk.cut_power(tmp_path / "cut")
    done = sum(json.loads(mark.read_text())["rows"] for mark in (tmp_path / "cut").rglob("_done/*.json"))
    _, progress = run_job(job)
    assert progress.before == (done or 45 * (after > 9)), "what was done before the cut is done"
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_what_is_written_is_synced_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    real_sync, real_replace = files.sync, Path.replace
    monkeypatch.setattr(
        files, "sync", lambda path: (events.append("folder" if path.is_dir() else "file"), real_sync(path))
    )
    monkeypatch.setattr(Path, "replace", lambda self, target: (events.append("rename"), real_replace(self, target))[1])
    files.write_text(tmp_path / "x", "text")
    assert events == ["file", "rename", "folder"]


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"{", b"[]", b"{}", b"\xff\xfe"], ids=repr)
@pytest.mark.parametrize("name", ["_done/part-000001.json", "_manifest.json", "part-000001.jsonl"])
def test_state_that_cannot_be_read_is_not_done(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, name: str, content: bytes
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    run_job(make_job(source, tmp_path / "whole"))
    run_job(make_job(source))
    if (name, content) == ("_manifest.json", b"{}"):
        pytest.skip("an object without settings is another job's")
    (tmp_path / "out" / name).write_bytes(content)
    _, progress = run_job(make_job(source))
    assert progress.done == (45 if name == "_manifest.json" else 10)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_a_killed_process_did_not_finish_is_gone_at_the_end(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))

    def listen(progress: Any) -> None:
        (tmp_path / "out" / ".teo-half.jsonl").write_text("half a part")

    run_job(make_job(source), listen)
    assert not list((tmp_path / "out").rglob(".teo-*"))


def test_a_part_of_the_right_size_but_full_of_zeros_is_made_again(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    run_job(make_job(source))
    part = tmp_path / "out" / "part-000002.jsonl"
    before = part.read_bytes()
    part.write_bytes(b"\0" * len(before))
    assert run_job(make_job(source))[1].done == 10
    assert part.read_bytes() == before


def test_a_joined_file_that_lost_its_content_is_no_success(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    run_job(make_job(source, tmp_path / "out.jsonl"))
    (tmp_path / "out.jsonl").write_bytes(b"")
    with pytest.raises(InputError, match="expected the file of a finished job, found one that was changed since"):
        run_job(make_job(source, tmp_path / "out.jsonl"))


# ---- two jobs, and an output that is its own input ----


def test_a_second_job_on_the_same_output_is_refused_while_the_first_runs(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    refused: list[str] = []

    def listen(progress: Any) -> None:
        if not refused:
            with pytest.raises(InputError) as caught:
                run_job(make_job(source))
            refused.append(str(caught.value))

    run_job(make_job(source), listen)
    assert refused == [f"{tmp_path / 'out'}: another job writes there now; wait for it, or give another output"]
    assert run_job(make_job(source))[1].done == 0, "the lock is gone with the job"
    assert not (tmp_path / "out" / "_lock").exists()


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        ("data", "data/rewrites", False),
        ("data", "data/out.jsonl", False),
        ("data", "data/deep/er/out", False),
        ("data", "data/../data/out", False),
        ("data", "link/out", False),
        ("data/*.jsonl", "data/out.jsonl", False),
        ("data/**", "data/out", False),
        ("data/*.jsonl", "data/out", True),
        ("data/in.jsonl", "data/out", True),
        ("data/in.jsonl", "data/out.jsonl", True),
        ("data", "database", True),
    ],
)
def test_an_output_that_the_input_names_is_refused_before_anything_is_written(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, source: str, target: str, allowed: bool
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    write_rows(tmp_path / "data" / "in.jsonl", make_rows(5))
    if allowed:
        for _ in range(2):
            assert run_job(make_job(tmp_path / source, tmp_path / target))[0].rows == 5
        return
    with pytest.raises(InputError, match="expected another folder for the output"):
        run_job(make_job(tmp_path / source, f"{tmp_path}/{target}"))
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["in.jsonl"]


def test_an_input_that_changes_meanwhile_is_no_success(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    rows = make_rows(45)
    source = write_rows(tmp_path / "in.jsonl", rows)

    def change(progress: Any) -> None:
        if progress.done == 10:
            write_rows(source, [*rows[:40], *({**row, "note": "à 字"} for row in rows[40:])])  # as many bytes

    with pytest.raises(InputError, match="expected files that stay as they are, found them changed"):
        run_job(make_job(source), change)
    with pytest.raises(InputError, match=r"found another input\.files\[0\]\.digest"):
        run_job(make_job(source))


# ---- rows, parts, cores ----


def test_a_row_nested_too_deep_is_a_bad_row(shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path) -> None:
    for depth in (400, 700, 973, 5000):
        deep = "[" * depth + "1" + "]" * depth
        rows = [f'{{"history": ["a"], "utterance": "b", "x": {deep}}}', '{"history": ["a"], "utterance": "fine"}']
        (tmp_path / f"{depth}.jsonl").write_text("\n".join(rows))
        totals, _ = run_job(make_job(tmp_path / f"{depth}.jsonl", tmp_path / f"out{depth}"))
        assert (totals.rows, totals.errors) == (2, int(depth > 500))


@pytest.mark.parametrize(
    ("rows", "least", "part_rows", "parts"),
    [(0, 64, 64, 1), (10, 64, 64, 1), (2000, 64, 64, 32), (16384, 64, 64, 256), (20_000, 64, 128, 157)],
)
def test_small_jobs_have_parts_for_every_core(
    tmp_path: Path, rows: int, least: int, part_rows: int, parts: int
) -> None:
    (tmp_path / "in.jsonl").write_text("\n".join(f'{{"u": {number}}}' for number in range(rows)) + "\n")
    plan = plan_input(str(tmp_path / "in.jsonl"), None, least)
    assert (plan.part_rows, len(plan.parts), plan.rows) == (part_rows, parts, rows)


@pytest.mark.parametrize("counts", [[3000], [100, 0, 900, 3], [7] * 60, [257, 258]])
def test_parts_cover_every_row_once_and_in_order(tmp_path: Path, counts: list[int]) -> None:
    for number, count in enumerate(counts):
        lines = [f'{{"n": {number}, "row": {row}}}\n' for row in range(count)]
        (tmp_path / f"{number:03d}.jsonl").write_text("\n".join(lines))  # with blank lines between
    plan = plan_input(str(tmp_path), None, 1)
    read = []
    for part in plan.parts:
        data = Path(part.file).read_bytes()
        lines = data[part.start : part.end].split(b"\n")
        assert data[: part.start].count(b"\n") + 1 == part.first
        assert sum(bool(line.strip()) for line in lines) == part.rows <= plan.part_rows
        read += [tuple(json.loads(line).values()) for line in lines if line.strip()]
    assert read == [(number, row) for number, count in enumerate(counts) for row in range(count)]
    assert len(plan.parts) <= 256 + len(counts)


def test_a_change_anywhere_in_a_parquet_file_is_another_input(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = [f"utterance {number:06d}" for number in range(20_000)]
    columns = {"history": [["a"]] * len(texts), "utterance": texts}
    path = tmp_path / "in.parquet"
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False, "write_page_checksum": False}
    parquet.write_table(pa.table(columns), path, **options)
    before = plan_input(str(path), None).sources[0]
    data = path.read_bytes()
    assert data.count(b"utterance 001500") == 1
    path.write_bytes(data.replace(b"utterance 001500", b"utterance 991500"))
    after = plan_input(str(path), None).sources[0]
    assert (before.rows, before.size) == (after.rows, after.size)
    assert before.digest != after.digest


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "50000 100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_a_containers_quota_of_cores_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: dict[str, str], expected: float | None
) -> None:
    (tmp_path / "cpu").mkdir()
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert cores.read_quota(tmp_path) == expected
    assert available_cores(tmp_path) == (16 if expected is None else max(1, int(expected)))


def test_a_disk_that_is_full_is_said_and_resumed(
    shouting: Shouting, make_job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_rows(tmp_path / "in.jsonl", make_rows(45))
    real, count = files.sync, [0]

    def sync(path: Path) -> None:
        count[0] += 1
        if count[0] == 9:
            raise OSError(28, "No space left on device")
        real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "sync", sync)
        with pytest.raises(StoppedError, match="No space left on device"):
            run_job(make_job(source))
    assert run_job(make_job(source))[0].rows == 45
