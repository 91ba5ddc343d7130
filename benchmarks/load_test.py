"""Hold the server under load: many clients, failures counted, latency, memory, and what batching is worth.

Two servers of the same model run side by side, one with dynamic batches and one that rewrites one dialogue at a time;
the load goes to them in turns, so that both meet the same machine. Only Python's own library is used, and the clients
are plain sockets: they leave the processor to the servers.

    python benchmarks/load_test.py --clients 64 --seconds 60 --out lab/results/load
    python benchmarks/load_test.py --kill-worker --seconds 20 --out lab/results/load-kill
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DIALOGUES: list[tuple[list[str], str]] = [
    (["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."], "When did he die?"),
    (["Can I book a table at Luigi's for Friday?", "Luigi's is fully booked on Friday."], "What about Saturday?"),
    (["Who played the Joker in The Dark Knight?", "Heath Ledger."], "Did he win an Oscar for it?"),
    (["你喜欢周杰伦吗", "喜欢"], "他哪年出生的"),
    (["西安今天天气怎么样", "西安今天多云转小雨"], "明天呢"),
    (["我昨天买了一台新相机", "花了多少钱"], "三千多"),
    (["We stayed in Porto for a week, right by the river.", "Was the weather good?", "It rained twice.",
      "Porto is lovely all the same."], "Would you go there again?"),
    (["Is the science museum open today?", "Yes, until six in the evening."], "Thank you very much!"),
]  # fmt: skip


@dataclass
class Round:
    """What the clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, other: Round) -> None:
        """Take another round's numbers in."""
        self.seconds += other.seconds
        self.latencies += other.latencies
        self.statuses += other.statuses

    def summary(self) -> dict[str, Any]:
        """Return requests a second, failures and percentiles."""
        ranked = sorted(self.latencies)
        at = {f"p{point}_ms": _percentile(ranked, point) for point in (50, 90, 95, 99)}
        failed = sum(count for status, count in self.statuses.items() if status != "200")
        return {
            "requests": sum(self.statuses.values()),
            "failed": failed,
            "statuses": dict(self.statuses),
            "requests_per_second": round(self.statuses["200"] / max(self.seconds, 1e-9), 1),
            **at,
            "max_ms": round(ranked[-1] * 1000, 1) if ranked else None,
        }


def _percentile(ranked: Sequence[float], point: int) -> float | None:
    if not ranked:
        return None
    return round(1000 * ranked[min(len(ranked) - 1, len(ranked) * point // 100)], 1)


async def load(port: int, clients: int, seconds: float) -> Round:
    """Return what `clients` saw that each asked again as soon as they were answered, for some seconds."""
    bodies = [json.dumps({"history": history, "utterance": utterance}).encode() for history, utterance in DIALOGUES]
    total, started = Round(), time.perf_counter()
    end = started + seconds
    await asyncio.gather(*(_client(port, itertools.cycle(bodies[k % 8 :] + bodies[: k % 8]), end, total)
                           for k in range(clients)))  # fmt: skip
    total.seconds = time.perf_counter() - started
    return total


async def _client(port: int, bodies: Iterator[bytes], end: float, total: Round) -> None:
    """Ask over one connection, and over a new one where it breaks."""
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while time.perf_counter() < end:
        started = time.perf_counter()
        try:
            if connection is None:
                connection = await asyncio.open_connection("127.0.0.1", port)
            status = await asyncio.wait_for(_ask(*connection, next(bodies)), 60)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            status, connection = type(error).__name__, None
            await asyncio.sleep(0.05)
        total.statuses[status] += 1
        if status == "200":
            total.latencies.append(time.perf_counter() - started)
    if connection is not None:
        connection[1].close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> str:
    writer.write(
        b"POST /v1/rewrite HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().splitlines()
    length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    answer = await reader.readexactly(length)
    status = lines[0].split()[1]
    return status if status != "200" or "rewrite" in json.loads(answer) else "no record"


@contextmanager
def server(command: Sequence[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block; it must be up within a minute."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _is_up(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server did not start: {' '.join(command)}")
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _is_up(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
            return True
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """Return a process' children that serve: those that hold much memory."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split() if _memory(int(child)) > 30]


def _memory(pid: int) -> float:
    """Return a process' resident memory in MB; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def compare(batching: Sequence[str], single: Sequence[str], ports: tuple[int, int], clients: int, seconds: float,
            rounds: int = 6) -> dict[str, Any]:  # fmt: skip
    """Return the numbers of both servers, the load given to them in turns, and the gain of batching."""
    totals, memory = {"batching": Round(), "one_at_a_time": Round()}, list[float]()
    with server(batching, ports[0]) as first, server(single, ports[1]):
        for port in ports:
            asyncio.run(load(port, 4, min(2.0, seconds)))  # warm
        for _ in range(rounds):
            for name, port in zip(totals, ports, strict=True):
                totals[name].add(asyncio.run(load(port, clients, seconds / rounds)))
            memory.append(round(_memory(first.pid), 1))
    result: dict[str, Any] = {name: total.summary() for name, total in totals.items()}
    single_rate = result["one_at_a_time"]["requests_per_second"]
    result["gain"] = round(result["batching"]["requests_per_second"] / max(single_rate, 1e-9), 2)
    result["memory_mb"] = memory
    return result


def kill_worker(command: Sequence[str], port: int, clients: int, seconds: float) -> dict[str, Any]:
    """Return what clients see when a worker of several is killed in the middle, and whether it comes back."""

    async def run(process: subprocess.Popen[bytes]) -> tuple[Round, int, int]:
        before = children(process.pid)
        loading = asyncio.create_task(load(port, clients, seconds))
        await asyncio.sleep(seconds / 3)
        os.kill(before[0], signal.SIGKILL)
        total = await loading
        return total, len(before), len(children(process.pid))

    with server(command, port) as process:
        time.sleep(2)  # every worker has its model
        total, before, after = asyncio.run(run(process))
    return {**total.summary(), "workers_before": before, "workers_after": after}


def main() -> None:
    """Run what the arguments say, print it and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60, help="for each of the two servers")
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--kill-worker", action="store_true", help="two workers, one of which is killed")
    parser.add_argument("--out", type=Path, help="folder for load.json")
    given = parser.parse_args()
    serve = [sys.executable, "-m", "teo", "serve", *(["--model", given.model] if given.model else [])]
    ports = (free_port(), free_port())
    if given.kill_worker:
        command = [*serve, "--port", str(ports[0]), "--workers", "2"]
        result = kill_worker(command, ports[0], given.clients, given.seconds)
    else:
        batching = [*serve, "--port", str(ports[0])]
        single = [*serve, "--port", str(ports[1]), "--max-batch", "1", "--window-ms", "0"]
        result = compare(batching, single, ports, given.clients, given.seconds)
    result |= {"clients": given.clients, "seconds": given.seconds}
    print(json.dumps(result, indent=2))
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "load.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
