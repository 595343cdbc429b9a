# SPDX-License-Identifier: Apache-2.0
"""Wall times: the host's clock around work that the GPU has finished."""

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import torch

T = TypeVar("T")

LEAST_RUNS, MOST_RUNS = 5, 50
ENOUGH_MS = 1000.0  # of measured time; long enough for the clock and power samples too


def wall_of(work: Callable[[], T]) -> tuple[T, float]:
    """One run: its result and its time."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return result, (time.perf_counter() - start) * 1e3


def wall_ms(work: Callable[[], object]) -> float:
    """One run; the result is dropped after the clock is read."""
    return wall_of(work)[1]


def median_wall_ms(work: Callable[[], object]) -> float:
    """The median of several runs after one that warms up."""
    wall_ms(work)
    runs: list[float] = []
    while len(runs) < LEAST_RUNS or (sum(runs) < ENOUGH_MS and len(runs) < MOST_RUNS):
        runs.append(wall_ms(work))
    return statistics.median(runs)


def median_event_ms(work: Callable[[], object], runs: int = 20) -> float:
    """The median of times between two GPU events around the work, after one run that warms up."""
    work()
    times = []
    for _ in range(runs):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)
