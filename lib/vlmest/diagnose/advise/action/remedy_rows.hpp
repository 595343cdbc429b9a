// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/advise/action/action_entry.hpp>

namespace vlmest::diagnose {

/// Actions that no setting of the model makes: what they save is read off the evidence (remedies.hpp).
inline constexpr std::array remedy_rows{
    ActionEntry{.name = "let-go",
                .title = "keep numbers and detached tensors from step to step, not graphs",
                .line = "losses.append(loss.item()); outputs.append(x.detach().cpu()); del output before the next step"}
        .in_general({.torch = "losses.append(loss.item()); no tensors kept from step to step"}),
    // An engine that failed with a request has no share to spare.
    ActionEntry{.name = "engine-share", .title = "a larger share of the device for the engine"}.in_general(
        {.training = false,
         .engine =
             "--gpu-memory-utilization 0.95, where no other process needs the device; SGLang: --mem-fraction-static",
         .acts = [](const Failure& f) { return !f.requested; }}),
    ActionEntry{.name = "engine-headroom",
                .title = "a smaller share of the device for the engine, which leaves room for requests and a trainer"}
        .in_general({.engine = "--gpu-memory-utilization 0.8; SGLang: --mem-fraction-static 0.7; beside a trainer 0.3 "
                               "to 0.5 (TRL: vllm_gpu_memory_utilization)",
                     .acts = [](const Failure& f) { return !f.engine_pool; }}),
    ActionEntry{
        .name = "free-the-gpu",
        .title = "end the other processes on this GPU, or take another one",
        .line = "nvidia-smi --query-compute-apps=pid,used_memory --format=csv; CUDA_VISIBLE_DEVICES=1 python ..."}
        .in_general({.torch = "nvidia-smi; end the other processes, or CUDA_VISIBLE_DEVICES=N",
                     .engine = "nvidia-smi; end the other processes, or CUDA_VISIBLE_DEVICES=N",
                     .other = "end the other programs on the device"}),
    ActionEntry{.name = "decode-sampled",
                .title = "decode the frames that are sampled, not the whole video",
                .line = "decord.VideoReader(path).get_batch(indices), or torchcodec's; qwen_vl_utils: "
                        "FORCE_QWENVL_VIDEO_READER=decord or torchcodec; shorter clips, fewer at once"},
    ActionEntry{.name = "empty-cache",
                .title = "give cached segments back before sizes change, as between evaluation and training",
                .line = "torch.cuda.empty_cache()  # between phases, not in every step"},
    ActionEntry{.name = "allocator-gc",
                .title = "give old cached blocks back before memory is full",
                .line = "export PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8"},
    ActionEntry{.name = "launch-less",
                .title = "replay CUDA graphs, or compile, so that the host launches once",
                .line = "model = torch.compile(model, mode=\"reduce-overhead\")  # decode: generate(..., "
                        "cache_implementation=\"static\")"},
    ActionEntry{.name = "load-ahead",
                .title = "load and preprocess inputs in workers, ahead of the step",
                .line = "DataLoader(..., num_workers=8, pin_memory=True, prefetch_factor=4, persistent_workers=True)"},
    ActionEntry{.name = "wait-less",
                .title = "do not read values of the GPU in the step",
                .line = "collect tensors and read them once: torch.stack(losses).tolist(); no .item(), .cpu() or print "
                        "in the loop"},
    ActionEntry{.name = "allocate-once",
                .title = "keep the allocator's cache: no empty_cache() in the loop, segments that grow",
                .line = "export PYTORCH_ALLOC_CONF=expandable_segments:True; remove torch.cuda.empty_cache()"},
    ActionEntry{.name = "host-work",
                .title = "move the host's work out of the step, into workers or before the loop",
                .line = "see the operator named above; py-spy record -- python train.py shows the Python behind it"},
    ActionEntry{.name = "pin-copies",
                .title = "copy from page-locked memory while the GPU computes",
                .line = "DataLoader(..., pin_memory=True); x = x.to(\"cuda\", non_blocking=True)"},
    ActionEntry{.name = "overlap-communication",
                .title = "let communication run beside the backward",
                .line = "DDP: gradient_as_bucket_view=True, bucket_cap_mb=100; FSDP: forward_prefetch=True; or "
                        "accumulate gradients"},
    ActionEntry{.name = "pad-products",
                .title = "pad the dimensions of the products named above to multiples of 8 (64 is best)",
                .line = "torch.nn.functional.pad on weight and input, or a config with padded widths"},
};

}  // namespace vlmest::diagnose
