# SPDX-License-Identifier: Apache-2.0
"""Measures a training step: the second one, when the optimizer's states exist."""

import contextlib
from collections.abc import Callable

import torch

from recorder import flops, gpu_time, memory, sequence_parts, several_gpus, timing
from recorder.clocks import Clocks
from recorder.inputs.tensors import Inputs
from recorder.journal import Journal, write_kernels
from recorder.scenario import Scenario
from recorder.trace import Activity

PHASES = ("forward", "backward", "optimizer")
# What each of several GPUs has a figure of its own for.
PER_RANK = (
    "alloc_start",
    "alloc_after_forward",
    "forward_peak",
    "alloc_after_backward",
    "backward_peak",
    "alloc_after_step",
    "step_peak",
    "reserved_peak",
    "outside_bytes",
)


def _trained_counts(model: torch.nn.Module) -> dict[str, int]:
    """What a row says of the parameters that train. None stays referenced: whole weights have to go as they are
    divided, or the allocator keeps as much memory more."""
    sizes = [(p.numel(), p.element_size()) for p in model.parameters() if p.requires_grad]
    return {"trainable": sum(n for n, _ in sizes), "trainable_bytes": sum(n * size for n, size in sizes)}


class Training:
    """A model in train mode with its inputs and labels. loss.backward(), optimizer.step(), then gradients to None."""

    def __init__(self, model: torch.nn.Module, inputs: Inputs, scenario: Scenario, journal: Journal) -> None:
        self._tensors = inputs.tensors
        self._scenario = scenario
        self._journal = journal
        # Ahead of what divides them: DeepSpeed's third stage leaves parameters without elements.
        self._trained = _trained_counts(model)
        if scenario.cp > 1:
            sequence_parts.divide(model, self._tensors, scenario.cp)
        self._stepper = several_gpus.prepare(model, scenario)
        self._model = self._stepper.model

    def run(self, kernels: str | None, name: str) -> None:
        """Fills the journal's row; with `kernels` also that file."""
        row = self._journal.row
        row |= self._trained
        self._journal.stage("first step")
        self._step()
        memory.settle()
        self._journal.stage("second step")
        self._memory(row)
        self._journal.stage("step time")
        with Clocks("step") as clocks:
            row["step_ms"] = timing.median_wall_ms(self._step)
        row |= clocks.row()
        if self._scenario.gpus > 1:
            row["outside_bytes"] = several_gpus.outside_bytes()
            row["ranks"] = several_gpus.gathered({k: row[k] for k in PER_RANK})
            return  # what follows runs parts of steps, which the other ranks would wait for
        row["forward_ms"] = self._forward_ms()
        self._optional("FLOPs", self._flops)
        self._optional("GPU time", self._gpu_times)
        if kernels:
            self._optional(
                "kernels", lambda: write_kernels(kernels, name, gpu_time.attributed(self._model, self._marked_step))
            )

    def _optional(self, name: str, work: Callable[[], None]) -> None:
        self._journal.attempt(name, work)
        self._clear()
        memory.settle()

    def _flops(self) -> None:
        row = self._journal.row
        row["train_flops"], row["flops_by_op"] = flops.counted(self._step)

    def _autocast(self) -> contextlib.AbstractContextManager:
        return torch.autocast("cuda", torch.bfloat16) if self._scenario.amp else contextlib.nullcontext()

    def _forward(self) -> torch.Tensor:
        with self._autocast():
            return self._model(**self._tensors, use_cache=False).loss

    def _clear(self) -> None:
        self._stepper.clear()

    def _step(self) -> None:
        loss = self._forward()
        self._stepper.backward(loss)
        del loss
        self._stepper.step()
        self._clear()

    def _memory(self, row: dict) -> None:
        loss, forward = memory.measured(self._forward)
        _, backward = memory.measured(lambda: self._stepper.backward(loss))
        del loss
        _, step = memory.measured(self._stepper.step)
        states = [t for t in self._stepper.states() if t.is_cuda]
        row |= {
            "alloc_start": forward.before,
            "alloc_after_forward": forward.after,
            "forward_peak": forward.peak,
            "alloc_after_backward": backward.after,
            "backward_peak": backward.peak,
            "alloc_after_step": step.after,
            "step_peak": step.peak,
            "optimizer_bytes": sum(t.numel() * t.element_size() for t in states),
        }
        self._clear()
        row["reserved_peak"] = memory.reserved_peak()

    def _forward_ms(self) -> float:
        """The forward of whole steps: a forward alone would find other blocks in the allocator."""
        times = []
        for _ in range(timing.LEAST_RUNS):
            torch.cuda.synchronize()
            losses: list[torch.Tensor] = []
            times.append(timing.wall_ms(lambda: losses.append(self._forward())))
            losses.pop().backward()
            self._stepper.step()
            self._clear()
        return sorted(times)[len(times) // 2]

    def _gpu_times(self) -> None:
        row = self._journal.row
        passes: list[dict[str, Activity]] = []
        for _ in range(gpu_time.PASSES):
            loss: list[torch.Tensor] = []
            parts = {"forward": gpu_time.profiled(lambda: loss.append(self._forward()))}
            parts["backward"] = gpu_time.profiled(lambda: loss[0].backward())
            loss.clear()
            parts["optimizer"] = gpu_time.profiled(self._finish)
            passes.append(parts)
        sums = [sum(parts.values(), Activity()) for parts in passes]
        whole = gpu_time.typical(sums)
        row |= gpu_time.row("step", whole, row.get("step_ms"))
        for phase in PHASES:
            part = passes[sums.index(whole)][phase]
            row[f"{phase}_gpu_ms"], row[f"{phase}_kernels"] = part.us / 1e3, part.kernels

    def _finish(self) -> None:
        self._stepper.step()
        self._clear()

    def _marked_step(self) -> None:
        """A step for `attributed`. The GPU catches up after each phase, so that launches end inside it."""
        with gpu_time.phase_mark("forward"):
            loss = self._forward()
            torch.cuda.synchronize()
        with gpu_time.phase_mark("backward"):
            loss.backward()
            torch.cuda.synchronize()
        del loss
        with gpu_time.phase_mark("optimizer"):
            self._finish()
            torch.cuda.synchronize()
