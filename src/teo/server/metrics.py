"""What Prometheus may scrape: numbers only, never text.

Each worker writes its numbers into files in PROMETHEUS_MULTIPROC_DIR, and whichever is scraped adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from teo.errors import TeoError
from teo.result import Rewrite
from teo.server.batching import BatchedAnswer

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class ServerMetrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "teo_requests", "Requests answered, by address and status.", ["path", "status"], registry=self.registry
        )
        self.stages = Histogram(
            "teo_stage_seconds",
            "Time of a request: queue (waiting for a batch), model (its batch), total.",
            ["stage"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batches = Histogram(
            "teo_batch_size", "Dialogues that the model read at once.", buckets=SIZES, registry=self.registry
        )
        self.rewrites = Counter(
            "teo_rewrites",
            "Dialogues by outcome: changed, unchanged (nothing to change), abstained (too unsure), refused.",
            ["outcome"],
            registry=self.registry,
        )
        self.truncated = Counter(
            "teo_truncated", "Dialogues of which the model did not read all.", registry=self.registry
        )
        self.queue = Gauge(
            "teo_queue_dialogues",
            "Dialogues that are waiting for the model.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        for outcome in ("changed", "unchanged", "abstained", "refused"):
            self.rewrites.labels(outcome)

    def observe_batch(self, size: int, seconds: float) -> None:
        """Count one call of the model."""
        self.batches.observe(size)
        self.stages.labels("model").observe(seconds)

    def observe_answers(self, answers: Sequence[BatchedAnswer]) -> None:
        """Count the outcomes of a request's dialogues."""
        for answer in answers:
            self.stages.labels("queue").observe(answer.queue_seconds)
            self.rewrites.labels(outcome_of(answer.result)).inc()
            if isinstance(answer.result, Rewrite) and answer.result.truncated:
                self.truncated.inc()

    def count_refused(self, dialogues: int = 1) -> None:
        """Count dialogues that never reached the model."""
        self.rewrites.labels("refused").inc(dialogues)

    def render(self) -> bytes:
        """Return all numbers in Prometheus' text format, those of the other workers added."""
        folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        if not folder:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def outcome_of(result: Rewrite | TeoError) -> str:
    """Return the outcome of a dialogue in a word."""
    if not isinstance(result, Rewrite):
        return "refused"
    if result.changed:
        return "changed"
    return "abstained" if result.operations else "unchanged"
