# SPDX-License-Identifier: Apache-2.0
"""Measures a prefill and a decode step.

Order matters: memory first, while the process has done nothing but load the model and warm up once; then wall times;
then what changes the process (FLOP counting, profiling, graph capture).
"""

from collections.abc import Callable

import torch
from transformers import DynamicCache

from recorder import flops, gpu_time, memory, timing
from recorder.clocks import Clocks
from recorder.inputs.tensors import Inputs, next_token
from recorder.journal import Journal, write_kernels
from recorder.scenario import Scenario

WARM_STEPS, TIMED_STEPS, SAMPLED_STEPS = 2, 11, 33
# Their forward leaves it to generate() to make the cache.
MAKE_NO_CACHE = ("granite4_vision",)
MIDDLE = WARM_STEPS + TIMED_STEPS // 2  # the step whose cache length stands in the row: the timed steps' median


class Inference:
    """One model with its inputs. Everything runs under no_grad."""

    def __init__(self, model: torch.nn.Module, inputs: Inputs, scenario: Scenario, journal: Journal) -> None:
        self._model = model
        self._inputs = inputs
        self._scenario = scenario
        self._journal = journal
        # BLIP-2's own forward wants an image; its language model decodes.
        self._decoder = model.language_model if model.config.model_type == "blip-2" else model

    def run(self, kernels: str | None, name: str) -> None:
        """Fills the journal's row; with `kernels` also that file."""
        row = self._journal.row
        with torch.no_grad():
            self._memory(row)
            self._times(row)
            self._optional("full logits", self._full_logits)
            self._optional("FLOPs", self._flops)
            self._optional("GPU time", self._gpu_times)
            if kernels:
                self._optional("kernels", lambda: self._kernels(kernels, name))
            self._optional("decode graph", self._graph)

    def _optional(self, name: str, work: Callable[[], None]) -> None:
        self._journal.attempt(name, work)
        memory.settle()

    def _prefill(self, every_position: bool | None = None) -> object:
        if every_position is None:
            every_position = self._scenario.logits == "all"
        config = self._model.config
        own = {"past_key_values": DynamicCache(config=config)} if config.model_type in MAKE_NO_CACHE else {}
        return self._model(**self._inputs.tensors, **own, use_cache=True, logits_to_keep=0 if every_position else 1)

    def _arguments(self, k: int) -> dict[str, torch.Tensor]:
        """The inputs of decode step `k`, made before anything is measured: making them is not the model's work."""
        return next_token(self._inputs, self._inputs.sequence.length + k)

    def _step(self, kept: dict, arguments: dict[str, torch.Tensor]) -> object:
        return self._decoder(**arguments, **kept, use_cache=True, logits_to_keep=1)

    def _cache(self, steps: int) -> dict:
        """What stays of a prefill and some steps."""
        cache = kept_of(self._prefill())
        for k in range(steps):
            self._step(cache, self._arguments(k))
        return cache

    def _memory(self, row: dict) -> None:
        self._journal.stage("prefill")
        self._prefill()
        memory.settle()
        output, m = memory.measured(self._prefill)
        row |= {
            "alloc_before_prefill": m.before,
            "prefill_peak": m.peak,
            "prefill_requested_peak": m.requested_peak,
            "prefill_reserved": m.reserved,
            "alloc_after_prefill": m.after,
        }
        cache = kept_of(output)
        del output
        row["kv_bytes"] = cache_bytes(cache["past_key_values"])
        self._journal.stage("decode")
        walls = []
        for k in range(WARM_STEPS + TIMED_STEPS):
            arguments = self._arguments(k)
            memory.settle()
            before = memory.allocated()
            torch.cuda.reset_peak_memory_stats()
            ms = timing.wall_ms(lambda: self._step(cache, arguments))
            if k >= WARM_STEPS:
                walls.append(ms)
            if k == MIDDLE:
                peak = torch.cuda.max_memory_allocated()
                cached = self._inputs.sequence.length + k
                row |= {"decode_kv_len": cached, "decode_peak": peak, "decode_peak_delta": peak - before}
        row["decode_ms"] = sorted(walls)[len(walls) // 2]

    def _times(self, row: dict) -> None:
        self._journal.stage("prefill time")
        with Clocks("prefill") as clocks:
            row["prefill_ms"] = timing.median_wall_ms(self._prefill)
        row |= clocks.row()
        self._journal.stage("decode time")
        cache = self._cache(0)
        with Clocks("decode") as clocks:  # enough steps for the samples; decode_ms is of the steps above
            for k in range(SAMPLED_STEPS):
                self._step(cache, self._arguments(k))
            torch.cuda.synchronize()
        row |= clocks.row()

    def _full_logits(self) -> None:
        row = self._journal.row
        row["full_logits"] = self._scenario.logits == "last"
        if not row["full_logits"]:
            return
        memory.settle()
        _, m = memory.measured(lambda: self._prefill(every_position=True))
        row["prefill_full_logits_peak"] = m.peak

    def _flops(self) -> None:
        row = self._journal.row
        with flops.without_gradients(self._model):
            row["prefill_flops"], row["flops_by_op"] = flops.counted(self._prefill)
            cache, arguments = self._cache(MIDDLE), self._arguments(MIDDLE)
            row["decode_flops"], _ = flops.counted(lambda: self._step(cache, arguments))

    def _gpu_times(self) -> None:
        row = self._journal.row
        prefill = [gpu_time.profiled(self._prefill) for _ in range(gpu_time.PASSES)]
        row |= gpu_time.row("prefill", gpu_time.typical(prefill), row.get("prefill_ms"))
        first = MIDDLE - gpu_time.PASSES // 2
        cache = self._cache(first)
        decode = []
        for k in range(first, first + gpu_time.PASSES):
            arguments = self._arguments(k)
            decode.append(gpu_time.profiled(lambda: self._step(cache, arguments)))
        row |= gpu_time.row("decode", gpu_time.typical(decode), row.get("decode_ms"))

    def _kernels(self, path: str, name: str) -> None:
        cache, arguments = self._cache(MIDDLE), self._arguments(MIDDLE)

        def work() -> None:
            with gpu_time.phase_mark("prefill"):
                output = self._prefill()
                torch.cuda.synchronize()
            del output
            with gpu_time.phase_mark("decode"):
                self._step(cache, arguments)
                torch.cuda.synchronize()

        write_kernels(path, name, gpu_time.attributed(self._model, work))

    def _graph(self) -> None:
        """A step captured once and replayed: its inputs, the cache it reads among them, stay the same. The mask is left
        out, because the check whether it pads anything waits for the GPU, which a capture forbids."""
        arguments = self._arguments(MIDDLE)
        del arguments["attention_mask"]
        self._step(self._cache(MIDDLE), arguments)  # libraries choose their kernels for these sizes outside the capture
        cache = self._cache(MIDDLE)
        read = [cached(layer) for layer in layers_of(cache["past_key_values"])]  # replays read them after the step replaced them
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            output = self._step(cache, arguments)
        self._journal.row["decode_graph_ms"] = timing.median_event_ms(graph.replay)
        del output, read


def kept_of(output: object) -> dict:
    """What generate() hands from a model's result to the next step: the cache, and an encoder's states. BLIP-2 keeps
    them with its language model's."""
    if getattr(output, "past_key_values", None) is None:
        output = output.language_model_outputs
    kept = {"past_key_values": output.past_key_values}
    states = getattr(output, "encoder_last_hidden_state", None)
    if states is not None:
        kept["encoder_outputs"] = (states,)
    return kept


def layers_of(cache: object) -> list:
    """The layers of a cache; an encoder-decoder model's has two parts."""
    parts = ("self_attention_cache", "cross_attention_cache")
    if hasattr(cache, parts[0]):
        return [layer for part in parts for layer in getattr(cache, part).layers]
    return cache.layers


def cached(layer: object) -> list[torch.Tensor]:
    """What a layer of a cache holds: keys and values, an indexer's keys, or the states of linear attention."""
    tensors = [getattr(layer, name, None) for name in ("keys", "values", "idx_keys")]
    for name in ("conv_states", "recurrent_states"):
        tensors += getattr(layer, name, {}).values()
    return [t for t in tensors if t is not None]


def cache_bytes(cache: object) -> int:
    """Bytes of all keys and values, and of states."""
    return sum(t.numel() * t.element_size() for layer in layers_of(cache) for t in cached(layer))
