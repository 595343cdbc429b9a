# SPDX-License-Identifier: Apache-2.0
"""Reads a profiler's Chrome trace: what ran on the GPU, for how long, and which operator of which module launched it.

Categories are Kineto's: kernel, gpu_memcpy and gpu_memset ran on the GPU; cuda_runtime and cuda_driver calls launched
them and carry the same correlation number; cpu_op are PyTorch's operators; user_annotation are our modules' marks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MODULE_MARK = "module:"
PHASE_MARK = "phase:"
ENGINE = "autograd::engine::evaluate_function: "  # around each backward function; has the forward's sequence number
LAUNCHES = ("cuda_runtime", "cuda_driver")
COPIES = ("gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Activity:
    """Sums over what ran on the GPU. `kernels` counts kernels alone, `us` is kernels, copies and fills together."""

    kernels: int = 0
    memops: int = 0
    us: float = 0.0
    memop_us: float = 0.0

    def __add__(self, other: "Activity") -> "Activity":
        return Activity(
            self.kernels + other.kernels, self.memops + other.memops, self.us + other.us, self.memop_us + other.memop_us
        )


def activity(events: Iterable[dict]) -> Activity:
    """The sums of one trace."""
    kernels = memops = 0
    us = memop_us = 0.0
    for e in events:
        if e.get("cat") == "kernel":
            kernels, us = kernels + 1, us + e["dur"]
        elif e.get("cat") in COPIES:
            memops, us, memop_us = memops + 1, us + e["dur"], memop_us + e["dur"]
    return Activity(kernels, memops, us, memop_us)


@dataclass(frozen=True)
class Kernel:
    """One thing that ran on the GPU. `op` is the innermost operator around its launch, `module` the module whose
    forward called it; in the backward the module whose forward made the gradient's function."""

    phase: str
    module: str
    op: str
    shapes: list
    kind: str
    name: str
    us: float


@dataclass
class _Call:
    """What surrounds a point of a thread: the innermost operator and module, the backward function's forward."""

    ts: float = 0.0
    op: str = ""
    shapes: list | None = None
    module: str = ""
    maker: tuple | None = None  # (thread, sequence number) of the forward operator


def kernels(events: list[dict]) -> list[Kernel]:
    """Everything that ran on the GPU, in the order in which it began there."""
    phases = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith(PHASE_MARK)]
    calls = _calls(events, phases[0].get("tid") if phases else None)
    result = []
    ran = [e for e in events if e.get("cat") == "kernel" or e.get("cat") in COPIES]
    for e in sorted(ran, key=lambda e: e["ts"]):
        call = calls.get(e.get("args", {}).get("correlation"), _Call())
        phase = next((p["name"] for p in phases if p["ts"] <= call.ts <= p["ts"] + p["dur"]), PHASE_MARK)
        result.append(
            Kernel(phase[len(PHASE_MARK) :], call.module, call.op, call.shapes or [], e["cat"], e["name"], e["dur"])
        )
    return result


def _calls(events: list[dict], main: object) -> dict[int, _Call]:
    """By correlation number: what surrounded the launch. `main` is the thread that runs the phases."""
    threads: dict[object, list[dict]] = {}
    for e in events:
        if e.get("ph") == "X" and (e.get("cat") in LAUNCHES or e.get("cat") in ("cpu_op", "user_annotation")):
            threads.setdefault(e.get("tid"), []).append(e)
    first = _first_forward(events)
    found: dict[int, _Call] = {}
    makers: dict[tuple, str] = {}
    for tid, thread in threads.items():
        for event, stack in _nested(thread):
            arguments = event.get("args", {})
            if event["cat"] in LAUNCHES:
                if "correlation" in arguments:
                    found[arguments["correlation"]] = _surroundings(event["ts"], stack, tid, main, first)
            elif event["cat"] == "cpu_op" and "Sequence number" in arguments and not event["name"].startswith(ENGINE):
                module = _module(stack)
                if module:
                    makers.setdefault((tid, arguments["Sequence number"]), module)
    for call in found.values():
        if not call.module:
            call.module = makers.get(call.maker, "")
    return found


def _first_forward(events: list[dict]) -> object:
    """The number under which backward functions know the thread of the forward. Sequence numbers are counted by each
    thread, and a recomputed (checkpointed) forward runs in the backward's; the first function belongs to the loss."""
    engine = [e for e in events if e.get("cat") == "cpu_op" and e["name"].startswith(ENGINE)]
    return min(engine, key=lambda e: e["ts"]).get("args", {}).get("Fwd thread id") if engine else None


def _nested(thread: list[dict]) -> Iterator[tuple[dict, list[dict]]]:
    """Each event of a thread with those that it lies in, outermost first. The list is good until the next event."""
    stack: list[dict] = []
    for event in sorted(thread, key=lambda e: (e["ts"], -e["dur"])):
        while stack and event["ts"] >= stack[-1]["ts"] + stack[-1]["dur"]:
            stack.pop()
        yield event, stack
        if event["cat"] not in LAUNCHES:
            stack.append(event)


def _module(stack: list[dict]) -> str:
    """The innermost module's name, empty outside of all."""
    for e in reversed(stack):
        if e["cat"] == "user_annotation" and e["name"].startswith(MODULE_MARK):
            return e["name"][len(MODULE_MARK) :]
    return ""


def _surroundings(ts: float, stack: list[dict], tid: object, main: object, first: object) -> _Call:
    call = _Call(ts=ts, module=_module(stack))
    for e in reversed(stack):
        if e["cat"] != "cpu_op":
            continue
        arguments = e.get("args", {})
        if not e["name"].startswith(ENGINE):
            if not call.op:
                call.op, call.shapes = e["name"], arguments.get("Input Dims")
        else:
            call.op = call.op or e["name"][len(ENGINE) :]
            call.maker = (main if arguments.get("Fwd thread id") == first else tid, arguments.get("Sequence number"))
            break
    return call
