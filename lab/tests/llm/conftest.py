"""What the tests of language models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripted_endpoint import Script


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """An endpoint that answers as a test scripts it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Script()
    yield made
    made.server.shutdown()
    made.server.server_close()
