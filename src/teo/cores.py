"""How many cores this process may use: those of its affinity, or fewer if a container's quota allows less."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def available_cores(cgroup: Path = CGROUP) -> int:
    """Return how many cores this process may use; at least one."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = read_quota(cgroup)
    return own if quota is None else max(1, min(own, math.floor(quota)))


def read_quota(cgroup: Path = CGROUP) -> float | None:
    """Return how many cores' time the process group may use, as `docker --cpus` and `limits.cpu` set it; None: any."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()[:2]  # version 2
    except (OSError, ValueError):
        try:  # version 1
            quota = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text()
            period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text()
        except OSError:
            return None
    try:
        return int(quota) / int(period) if int(quota) > 0 else None
    except (ValueError, ZeroDivisionError):  # "max"
        return None
