# SPDX-License-Identifier: Apache-2.0
"""GPU time and kernel counts through torch.profiler (CUPTI), in passes of their own: profiling slows the host down."""

import contextlib
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from recorder.trace import MODULE_MARK, PHASE_MARK, Activity, Kernel, activity, kernels

PASSES = 3


def _events(work: Callable[[], object], operators: bool) -> list[dict]:
    """The Chrome trace of the work; with operators and shapes on request. Work before it has ended."""
    kinds = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if operators else [])
    torch.cuda.synchronize()
    with profile(activities=kinds, record_shapes=operators) as p:
        result = work()
        torch.cuda.synchronize()
    del result
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "trace.json")
    try:
        p.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["traceEvents"]
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
        os.rmdir(folder)


def profiled(work: Callable[[], object]) -> Activity:
    """What the work runs on the GPU, one pass."""
    return activity(_events(work, operators=False))


def typical(passes: list[Activity]) -> Activity:
    """The pass with the median time; times and counts of one row belong together."""
    middle = statistics.median_low([a.us for a in passes])
    return next(a for a in passes if a.us == middle)


def row(phase: str, a: Activity, wall_ms: float | None) -> dict:
    """The row's keys of a phase."""
    r = {
        f"{phase}_gpu_ms": a.us / 1e3,
        f"{phase}_memop_ms": a.memop_us / 1e3,
        f"{phase}_kernels": a.kernels,
        f"{phase}_memops": a.memops,
    }
    if wall_ms:
        r[f"{phase}_idle"] = max(0.0, 1 - a.us / 1e3 / wall_ms)
    return r


@contextlib.contextmanager
def module_marks(model: torch.nn.Module) -> Iterator[None]:
    """Marks the forward of every module in a trace, also of one that is left by an exception: that is how checkpointing
    ends a recomputation as soon as it has what it needs."""
    open_marks: list[record_function] = []
    handles = []

    def enter(name: str) -> Callable:
        def hook(_module: torch.nn.Module, _args: object) -> None:
            mark = record_function(MODULE_MARK + name)
            mark.__enter__()
            open_marks.append(mark)

        return hook

    def leave(_module: torch.nn.Module, _args: object, _output: object) -> None:
        open_marks.pop().__exit__(None, None, None)

    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(enter(name or "model")))
        handles.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def phase_mark(name: str) -> record_function:
    """Marks a phase of the work that `attributed` profiles."""
    return record_function(PHASE_MARK + name)


def attributed(model: torch.nn.Module, work: Callable[[], object]) -> list[Kernel]:
    """Everything that the work runs on the GPU, with phase, module and operator."""
    with module_marks(model):
        return kernels(_events(work, operators=True))
