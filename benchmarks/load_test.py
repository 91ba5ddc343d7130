"""Hold the server under load: many clients, failures counted, latency, memory, and what batching is worth.

Two servers of the same model run side by side, one with dynamic batches and one that rewrites one dialogue at a time;
the load goes to them in turns, so that both meet the same machine. The clients are plain sockets: they leave the
processor to the servers.

    python benchmarks/load_test.py --clients 64 --seconds 60 --out lab/results/load
    python benchmarks/load_test.py --kill-workers --clients 16 --seconds 60 --out lab/results/load-kill
    python benchmarks/load_test.py --flood --out lab/results/load-flood

With --kill-workers two workers serve clients that retry as `RemoteRewriter` does, and every five seconds the older one
is killed, later if the other is not up yet. --flood sends what a server must refuse or bound, and shows its memory.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from teo.errors import TeoError

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


def serving(pid: int) -> list[int]:
    """Return a process' children whose model is loaded: they have the file of their counts."""
    return [child for child in children(pid) if any(f"counter_{child}" in name for name in _open_files(child))]


def _open_files(pid: int) -> list[str]:
    names = list[str]()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                names.append(str(link.readlink()))
    return names


def _memory(pid: int, kind: str = "VmRSS") -> float:
    """Return a process' resident memory in MB, or another kind; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{kind}:")), 0.0)


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
            memory.append(round(sum(map(_memory, [first.pid, *children(first.pid)])), 1))
    result: dict[str, Any] = {name: total.summary() for name, total in totals.items()}
    single_rate = result["one_at_a_time"]["requests_per_second"]
    result["gain"] = round(result["batching"]["requests_per_second"] / max(single_rate, 1e-9), 2)
    result["memory_mb"] = memory
    return result


def kill_workers(command: Sequence[str], port: int, clients: int, seconds: float, least: int,
                 pause: float = 5.0) -> dict[str, Any]:  # fmt: skip
    """Return what clients that retry see while one worker after another is killed, for some seconds and requests."""
    from teo.integrations import wire
    from teo.integrations.remote import RemoteRewriter

    resets, is_reset, ended = list[float](), wire._is_reset, threading.Event()

    def count_reset(error: Exception) -> bool:
        found = is_reset(error)
        resets.extend([time.monotonic()] * found)
        return found

    wire._is_reset = count_reset
    total, remote = Round(), RemoteRewriter(f"http://127.0.0.1:{port}")

    def ask(first: int) -> None:
        for history, utterance in itertools.cycle(DIALOGUES[first:] + DIALOGUES[:first]):
            if ended.is_set():
                return
            started = time.perf_counter()
            try:
                remote.rewrite(history, utterance)
            except TeoError as error:
                total.statuses[type(error).__name__] += 1
            else:
                total.statuses["200"] += 1
                total.latencies.append(time.perf_counter() - started)

    kills = 0
    with server(command, port) as process:
        _wait(lambda: len(serving(process.pid)) == 2)
        started = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            asking = [pool.submit(ask, number % len(DIALOGUES)) for number in range(clients)]
            while time.perf_counter() < started + seconds or total.statuses.total() < least:
                time.sleep(pause)
                _wait(lambda: len(serving(process.pid)) == 2)
                os.kill(serving(process.pid)[0], signal.SIGKILL)  # the older one
                kills += 1
            ended.set()
            for one in asking:
                one.result()
        total.seconds = time.perf_counter() - started
        _wait(lambda: len(serving(process.pid)) == 2)
        after = len(serving(process.pid))
    wire._is_reset = is_reset
    figures = {"kills": kills, "resets": len(resets), "workers_after": after, "seconds": round(total.seconds, 1)}
    return {**total.summary(), **figures}


def flood(command: Sequence[str], port: int, long: int) -> dict[str, Any]:
    """Return the memory of a worker, most and afterwards, for each kind of flood; each meets a server of its own."""
    kinds: dict[str, Callable[[], object]] = {
        "headers": lambda: _send_headers(port, 3),
        "connections": lambda: _open_connections(port, 1100),
        "invalid lists": lambda: [_post(port, body) for body in _invalid_bodies() for _ in range(5)],
        f"{long} long utterances": lambda: [_post(port, body) for body in _long_bodies(long)],
    }
    found = {}
    for name, send in kinds.items():
        with server(command, port) as process:
            (worker,) = children(process.pid)
            before = {"before_mb": _memory(worker), "first_process_mb": _memory(process.pid)}
            send()
            started = time.perf_counter()
            healthy = _is_up(port)
            found[name] = {
                **before,
                "most_mb": _memory(worker, "VmHWM"),
                "after_mb": _memory(worker),
                "first_process_after_mb": _memory(process.pid),
                "healthy_after": healthy,
                "health_ms": round(1000 * (time.perf_counter() - started), 1),
                "same_worker": children(process.pid) == [worker],
            }
        print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)
    return {name: {key: round(value) if key.endswith("mb") else value for key, value in figures.items()}
            for name, figures in found.items()}  # fmt: skip


def _send_headers(port: int, times: int) -> None:
    """Send 20 MB of headers some times, unless the server closes the connection first."""
    for _ in range(times):
        with socket.create_connection(("127.0.0.1", port)) as caller, suppress(ConnectionError):
            caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            for _ in range(2000):
                caller.sendall(b"A: b\r\n" * 1667)


def _open_connections(port: int, count: int) -> None:
    """Open connections that say nothing, or half a head, and look whether others are answered meanwhile."""
    with ExitStack() as stack:
        for number in range(count):
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            with suppress(ConnectionError):
                caller.sendall(b"GET /hea" if number % 2 else b"")
        for _ in range(10):
            _require(_is_up(port), "an answer during the flood of connections")


def _invalid_bodies() -> Iterator[bytes]:
    """Yield bodies of about a megabyte in which nothing is as it should be."""
    numbers = [1] * 520_000
    bodies: list[dict[str, Any]] = [{"utterance": "a", "history": numbers}, {"messages": numbers}, {"items": numbers}]
    for body in [*bodies, {"messages": [{}] * 340_000}]:
        yield json.dumps(body, separators=(",", ":")).encode()


def _long_bodies(count: int) -> Iterator[bytes]:
    """Yield bodies with distinct utterances of 4,090 Chinese characters, 80 in each."""
    chance, signs = random.Random(1), [chr(number) for number in range(0x4E00, 0x9FA5)]
    for first in range(0, count, 80):
        items = [{"history": ["你好"], "utterance": "".join(chance.choices(signs, k=4090))}
                 for _ in range(min(80, count - first))]  # fmt: skip
        yield json.dumps({"items": items}, ensure_ascii=False).encode()


def _post(port: int, body: bytes) -> int:
    """Return the status of a request."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/rewrite", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        _require(time.monotonic() < end, "two workers within a minute")
        time.sleep(0.1)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"expected {what}, found none")


