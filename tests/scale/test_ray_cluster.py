"""How many actors there are on a Ray cluster, with a cluster that only says what it has."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from teo.errors import InputError
from teo.scale import engines
from teo.scale.engines import ray_cluster
from teo.scale.worker import BatchTask, ModelChoice


class Cluster:
    """A Ray that remembers how it was started; at an address it has what it was given."""

    def __init__(self, failure: Exception | None = None, **resources: float) -> None:
        self.resources, self.failure = resources, failure
        self.started: dict[str, Any] | None = None
        self.stopped = False
        context = SimpleNamespace(enable_progress_bars=True)
        self.data = SimpleNamespace(DataContext=SimpleNamespace(get_current=lambda: context))

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        if self.failure:
            raise self.failure
        self.started = options
        if "num_cpus" in options:
            self.resources["CPU"] = options["num_cpus"]

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def shutdown(self) -> None:
        self.stopped = True


def task(**choice: Any) -> BatchTask:
    return BatchTask("in", "out", "jsonl", ModelChoice(**choice))


@pytest.mark.parametrize(
    ("resources", "choice", "processes", "actors", "reason"),
    [
        ({"CPU": 9}, {}, None, 8, "one core stays free"),
        ({"CPU": 9}, {"threads": 3}, None, 2, "three cores for each"),
        ({"CPU": 9}, {}, 4, 4, "as many as asked for"),
        ({"CPU": 9, "GPU": 2}, {"device": "cuda"}, None, 2, "one for each GPU"),
    ],
)
def test_a_cluster_gets_as_many_actors_as_it_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
    resources: dict[str, float],
    choice: dict[str, Any],
    processes: int | None,
    actors: int,
    reason: str,
) -> None:
    cluster = Cluster(**resources)
    monkeypatch.setattr(engines, "require_ray", lambda: cluster)
    with ray_cluster(task(**choice), processes, "somewhere:1") as found:
        assert found == actors, reason
        assert cluster.started is not None
        assert cluster.started["address"] == "somewhere:1"
    assert cluster.stopped


@pytest.mark.parametrize(
    ("resources", "choice", "processes", "wording"),
    [
        ({"CPU": 4}, {}, 4, "expected at most 3 on this cluster, found 4; it has 4 cores, of which one stays free"),
        ({"CPU": 1}, {}, None, "expected at most 0 on this cluster, found 1; it has 1 cores"),
        ({"CPU": 4}, {"device": "cuda"}, None, "expected at most 0 on this cluster, found 1; it has 0 GPUs"),
    ],
)
def test_a_cluster_without_room_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    resources: dict[str, float],
    choice: dict[str, Any],
    processes: int | None,
    wording: str,
) -> None:
    cluster = Cluster(**resources)
    monkeypatch.setattr(engines, "require_ray", lambda: cluster)
    with pytest.raises(InputError, match=re.escape(wording)), ray_cluster(task(**choice), processes, "somewhere:1"):
        pass
    assert cluster.stopped


def test_a_cluster_of_ones_own_has_a_core_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    monkeypatch.setattr(engines, "require_ray", lambda: cluster)
    with ray_cluster(task(threads=2), 3, None) as actors:
        assert cluster.started is not None
        assert (actors, cluster.started["num_cpus"]) == (3, 7)
        assert cluster.started["address"] == "local", "not one that happens to run on the machine"


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "require_ray", lambda: Cluster(ConnectionError("no answer\nmore")))
    wording = "--address: expected a Ray cluster at somewhere:1, found none that accepts us (no answer); start one"
    with pytest.raises(InputError, match=re.escape(wording)), ray_cluster(task(), None, "somewhere:1"):
        pass
