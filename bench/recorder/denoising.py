# SPDX-License-Identifier: Apache-2.0
"""Measures a model that generates by denoising canvases (DiffusionGemma): generate() itself, watched.

A prefill is what generate() does before its first denoising step, a decode step one denoising step
(generation_diffusion_gemma.py, _denoising_step) over the canvas, the logits of the step before it among its inputs.
"""

import itertools
from collections.abc import Callable

import torch

from recorder import flops, gpu_time, memory, timing
from recorder.inference import MIDDLE, TIMED_STEPS, WARM_STEPS, cache_bytes
from recorder.inputs.tensors import Inputs
from recorder.journal import Journal

Step = Callable[[], object]
# What a run of generate() hands to its watcher: the number of the denoising step, the step, and the cache that it reads.
Watch = Callable[[int, Step, object], object]


class _Enough(Exception):
    """Leaves generate() where nothing more is measured."""


class Denoising:
    """One model with its inputs. generate() runs under no_grad by itself."""

    def __init__(self, model: torch.nn.Module, inputs: Inputs, journal: Journal) -> None:
        self._model = model
        self._inputs = inputs
        self._journal = journal

    def run(self) -> None:
        """Fills the journal's row."""
        self._memory()
        self._journal.stage("prefill time")
        self._journal.row["prefill_ms"] = timing.median_wall_ms(self._prefill)
        self._optional("FLOPs", self._flops)
        self._optional("GPU time", self._gpu_times)

    def _optional(self, name: str, work: Callable[[], None]) -> None:
        self._journal.attempt(name, work)
        memory.settle()

    def _watched(self, watch: Watch) -> None:
        """generate() over one canvas, whose denoising steps are `watch`'s to take."""
        step, numbers = self._model._denoising_step, itertools.count()

        def handed(**arguments: object) -> object:
            return watch(next(numbers), lambda: step(**arguments), arguments["past_key_values"])

        self._model._denoising_step = handed
        try:
            self._model.generate(**self._inputs.tensors, max_new_tokens=self._model.config.canvas_length)
        except _Enough:
            pass
        finally:
            del self._model._denoising_step

    def _prefill(self) -> None:
        def stop(_number: int, _step: Step, _cache: object) -> object:
            raise _Enough

        self._watched(stop)

    def _memory(self) -> None:
        row = self._journal.row
        self._journal.stage("prefill")
        self._prefill()
        memory.settle()
        row["alloc_before_prefill"] = memory.allocated()
        torch.cuda.reset_peak_memory_stats()
        walls = []

        def watch(number: int, step: Step, cache: object) -> object:
            if number == 0:
                row.update(
                    prefill_peak=torch.cuda.max_memory_allocated(),
                    prefill_requested_peak=torch.cuda.memory_stats()["requested_bytes.all.peak"],
                    prefill_reserved=memory.reserved_peak(),
                    alloc_after_prefill=memory.allocated(),
                    kv_bytes=cache_bytes(cache),
                )
                self._journal.stage("decode")
            if number == WARM_STEPS + TIMED_STEPS:
                raise _Enough
            memory.settle()
            before = memory.allocated()
            torch.cuda.reset_peak_memory_stats()
            result, ms = timing.wall_of(step)
            if number >= WARM_STEPS:
                walls.append(ms)
            if number == MIDDLE:
                peak = torch.cuda.max_memory_allocated()
                cached = self._inputs.sequence.length
                row.update(decode_kv_len=cached, decode_peak=peak, decode_peak_delta=peak - before)
            return result

        self._watched(watch)
        row["decode_ms"] = sorted(walls)[len(walls) // 2]

    def _flops(self) -> None:
        row = self._journal.row
        counts = {}

        def watch(number: int, step: Step, _cache: object) -> object:
            if number > 1:
                raise _Enough
            results = []
            counts[number], _ = flops.counted(lambda: results.append(step()))
            return results[0]

        with flops.without_gradients(self._model):
            row["prefill_flops"], row["flops_by_op"] = flops.counted(self._prefill)
            self._watched(watch)
        row["decode_flops"] = counts[1]

    def _gpu_times(self) -> None:
        row = self._journal.row
        prefill = [gpu_time.profiled(self._prefill) for _ in range(gpu_time.PASSES)]
        row |= gpu_time.row("prefill", gpu_time.typical(prefill), row.get("prefill_ms"))
        steps = []

        def watch(number: int, step: Step, _cache: object) -> object:
            if number == WARM_STEPS + gpu_time.PASSES:
                raise _Enough
            if number < WARM_STEPS:
                return step()
            results = []
            steps.append(gpu_time.profiled(lambda: results.append(step())))
            return results[0]

        self._watched(watch)
        row |= gpu_time.row("decode", gpu_time.typical(steps), row.get("decode_ms"))