def main() -> None:
    """Run what the arguments say, print it and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60, help="for each of the two servers")
    parser.add_argument("--model", help="a model folder; the embedded model without it")
    parser.add_argument("--kill-workers", action="store_true", help="two workers, of which one is killed every 5 s")
    parser.add_argument("--requests", type=int, default=5000, help="the fewest while workers are killed")
    parser.add_argument("--flood", action="store_true", help="memory after floods of headers, connections and so on")
    parser.add_argument("--long-utterances", type=int, default=20_000, help="how many of them --flood sends")
    parser.add_argument("--out", type=Path, help="folder for load.json")
    given = parser.parse_args()
    serve = [sys.executable, "-m", "teo", "serve", *(["--model", given.model] if given.model else [])]
    ports = (free_port(), free_port())
    facts: dict[str, Any] = {"clients": given.clients, "seconds": given.seconds}
    if given.kill_workers:
        command = [*serve, "--port", str(ports[0]), "--workers", "2"]
        result = kill_workers(command, ports[0], given.clients, given.seconds, given.requests)
    elif given.flood:
        facts = {}
        result = flood([*serve, "--port", str(ports[0])], ports[0], given.long_utterances)
    else:
        batching = [*serve, "--port", str(ports[0])]
        single = [*serve, "--port", str(ports[1]), "--max-batch", "1", "--window-ms", "0"]
        result = compare(batching, single, ports, given.clients, given.seconds)
    result = facts | result
    print(json.dumps(result, indent=2))
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "load.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
