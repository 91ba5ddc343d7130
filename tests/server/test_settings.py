"""What a server may be told, and where it may listen."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from teo.errors import ConfigError, InputError
from teo.server.run import ServerModelChoice, address_of, read_plan, require_free_port, write_plan
from teo.server.settings import ServerSettings, is_loopback, require_safe_bind


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_body": 0}, "max_body: expected at least 1, found 0"),
        ({"window_ms": -1.0}, "window_ms: expected at least 0, found -1.0"),
        ({"request_timeout": 0.0}, "request_timeout: expected at least 0.001, found 0.0"),
        ({"request_timeout": float("nan")}, "request_timeout: expected at least 0.001, found nan"),
        (
            {"max_queue": 10, "max_items": 20},
            "max_queue: expected at least max_items (20), found 10; a full request must fit into an empty queue",
        ),
        (
            {"cors_origins": ("https://a.example.org/",)},
            "cors_origins: expected an origin such as https://chat.example.org, or *; found 'https://a.example.org/' "
            "(scheme, host and port only, no path and no slash at the end)",
        ),
        ({"token": ""}, "token: expected visible ASCII characters, found none or others; a header must hold it"),
        ({"token": "naïve"}, "token: expected visible ASCII characters, found none or others; a header must hold it"),
        ({"token": " a"}, "token: expected no space at either end, found one; a header cannot hold it"),
        ({"token": "a\nb"}, "token: expected visible ASCII characters, found none or others; a header must hold it"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerSettings(**settings)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_without_a_token_only_loopback_is_bound(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    require_safe_bind(host, "token", allow_anonymous=False)
    require_safe_bind(host, None, allow_anonymous=True)
    if loopback:
        require_safe_bind(host, None, allow_anonymous=False)
        return
    with pytest.raises(InputError) as caught:
        require_safe_bind(host, None, allow_anonymous=False)
    assert str(caught.value) == (
        f"host: {host} can be reached from other machines and there is no token; set TEO_TOKEN, "
        "bind to 127.0.0.1, or say --allow-anonymous"
    )


def test_workers_get_the_same_settings_and_the_token_apart() -> None:
    choice = ServerModelChoice("models/mine", "fast", 2)
    settings = ServerSettings(token="secret", max_batch=7, log_text=True, cors_origins=("http://localhost:3000", "*"))
    plan = write_plan(choice, settings)
    assert "secret" not in plan
    assert read_plan(plan, "secret") == (choice, settings)


# ---- the port ----


@pytest.mark.process
def test_a_free_port_is_taken_as_it_is_and_zero_is_any() -> None:
    chosen = require_free_port("127.0.0.1", 0)
    assert chosen > 0
    assert require_free_port("127.0.0.1", chosen) == chosen


@pytest.mark.process
@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("no-such-host.invalid", 8000, "host: expected an address of this machine, found 'no-such-host.invalid'"),
        ("192.0.2.1", 8000, "host: 192.0.2.1 is not an address of this machine; use 127.0.0.1, or 0.0.0.0"),
    ],
)
def test_a_host_that_is_not_here_is_refused_by_name(host: str, port: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        require_free_port(host, port)
    assert str(caught.value).startswith(message)


@pytest.mark.process
def test_a_port_in_use_is_refused_by_name() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError) as caught:
            require_free_port("127.0.0.1", port)
    assert str(caught.value) == (
        f"port: {port} on 127.0.0.1 is in use already; stop what uses it, or choose another with --port"
    )


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("localhost", "http://localhost:80"),
        ("::1", "http://[::1]:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
    ],
)
def test_the_address_is_one_to_open(host: str, address: str) -> None:
    assert address_of(host, 80) == address
