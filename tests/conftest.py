"""What all tests share: where the real data lies, a browser, and how long hypothesis may think."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("teo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("teo")

SHARED = Path(__file__).resolve().parents[2] / "shared"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published datasets beside the checkout; tests that need it are skipped where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the published datasets are not here: expected them in ../shared/data")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium; tests that need it are skipped where it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
