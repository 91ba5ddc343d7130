"""The Kubernetes example: valid by the schemas of Kubernetes, and true to the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")

from teo.cli.app import app  # noqa: E402
from teo.server.metrics import ServerMetrics  # noqa: E402
from teo.server.middleware import OPEN_PATHS  # noqa: E402
from teo.server.settings import DEFAULT_PORT, ServerSettings  # noqa: E402

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))


def load(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_what_the_schemas_ask_for(file: Path) -> None:
    kubernetes_validate.validate(load(file.name), kubernetes_validate.latest_version(), strict=True)


def test_a_mistake_is_noticed() -> None:
    wrong = load("deployment.yaml")
    wrong["spec"]["template"]["spec"]["containers"][0]["readinessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_the_pods_are_those_that_the_others_mean() -> None:
    deployment, service = load("deployment.yaml"), load("service.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selectors = [
        deployment["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        load("disruption-budget.yaml")["spec"]["selector"]["matchLabels"],
        load("network-policy.yaml")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    target = load("autoscaler.yaml")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])


def test_the_container_serves_where_probes_and_service_look() -> None:
    (container,) = load("deployment.yaml")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert port["containerPort"] == DEFAULT_PORT
    assert load("service.yaml")["spec"]["ports"][0]["targetPort"] == port["name"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert (get["path"] in OPEN_PATHS, get["port"]) == (True, port["name"]), "it needs no token"
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/tmp"], "the workers' counts lie there"


def test_a_stopping_pod_has_the_time_to_drain() -> None:
    pod = load("deployment.yaml")["spec"]["template"]["spec"]
    leaving = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod["terminationGracePeriodSeconds"] > leaving + ServerSettings().shutdown_timeout + 2


def test_the_metric_of_the_autoscaler_is_one_that_the_server_gives() -> None:
    (metric,) = load("autoscaler.yaml")["spec"]["metrics"]
    assert f"# TYPE {metric['pods']['metric']['name']} gauge" in ServerMetrics().render().decode()


def test_the_options_of_both_commands_exist() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    (server,) = load("deployment.yaml")["spec"]["template"]["spec"]["containers"]
    (batch,) = load("batch-job.yaml")["spec"]["template"]["spec"]["containers"]
    for verb, words in (("serve", server["args"]), (batch["command"][1], batch["command"][2:])):
        known = {name for parameter in commands[verb].params for name in parameter.opts}
        assert [word for word in words if word.startswith("--") and word not in known] == []


@pytest.mark.parametrize("name", ["deployment.yaml", "batch-job.yaml"])
def test_containers_have_limits_and_no_rights(name: str) -> None:
    pod = load(name)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["memory"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)


def test_a_job_that_is_done_with_bad_rows_is_not_started_again() -> None:
    from teo.cli.batch import BAD_ROWS

    rules = load("batch-job.yaml")["spec"]["podFailurePolicy"]["rules"]
    final = next(rule["onExitCodes"] for rule in rules if rule["action"] == "FailJob")
    assert (final["operator"], final["values"]) == ("In", [2, BAD_ROWS])
    assert load("batch-job.yaml")["spec"]["template"]["spec"]["restartPolicy"] == "Never", "a failure policy needs it"
