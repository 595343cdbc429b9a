# SPDX-License-Identifier: Apache-2.0
"""What the caching allocator says around a piece of work."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Memory:
    """Bytes: allocated before and after the work, its peak, the peak before rounding, and the process's reserve."""

    before: int
    after: int
    peak: int
    requested_peak: int
    reserved: int


def allocated() -> int:
    return torch.cuda.memory_allocated()


def settle() -> None:
    """Frees what only reference cycles keep, and waits for the GPU."""
    gc.collect()
    torch.cuda.synchronize()


def measured(work: Callable[[], T]) -> tuple[T, Memory]:
    """The work's result and its memory; the result is alive where `after` is read."""
    before = allocated()
    torch.cuda.reset_peak_memory_stats()
    result = work()
    # The allocator's counters are the host's: reading them needs no synchronisation.
    memory = Memory(
        before=before,
        after=allocated(),
        peak=torch.cuda.max_memory_allocated(),
        requested_peak=torch.cuda.memory_stats()["requested_bytes.all.peak"],
        reserved=torch.cuda.max_memory_reserved(),
    )
    return result, memory


def reserved_peak() -> int:
    """max_memory_reserved(). Resetting the peak sets it to what is reserved now, and nothing here empties the cache
    (the allocator does so only before it gives up), so this is the process's peak."""
    return torch.cuda.max_memory_reserved()
