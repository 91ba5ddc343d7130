"""The container files: what they promise is checked, and the image, or its steps in a clean environment, is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from waiting import PATIENCE, free_port, is_up, post, until

from teo.server.metrics import ServerMetrics

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = []
    for line in joined.splitlines():
        name, _, rest = line.partition(" ")
        assert re.fullmatch(r"[A-Z]+", name), f"not an instruction: {line}"
        found.append((name, rest.strip()))
    return found


def values(name: str) -> list[str]:
    return [value for given, value in instructions() if given == name]


def final_stage() -> list[tuple[str, str]]:
    every = instructions()
    last = max(number for number, (name, _) in enumerate(every) if name == "FROM")
    return every[last:]


def test_images_are_slim_and_of_a_stated_version_or_of_a_digest_that_is_given() -> None:
    assert [value.split()[0] for value in values("FROM")] == ["${BASE}", "${BASE}"]
    assert re.fullmatch(r"BASE=python:3\.1[1-3]-slim", values("ARG")[0])
    assert instructions()[0][0] == "ARG", "before the first FROM, so that it holds for both"


def test_it_runs_as_a_user_without_rights() -> None:
    stage = final_stage()
    names = [name for name, _ in stage]
    user = next(value for name, value in stage if name == "USER")
    assert user.isdigit()
    assert int(user) >= 10_000
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert not any("sudo" in value or "chmod 777" in value for _, value in instructions())


def test_signals_reach_the_server_and_it_binds_outside() -> None:
    command = json.loads(values("ENTRYPOINT")[0])
    assert command[:2] == ["teo", "serve"], "exec form: a shell would swallow the signal to stop"
    assert command[command.index("--host") + 1] == "0.0.0.0"
    assert command[command.index("--port") + 1] == values("EXPOSE")[0]
    assert values("STOPSIGNAL") == ["SIGTERM"]


def test_the_options_of_the_entry_point_exist() -> None:
    import typer

    from teo.cli.serve import serve

    app = typer.Typer()
    app.command()(serve)
    shown = CliRunner().invoke(app, ["--help"], terminal_width=200, color=False).output
    for option in json.loads(values("ENTRYPOINT")[0])[2:]:
        assert not option.startswith("--") or option in shown


def test_the_health_check_asks_the_server() -> None:
    check = values("HEALTHCHECK")[0]
    code = json.loads(check[check.index("CMD") + 3 :])
    assert code[:2] == ["python", "-c"]
    compile(code[2], "healthcheck", "exec")
    assert f"127.0.0.1:{values('EXPOSE')[0]}/health" in code[2]
    assert all(option in check for option in ("--interval=", "--timeout=", "--start-period="))


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    copied = [part for value in values("COPY") if "--from" not in value for part in value.split()[:-1]]
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert copied
    for name in copied:
        assert (ROOT / name.removeprefix("./")).exists(), name
        assert name in allowed, f"{name} is left out by .dockerignore"


def test_the_image_installs_the_extra_that_the_server_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    install = next(value for value in values("RUN") if "pip install" in value)
    assert values("ARG")[1:] == ["EXTRA=serve"]
    assert '".[$EXTRA]"' in install
    assert "--no-cache-dir" in install
    assert "--constraint constraints.txt" in install, "the versions that the tests ran with"
    assert "serve" in project["optional-dependencies"], "the extra is declared"


def run(*words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True)
    if "No matching distribution found" in done.stderr or "registry" in done.stderr:
        pytest.skip("nothing can be fetched here")
    assert done.returncode == 0, done.stderr[-2000:]


def start_image(engine: str, port: int) -> subprocess.Popen[bytes]:
    """The container of an image that is built from this checkout."""
    run(engine, "build", "--tag", "teo-test", ROOT)
    limits = ["--read-only", "--tmpfs", "/tmp", "--memory", "1g", "--cap-drop", "ALL"]
    published = ["--publish", f"127.0.0.1:{port}:{values('EXPOSE')[0]}", "--env", "TEO_TOKEN"]
    command = [engine, "run", "--rm", *limits, *published, "teo-test"]
    return subprocess.Popen(command, env={**os.environ, "TEO_TOKEN": "secret"})


def start_steps(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """The entry point, installed into a clean environment from what is copied into the image."""
    (source := folder / "source").mkdir()
    for value in (value for value in values("COPY") if "--from" not in value):
        *names, target = value.split()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, source / target)
    install = next(value for value in values("RUN") if "pip install" in value)
    script = install.replace("/opt/teo", str(folder / "teo")).replace("python -m venv", f"{sys.executable} -m venv")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run("bash", "-c", script, cwd=source, env={**clean, "EXTRA": values("ARG")[1].partition("=")[2]})
    command = json.loads(values("ENTRYPOINT")[0])
    command = [str(port) if word == values("EXPOSE")[0] else word for word in command]
    path = f"{folder / 'teo' / 'bin'}{os.pathsep}{clean['PATH']}"
    return subprocess.Popen(command, cwd=folder, env={**clean, "PATH": path, "TEO_TOKEN": "secret"})


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the image is a Linux one")
def test_the_image_serves_or_its_steps_do_if_no_container_can_be_made(tmp_path: Path) -> None:
    engines = [name for name in ("docker", "podman") if shutil.which(name)]
    engine = next((name for name in engines if subprocess.run([name, "info"], capture_output=True).returncode == 0), "")
    port = free_port()
    process = start_image(engine, port) if engine else start_steps(tmp_path, port)
    url = f"http://127.0.0.1:{port}"
    try:
        assert until(lambda: is_up(url) or process.poll() is not None)
        body = {"history": ["Who wrote Emma?", "Jane Austen wrote it."], "utterance": "Where was she born?"}
        assert post(f"{url}/v1/rewrite", json=body).status_code == 401
        answer = post(f"{url}/v1/rewrite", json=body, headers={"authorization": "Bearer secret"})
        assert answer.json()["rewrite"] == "Where was Jane Austen born?"
        check = values("HEALTHCHECK")[0]
        code = json.loads(check[check.index("CMD") + 3 :])[2].replace(f":{values('EXPOSE')[0]}/", f":{port}/")
        run(sys.executable, "-c", code)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_compose_needs_a_token_and_opens_ports_on_loopback_only() -> None:
    services = load("compose.yaml")["services"]
    assert set(services) == {"teo", "prometheus"}
    assert services["teo"]["environment"]["TEO_TOKEN"].startswith("${TEO_TOKEN:?")
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
    assert services["teo"]["read_only"] is True
    assert re.fullmatch(r"prom/prometheus:v\d+\.\d+\.\d+", services["prometheus"]["image"])


def test_every_library_of_the_server_has_one_version_in_the_image() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["serve"]]
    names = {re.split(r"[<>=;\[ ]", line)[0].lower() for line in needed}
    pinned = {
        line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    }
    assert names <= pinned


def test_every_service_has_a_limit_of_memory() -> None:
    assert all(service["mem_limit"] for service in load("compose.yaml")["services"].values())


def test_time_outs_raise_an_alert() -> None:
    rules = load("deploy/alerts.yml")["groups"][0]["rules"]
    assert any('status="503"' in rule["expr"] for rule in rules)


def test_compose_gives_a_stopping_server_its_time() -> None:
    from teo.server.settings import ServerSettings

    grace = load("compose.yaml")["services"]["teo"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > ServerSettings().shutdown_timeout + 1


def test_what_compose_mounts_is_there() -> None:
    compose = load("compose.yaml")
    for volume in compose["services"]["prometheus"]["volumes"]:
        source = volume.split(":")[0]
        assert (ROOT / source).is_file() if source.startswith("./") else source in compose["volumes"]
    assert set(compose["services"]["prometheus"]["secrets"]) == set(compose["secrets"])


def test_prometheus_scrapes_the_server_with_its_token() -> None:
    job = load("deploy/prometheus.yml")["scrape_configs"][0]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["teo:8000"]}]
    assert job["authorization"]["credentials_file"] == "/run/secrets/teo_token"


def test_alerts_speak_of_metrics_that_there_are() -> None:
    known = {sample.name for metric in ServerMetrics().registry.collect() for sample in metric.samples}
    known |= {f"{metric.name}_bucket" for metric in ServerMetrics().registry.collect() if metric.type == "histogram"}
    known |= {f"{metric.name}_total" for metric in ServerMetrics().registry.collect() if metric.type == "counter"}
    for rule in load("deploy/alerts.yml")["groups"][0]["rules"]:
        used = set(re.findall(r"\bteo_\w+", rule["expr"]))
        assert used <= known, rule["alert"]
        assert used or "up{" in rule["expr"]
