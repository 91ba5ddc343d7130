"""The processes of a run, where a launcher starts several: who they are, where they compute, waiting and gathering."""

from __future__ import annotations

import os
from typing import Any

import torch


def join_process_group(device: str) -> None:
    """Join the other processes of a launcher; alone there is nothing to join, and no accelerate is needed."""
    try:
        from accelerate import PartialState
    except ModuleNotFoundError:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise
        return
    PartialState(cpu=device == "cpu")


def distributed_rank() -> tuple[int, int]:
    """Return this process's number and how many there are."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def own_device(device: str) -> str:
    """Return the device of this process, by its number where there are several."""
    return f"cuda:{torch.cuda.current_device()}" if device == "cuda" else device


def gather(mine: dict[int, Any], count: int) -> list[Any]:
    """Return what all processes have, by number."""
    _, world = distributed_rank()
    parts: list[dict[int, Any]] = [mine]
    if world > 1:
        parts = [{} for _ in range(world)]
        torch.distributed.all_gather_object(parts, mine)
    everything = {number: value for part in parts for number, value in part.items()}
    return [everything[number] for number in range(count)]


def wait_for_all() -> None:
    """Return once every process is here."""
    if distributed_rank()[1] > 1:
        torch.distributed.barrier()
