"""The scrape job of the Kubernetes example: it finds the pods of the deployment, with the labels of the autoscaler."""

from __future__ import annotations

import re
from typing import Any

import pytest

from checkout import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

FOLDER = ROOT / "examples" / "kubernetes"
BLOCKS = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(.*?)^```$", (FOLDER / "README.md").read_text("utf-8"), re.M | re.S)
]


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def job() -> Any:
    (found,) = [each for block in BLOCKS for each in block.get("scrape_configs", [])]
    return found


def relabel(labels: dict[str, str]) -> dict[str, str] | None:
    """Return the labels of a target's metrics as Prometheus makes them; None if the target is dropped."""
    found: dict[str, str] = {}
    for rule in job()["relabel_configs"]:
        value = ";".join(labels[name] for name in rule["source_labels"])
        if rule.get("action", "replace") == "replace":
            found[rule["target_label"]] = value
        elif not re.fullmatch(rule["regex"], value):
            return None
    return found


def test_the_job_finds_the_pods_of_the_deployment_by_their_port() -> None:
    assert job()["kubernetes_sd_configs"] == [{"role": "pod"}]
    pod = load("examples/kubernetes/deployment.yaml")["spec"]["template"]
    (port,) = pod["spec"]["containers"][0]["ports"]
    labels = {
        "__meta_kubernetes_pod_label_app": pod["metadata"]["labels"]["app"],
        "__meta_kubernetes_pod_container_port_name": port["name"],
        "__meta_kubernetes_namespace": "default",
        "__meta_kubernetes_pod_name": "teo-1",
    }
    assert relabel(labels) == {"namespace": "default", "pod": "teo-1"}
    assert relabel(labels | {"__meta_kubernetes_pod_container_port_name": "other"}) is None
    job_pod = load("examples/kubernetes/batch-job.yaml")["spec"]["template"]["metadata"]["labels"]["app"]
    assert relabel(labels | {"__meta_kubernetes_pod_label_app": job_pod}) is None


def test_the_adapter_asks_for_the_labels_that_the_job_gives() -> None:
    (rule,) = [each for block in BLOCKS for each in block.get("rules", [])]
    given = {each["target_label"] for each in job()["relabel_configs"] if "target_label" in each}
    assert set(rule["resources"]["overrides"]) == given == set(re.findall(r"(\w+)!=", rule["seriesQuery"]))
    assert (
        load("examples/kubernetes/autoscaler.yaml")["spec"]["metrics"][0]["pods"]["metric"]["name"]
        in rule["seriesQuery"]
    )


def test_it_scrapes_as_the_job_of_compose_does() -> None:
    (compose,) = load("deploy/prometheus.yml")["scrape_configs"]
    assert {key: job()[key] for key in ("job_name", "metrics_path")} == {
        key: compose[key] for key in ("job_name", "metrics_path")
    }
    assert job()["authorization"]["type"] == compose["authorization"]["type"]
    secret = load("examples/kubernetes/deployment.yaml")["spec"]["template"]["spec"]["containers"][0]["env"][0]
    reference = secret["valueFrom"]["secretKeyRef"]
    assert job()["authorization"]["credentials_file"].endswith(f"/{reference['name']}/{reference['key']}")
