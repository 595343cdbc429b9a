# SPDX-License-Identifier: Apache-2.0
"""Every key of a row and what it means. A row with another key is refused, so that this list stays the format."""

from collections.abc import Mapping

SCENARIO = {
    "model": "name of the config",
    "config": "path of the config as given",
    "config_sha256": "first 16 digits of the SHA-256 of its content, keys sorted",
    "mode": "infer or train",
    "batch": "sequences",
    "text": "text tokens of each sequence",
    "images": "images of each sequence",
    "hw": "[height, width] of each image in pixels, before the model's own resize",
    "image": "what the image processor was set to, as \"image\" of a description; absent: the family's own",
    "dtype": "of weights and pixels",
    "attn": "attention implementation",
    "logits": "positions whose logits the prefill computes: last or all",
    "full_logits": "whether prefill_full_logits_peak was asked for",
    "ckpt": "gradient_checkpointing_enable()",
    "lora": "rank of adapters on q, k, v, o of the language model",
    "freeze_vision": "the vision tower's parameters need no gradient",
    "amp": "float32 weights under bfloat16 autocast",
    "target": "labels of each sequence, of models that have an encoder and a decoder; absent: 128",
    "gpus": "processes, one a GPU, each with sequences of its own",
    "cp": "parts of each sequence, one for each of as many of the GPUs; absent: 1",
    "shard": "what they divide: none (DistributedDataParallel), zero1, zero2, zero3 (DeepSpeed), fsdp2",
    "bucket_view": "DistributedDataParallel(gradient_as_bucket_view=True)",
    "reshard": "fully_shard(reshard_after_forward=...)",
    "param_dtype": "type in which fully_shard gathers the weights (MixedPrecisionPolicy); absent: dtype",
    "reduce_dtype": "type in which it adds the gradients up; absent: that of the gradients",
    "optim": "adamw (foreach), adamw_fused, sgd, sgdm (momentum 0.9), adafactor (transformers' own)",
}

MODEL = {
    "params": "parameters, tied ones once, without adapters",
    "params_by": "the same by top module",
    "packages": "installed packages whose kernels run parts of it, as fla,causal-conv1d; absent: none",
    "alloc_base": "bytes allocated before the model",
    "alloc_weights": "bytes that the model added",
    "buffer_bytes": "bytes of its buffers",
    "image_tokens": "tokens of each sequence that stand for images",
    "seq": "tokens of each sequence",
    "input_bytes": "bytes of the input tensors on the GPU",
}

INFERENCE = {
    "alloc_before_prefill": "bytes allocated before the measured prefill, after one warm-up",
    "prefill_peak": "max_memory_allocated() of a prefill under no_grad with use_cache=True, bytes",
    "prefill_requested_peak": "the same before the allocator's rounding",
    "prefill_reserved": "max_memory_reserved() of the process after it, bytes",
    "alloc_after_prefill": "bytes allocated while its result (cache and logits) is alive",
    "kv_bytes": "bytes of keys and values in the cache",
    "prefill_full_logits_peak": "prefill_peak where every position's logits are computed",
    "prefill_ms": "wall time, median",
    "prefill_gpu_ms": "sum of the durations of kernels, copies and fills on the GPU, median of several profiles",
    "prefill_memop_ms": "the part of it that copies and fills take",
    "prefill_kernels": "kernel launches",
    "prefill_memops": "copies and fills",
    "prefill_idle": "share of the wall time in which the GPU did nothing: 1 - gpu_ms / ms, at least 0",
    "prefill_sm_clock_mhz": "median SM clock while the wall times were taken",
    "prefill_power_w": "median power draw",
    "prefill_flops": "FlopCounterMode, attention dense",
    "flops_by_op": "prefill_flops, or train_flops, by operator",
    "decode_kv_len": "tokens before the decoded one: the prompt's and those decoded",
    "decode_peak": "max_memory_allocated() of a decode step, bytes",
    "decode_peak_delta": "the same less what was allocated before",
    "decode_ms": "wall time of a step, median",
    "decode_gpu_ms": "as prefill_gpu_ms",
    "decode_memop_ms": "as prefill_memop_ms",
    "decode_kernels": "kernel launches",
    "decode_memops": "copies and fills",
    "decode_idle": "as prefill_idle",
    "decode_graph_ms": "time of a step replayed as a CUDA graph, median; absent where it cannot be captured",
    "decode_sm_clock_mhz": "as prefill_sm_clock_mhz",
    "decode_power_w": "as prefill_power_w",
    "decode_flops": "FlopCounterMode, attention dense",
}

TRAINING = {
    "trainable": "parameters with a gradient, adapters included",
    "trainable_bytes": "their bytes",
    "alloc_start": "bytes allocated before the measured step, the second one",
    "alloc_after_forward": "bytes allocated after the forward",
    "forward_peak": "max_memory_allocated() of the forward, bytes",
    "alloc_after_backward": "bytes allocated after the backward",
    "backward_peak": "max_memory_allocated() of the backward, bytes",
    "alloc_after_step": "bytes allocated after the optimizer's step, gradients alive",
    "step_peak": "max_memory_allocated() of the optimizer's step, bytes",
    "optimizer_bytes": "bytes of the optimizer's states on the GPU",
    "reserved_peak": "max_memory_reserved() of the process, bytes",
    "step_ms": "wall time of forward, backward and optimizer step, median",
    "forward_ms": "wall time of the forward, median",
    "step_gpu_ms": "as prefill_gpu_ms, for the whole step",
    "step_memop_ms": "as prefill_memop_ms",
    "step_kernels": "kernel launches of the whole step",
    "step_memops": "copies and fills of the whole step",
    "step_idle": "as prefill_idle",
    "forward_gpu_ms": "the forward's part of step_gpu_ms",
    "backward_gpu_ms": "the backward's part",
    "optimizer_gpu_ms": "the optimizer's part",
    "forward_kernels": "the forward's part of step_kernels",
    "backward_kernels": "the backward's part",
    "optimizer_kernels": "the optimizer's part",
    "step_sm_clock_mhz": "as prefill_sm_clock_mhz",
    "step_power_w": "as prefill_power_w",
    "outside_bytes": "bytes of the GPU's memory in no allocator of the framework: the CUDA context and NCCL",
    "ranks": "several GPUs: the figures of memory of each of them; those of the row are the first one's",
    "train_flops": "FlopCounterMode over the whole step, attention dense, recomputation included",
}

OUTCOME = {
    "oom": "the error text, where the run did not fit",
    "error": "the error text, where it failed in another way",
    "note": "what could not be measured besides, and why",
    "versions": "torch, transformers, peft, cuda, cudnn, driver",
    "device": "the GPU's name",
    "device_memory": "its total memory, bytes",
    "compute_capability": "for example 9.0",
    "multiprocessors": "its streaming multiprocessors",
    "seconds": "what the scenario took, process start included",
}

FIELDS = SCENARIO | MODEL | INFERENCE | TRAINING | OUTCOME


def check(row: Mapping) -> None:
    """Raises KeyError for a key that is not in FIELDS: a slip in this package, not of the user."""
    unknown = sorted(set(row) - set(FIELDS))
    if unknown:
        raise KeyError("not in fields.py: " + ", ".join(unknown))
