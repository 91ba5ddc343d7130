"""What a server may be told, and where it may listen."""

from __future__ import annotations

from typing import Any

import pytest

from teo.errors import ConfigError, InputError
from teo.server.run import ModelChoice, read_plan, write_plan
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
        ({"token": ""}, "token: expected visible ASCII characters, found none or others; a header must hold it"),
        ({"token": "naïve"}, "token: expected visible ASCII characters, found none or others; a header must hold it"),
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
    choice = ModelChoice("models/mine", "fast", 2)
    settings = ServerSettings(token="secret", max_batch=7, log_text=True)
    plan = write_plan(choice, settings)
    assert "secret" not in plan
    assert read_plan(plan, "secret") == (choice, settings)
