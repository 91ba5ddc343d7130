"""The settings of a server: limits, batching, token, logs."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, fields
from typing import Any

from teo.arguments import require_token_text
from teo.errors import ConfigError, InputError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
CORS_HEADERS: dict[str, Any] = {
    "allow_methods": ("GET", "HEAD", "POST"),
    "allow_headers": ("*",),  # clients and tracers add their own; there are no cookies that a header could misuse
    "expose_headers": ("Retry-After", "Server-Timing", "X-Request-ID"),
}
"""What pages of the allowed origins may send and read."""
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s?#]+")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of one server; every limit has an answer of its own."""

    token: str | None = None
    """Bearer token that callers must send; None: anyone who reaches the port may call."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call this server from a browser, such as https://chat.example.org; `*`: any."""
    max_body: int = 1 << 20
    """Bytes of a request's body; more is answered 413."""
    max_items: int = 256
    """Dialogues in one request; more is answered 413."""
    max_turns: int = 1000
    """Turns of one dialogue, the utterance among them; more is answered 413."""
    max_characters: int = 100_000
    """Characters of one dialogue; more is answered 413."""
    max_queue: int = 1024
    """Dialogues that may wait for the model; a request that would pass it is answered 429."""
    max_batch: int = 32
    """Dialogues that the model reads at once."""
    max_batch_characters: int = 64_000
    """Characters of a batch, counted as its longest dialogue times its rows: what padding makes the model read."""
    window_ms: float = 3.0
    """How long an idle model waits to fill a batch after the first dialogue, in milliseconds."""
    request_timeout: float = 30.0
    """Seconds after which a request times out with 503."""
    body_timeout: float = 10.0
    """Seconds that a body may take to arrive; then 408."""
    shutdown_timeout: float = 30.0
    """Seconds that a stopping server gives to what is in flight."""
    head_timeout: float = 10.0
    """Seconds that the head of a request may take to arrive; then the connection is closed."""
    max_connections: int = 1000
    """Connections of a worker; a newcomer beyond them takes the place of the one that has been idle longest."""
    model_timeout: float = 60.0
    """Seconds that a call of the model may take; then its worker is ended and replaced."""
    local_only: bool = False
    """Whether only requests to a loopback name are answered, so that no page on the web can be made to point here."""
    log_text: bool = False
    """Whether users' text may stand in the logs."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, bool | str | tuple) or value is None:
                continue
            least = 0 if setting.name == "window_ms" else 1 if isinstance(value, int) else 0.001
            if not value >= least:
                raise ConfigError(f"{setting.name}: expected at least {least}, found {value}")
        if self.token is not None:
            require_token_text(self.token)
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"cors_origins: expected an origin such as https://chat.example.org, or *; found '{origin}' "
                    "(scheme, host and port only, no path and no slash at the end)"
                )
        if self.max_queue < self.max_items:
            raise ConfigError(
                f"max_queue: expected at least max_items ({self.max_items}), found {self.max_queue}; "
                "a full request must fit into an empty queue"
            )


def require_safe_bind(host: str, token: str | None, *, allow_anonymous: bool) -> None:
    """Refuse an address that other machines can reach if there is no token, unless allowed."""
    if token or allow_anonymous or is_loopback(host):
        return
    raise InputError(
        f"host: {host} can be reached from other machines and there is no token; set TEO_TOKEN, "
        "bind to 127.0.0.1, or say --allow-anonymous"
    )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # another name: what it resolves to is not ours to trust
        return False
