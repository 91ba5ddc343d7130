"""What all tests share: where the real data lies, and how long hypothesis may think."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("teo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("teo")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published datasets beside the checkout; tests that need it are skipped where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the published datasets are not here: expected them in ../shared/data")
    return folder
