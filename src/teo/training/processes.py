"""The processes of a run, if a launcher starts several: who they are, where they compute, waiting and gathering."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta
from typing import Any

import torch

_PATIENCE = timedelta(hours=2)
"""How long a process waits for the others, while the first one reads and prepares rows, say."""


def join_process_group(device: str) -> None:
    """Join the other processes that a launcher (torchrun, accelerate) started; alone there is nothing to join."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or torch.distributed.is_initialized():
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo", timeout=_PATIENCE)
    atexit.register(torch.distributed.destroy_process_group)


def distributed_rank() -> tuple[int, int]:
    """Return this process's number and how many there are."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def own_device(device: str) -> str:
    """Return the device of this process, by its number if there are several."""
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


def copy_from_first(model: torch.nn.Module) -> None:
    """Give every process the first one's weights; new embeddings may have been drawn differently."""
    if distributed_rank()[1] > 1:
        for tensor in model.state_dict().values():
            torch.distributed.broadcast(tensor, src=0)


def average_gradients(model: torch.nn.Module) -> None:
    """Replace each gradient by its mean over all processes; a parameter without one counts as zero there."""
    _, world = distributed_rank()
    if world == 1:
        return
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in parameters:
        if parameter.grad is None:  # a batch without masked tokens, say: all processes must send the same sizes
            parameter.grad = torch.zeros_like(parameter)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    torch.distributed.all_reduce(flat)
    flat /= world
    for gradient, mean in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def from_first(value: float, device: torch.device) -> float:
    """Return the first process's value, so that all decide alike."""
    if distributed_rank()[1] == 1:
        return value
    shared = torch.tensor([value], dtype=torch.float64, device=device)
    torch.distributed.broadcast(shared, src=0)
    return float(shared.item())
