"""Measure `teo batch`: both engines give the same files, rows a second, one core against several, kills, power cuts.

    python benchmarks/batch.py data --rows 200000 --out lab/results/scale

`data` holds the datasets `rewrite` and `res200k`; their rows are repeated with other names. Growth and kills are
measured on fewer rows, since they take several runs. Rows for each second of processor time do not depend on what else
the machine does; of Ray's processes that time is not known here. A part that is given 0 rows, kills or cuts is not
measured again: what --out already holds of it stays.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from batch_rows import load_datasets, make_rows
from teo.cores import available_cores
from teo.files import write_json, write_jsonl
from teo.scale.job import Engine, Job, run_job
from teo.scale.worker import BatchTask, ModelChoice
from teo.version import __version__


def main() -> None:
    """Run what the arguments say, print it and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the datasets rewrite and res200k")
    parser.add_argument("--rows", type=int, default=4000, help="rows of the two engines' race")
    parser.add_argument("--growth-rows", type=int, default=4000, help="rows for one core against all")
    parser.add_argument("--kill-rows", type=int, default=2000, help="rows of the job that is killed")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=10, help="kills after which files are damaged, as by a power cut")
    parser.add_argument("--part-rows", type=int, default=0, help="2048, or less where there are few rows")
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--work", type=Path, default=Path("runs/batch"), help="folder for rows and outputs")
    parser.add_argument("--out", type=Path, help="folder for batch.json")
    given = parser.parse_args()
    shutil.rmtree(given.work, ignore_errors=True)
    given.work.mkdir(parents=True)
    rows = load_datasets(given.data)
    files = {
        count: given.work / f"{count}.jsonl" for count in {given.rows, given.growth_rows, given.kill_rows} if count
    }
    for count, file in files.items():
        write_jsonl(file, make_rows(rows, count))
    bench = Bench(given.work, given.model, given.part_rows, available_cores())
    result = read_stored(given.out)
    result |= {"version": __version__, "cores": bench.cores, "processor": processor()}
    load = [os.getloadavg()[0]]
    if given.growth_rows:
        growth = {
            str(processes): bench.run(files[given.growth_rows], f"grow-{processes}", processes=processes)
            for processes in sorted({1, bench.cores})
        }
        result["growth"] = {"rows": given.growth_rows, "processes": growth}
        store(given.out, result)
    if given.rows:
        result["rows"] = given.rows
        engines: tuple[Engine, ...] = ("local", "ray")
        result["engines"] = {name: bench.run(files[given.rows], name, engine=name) for name in engines}
        result["engines_agree"] = contents(given.work / "local") == contents(given.work / "ray")
        load.append(os.getloadavg()[0] - bench.cores)  # without what it put there itself
        result["load_of_others"] = [round(max(0.0, value), 1) for value in load]
        store(given.out, result)
    if given.kills:
        result["kills"] = bench.kill(files[given.kill_rows], given.kills)
    if given.cuts:
        result["cuts"] = bench.kill(files[given.kill_rows], given.cuts, damage=lose_power)
    print(json.dumps(result, indent=2))
    store(given.out, result)


def read_stored(out: Path | None) -> dict[str, Any]:
    """Return what an earlier run stored."""
    file = out / "batch.json" if out else None
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file and file.is_file() else {}


def store(out: Path | None, result: dict[str, Any]) -> None:
    """Write what was measured so far."""
    if out:
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "batch.json", result)


def processor() -> str:
    """Return the processor's name, where the system tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


class Bench:
    """Jobs in one folder."""

    def __init__(self, work: Path, model: str | None, part_rows: int, cores: int) -> None:
        self.work, self.model, self.part_rows, self.cores = work, model, part_rows, cores

    def run(self, source: Path, name: str, *, engine: Engine = "local", processes: int = 0) -> dict[str, Any]:
        """Return how a job went: seconds with and without its start, rows a second, in all and for a process."""
        count = sum(1 for _ in source.open("rb"))
        task = BatchTask(str(source), str(self.work / name), "jsonl", ModelChoice(self.model))
        job = Job(task, engine, processes or self.cores, part_rows=self.rows_of_a_part(count))
        started, used = time.monotonic(), cpu_seconds()
        totals, progress = run_job(job)
        used = cpu_seconds() - used
        figures = {
            "seconds": round(time.monotonic() - started, 1),
            "rewriting_seconds": round(progress.seconds, 1),
            "rows_per_second": round(progress.rate, 1),
            "rows_per_second_and_process": round(progress.rate / progress.processes, 1),
            "rows_per_cpu_second": round(totals.rows / used, 1) if engine == "local" else None,
            "idle": round(progress.idle, 3),
            "changed": totals.changed,
            "errors": totals.errors,
            "repeated": totals.repeated,
        }
        print(json.dumps({name: figures}), file=sys.stderr, flush=True)
        return figures

    def rows_of_a_part(self, rows: int) -> int:
        """Return the rows of a part: as the command has it, but several parts for each core."""
        return self.part_rows or min(2048, max(64, rows // (8 * self.cores)))

    def kill(self, source: Path, kills: int, damage: Callable[[Path, random.Random], None] | None = None
             ) -> dict[str, Any]:  # fmt: skip
        """Kill a job at random moments, resume it each time, and compare with a job that nobody disturbed."""
        rows = sum(1 for _ in source.open("rb"))
        whole, killed = (self.work / f"{name}-{damage is not None}" for name in ("whole", "killed"))
        command = [sys.executable, "-m", "teo", "batch", str(source)]
        options = ["--part-rows", str(max(16, rows // (4 * kills * self.cores)))]
        options += ["--model", self.model] if self.model else []
        started = time.monotonic()
        subprocess.run([*command, str(whole), *options], check=True, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        chance, done = random.Random(1), []
        for _ in range(kills):
            process = subprocess.Popen([*command, str(killed), *options], stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.5, 2 * seconds / kills))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            if damage is not None:
                damage(killed, chance)
            done.append(len(list((killed / "_done").glob("part-*"))))
        subprocess.run([*command, str(killed), *options], check=True, stderr=subprocess.DEVNULL)
        parts = len(list(whole.glob("part-*")))
        same = contents(whole) == contents(killed)
        return {"rows": rows, "kills": kills, "parts": parts, "parts_done_at_each_kill": done, "same": same}


def lose_power(folder: Path, chance: random.Random) -> None:
    """Damage three files of an output as a power cut might: empty, full of zeros, or cut off."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for file in chance.sample(files, min(3, len(files))):
        data = file.read_bytes()
        file.write_bytes(chance.choice([b"", bytes(len(data)), data[: len(data) // 2]]))


def cpu_seconds() -> float:
    """Return the processor time of this process and of those it started, whatever else the machine was doing."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder by its path."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


if __name__ == "__main__":
    main()
