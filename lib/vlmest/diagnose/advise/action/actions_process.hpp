// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include <vlmest/diagnose/advise/action/action_entry.hpp>
#include <vlmest/library/rules.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/parallel/strategy.hpp>

/// Actions on kernels, types, what a module holds, the allocator, and where states live. Names of arguments:
/// transformers 5.17 (from_pretrained), torch 2.11 (PYTORCH_ALLOC_CONF, torch.distributed), accelerate, torchao
/// (optim), DeepSpeed (ds_config.json).
namespace vlmest::diagnose {

namespace action {

inline std::vector<Settings> sharded(const Subject& s, Sharding to) {
  const parallel::Strategy& p = s.now.placement;
  return changed(s, s.training() && p.gpus > 1 && p.sharding < to && p.offload == Offload::none,
                 [to](Settings& n) { n.placement.sharding = to; });
}
inline std::vector<Settings> bucket_views(const Subject& s) {
  const parallel::Strategy& p = s.now.placement;
  return changed(s, s.training() && has_buckets(p) && !p.bucket_views,
                 [](Settings& n) { n.placement.bucket_views = true; });
}
inline std::vector<Settings> offloaded(const Subject& s, Offload to) {
  return changed(s, s.now.placement.offload < to && (s.training() || to == Offload::parameters),
                 [to](Settings& n) { n.placement.offload = to; });
}
inline std::vector<Settings> split_sizes(const Subject& s) {
  std::vector<Settings> r;
  if (s.now.allocator.expandable_segments || s.now.allocator.max_split_size.value() != allocator::no_limit) return r;
  for (const std::int64_t mib : {512, 256, 128, 64})
    r.emplace_back(s.now).allocator.max_split_size = Bytes(mib * (std::int64_t{1} << 20));
  return r;
}
/// A call that failed in sdpa is not helped by it.
inline bool outside_sdpa(const Failure& f) {
  return std::none_of(f.frames.begin(), f.frames.end(), [](const Frame& x) {
    return x.code.find("scaled_dot_product_attention") != std::string::npos ||
           x.function.find("sdpa_attention") != std::string::npos;
  });
}
/// Blocks of a description whose code keeps what it has transformed.
std::vector<Settings> released_spectra(const Subject& s);
inline std::string loaded_with(const std::string& argument) { return "from_pretrained(MODEL, " + argument + ")"; }

}  // namespace action

inline constexpr std::array process_actions{
    ActionEntry{"attention-sdpa", "torch's fused attention, without a matrix of scores", Loses::nothing,
                [](const Subject& s) {
                  return changed(
                      s, s.plan().attention == AttentionKind::eager && !traits_of(s.plan().runtime).attends_by_flash,
                      [](Settings& n) { n.plan.attention = AttentionKind::sdpa; });
                },
                [](const Subject&, const Settings&) { return action::loaded_with("attn_implementation=\"sdpa\""); }}
        .in_general({.torch = "from_pretrained(MODEL, attn_implementation=\"sdpa\")", .acts = action::outside_sdpa}),
    // MLX has no switch for its fused attention, its models call it or do not.
    ActionEntry{"attention-flash", "FlashAttention-2, without scores and without a mask", Loses::nothing,
                [](const Subject& s) {
                  const Plan& p = s.plan();
                  const bool runs =
                      holds(ArchitectureRule::flash_attn_2, s.device.sm) && traits_of(p.runtime).flash_attention_2;
                  return changed(s, runs && p.attention != AttentionKind::flash,
                                 [](Settings& n) { n.plan.attention = AttentionKind::flash; });
                },
                [](const Subject&, const Settings&) {
                  return action::loaded_with("attn_implementation=\"flash_attention_2\"");
                }}
        .in_general({.torch = "from_pretrained(MODEL, attn_implementation=\"flash_attention_2\")",
                     .other = "llama.cpp -fa on; OLLAMA_FLASH_ATTENTION=1",
                     .in_force =
                         [](const Plan& p, const Gpu& gpu) {
                           return p.attention == AttentionKind::flash || !holds(ArchitectureRule::flash_attn_2, gpu);
                         },
                     .acts = [](const Failure& f) { return f.backend != MemoryBackend::mlx; }}),
    // The backward of fla's kernels is wrong on Hopper under the Triton of torch 2.11, and refused (op/delta_rule.hpp).
    ActionEntry{"kernel-packages", "kernels of packages for linear attention and short convolutions", Loses::nothing,
                [](const Subject& s) {
                  const KernelPackages can = s.now.vlm.family.traits().packages;
                  const bool more = traits_of(s.plan().runtime).writes_out_linear_attention &&
                                    without(can, s.plan().packages) != KernelPackages{};
                  return changed(s, more, [can](Settings& n) { n.plan.packages = can; });
                },
                [](const Subject& s, const Settings&) {
                  const KernelPackages missing = without(s.now.vlm.family.traits().packages, s.plan().packages);
                  return std::string("pip install") + (missing.fla ? " flash-linear-attention" : "") +
                         (missing.causal_conv1d ? " causal-conv1d" : "") +
                         (missing.fla && s.training() && s.device.sm == 90 ? "  # with Triton 3.7.1 or later" : "");
                }},
    ActionEntry{"weights-bf16", "weights and gradients in bf16", Loses::quality,
                [](const Subject& s) {
                  return changed(s, s.plan().amp || s.plan().dtype == DType::fp32, [](Settings& n) {
                    n.plan.amp = false;
                    n.plan.dtype = DType::bf16;
                  });
                },
                [](const Subject& s, const Settings&) {
                  return action::loaded_with("dtype=torch.bfloat16") + (s.plan().amp ? "  # and no autocast" : "");
                }}
        .in_general({.torch = "from_pretrained(MODEL, dtype=torch.bfloat16)",
                     .engine = "--dtype bfloat16",
                     .in_force = [](const Plan& p, const Gpu&) { return p.dtype != DType::fp32; }}),
    ActionEntry{"allocator-expandable", "one growing segment instead of many that do not join", Loses::nothing,
                [](const Subject& s) {
                  return changed(s, !s.now.allocator.expandable_segments,
                                 [](Settings& n) { n.allocator.expandable_segments = true; });
                },
                [](const Subject&, const Settings&) {
                  return std::string("export PYTORCH_ALLOC_CONF=expandable_segments:True");
                },
                true}
        .in_general({.torch = "export PYTORCH_ALLOC_CONF=expandable_segments:True"}),
    ActionEntry{"allocator-max-split", "large blocks are not cut into small ones", Loses::nothing, action::split_sizes,
                [](const Subject&, const Settings& after) {
                  return "export PYTORCH_ALLOC_CONF=max_split_size_mb:" +
                         std::to_string(after.allocator.max_split_size.value() >> 20);
                },
                true},
    ActionEntry{"ddp-bucket-views", "gradients as views of the buckets that GPUs exchange", Loses::nothing,
                action::bucket_views,
                [](const Subject&, const Settings&) {
                  return std::string(
                      "DistributedDataParallel(model, gradient_as_bucket_view=True)  # accelerate: "
                      "DistributedDataParallelKwargs(gradient_as_bucket_view=True)");
                }},
    ActionEntry{"zero-1", "optimizer states divided among the GPUs", Loses::nothing,
                [](const Subject& s) { return action::sharded(s, Sharding::optimizer); },
                [](const Subject&, const Settings&) {
                  return std::string(
                      "ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW)  # or DeepSpeed "
                      "{\"zero_optimization\": {\"stage\": 1}}");
                }}
        .in_general(
            {.inference = false, .torch = "DeepSpeed {\"zero_optimization\": {\"stage\": 1}}, with several GPUs"}),
    ActionEntry{"zero-2", "optimizer states and gradients divided among the GPUs", Loses::nothing,
                [](const Subject& s) { return action::sharded(s, Sharding::gradients); },
                [](const Subject&, const Settings&) {
                  return std::string(
                      "fully_shard(layer, reshard_after_forward=False) for every layer, then the model  # or DeepSpeed "
                      "{\"zero_optimization\": {\"stage\": 2}}");
                }}
        .in_general(
            {.inference = false, .torch = "DeepSpeed {\"zero_optimization\": {\"stage\": 2}}, with several GPUs"}),
    ActionEntry{"zero-3", "weights, gradients and optimizer states divided among the GPUs", Loses::nothing,
                [](const Subject& s) { return action::sharded(s, Sharding::parameters); },
                [](const Subject&, const Settings&) {
                  return std::string(
                      "fully_shard(layer) for every layer, then the model  # or DeepSpeed {\"zero_optimization\": "
                      "{\"stage\": 3}}");
                }}
        .in_general(
            {.inference = false, .torch = "DeepSpeed {\"zero_optimization\": {\"stage\": 3}}, with several GPUs"}),
    ActionEntry{
        "fft-release", "give back the steps of spectral blocks as soon as the next one is there", Loses::nothing,
        action::released_spectra,
        [](const Subject&, const Settings&) {
          return std::string(
              "in the block's forward: x = torch.fft.rfft2(x.float()); x = x * weight; x = torch.fft.irfft2(x)  "
              "# one name, or del each once it is used");
        }},
    ActionEntry{
        "offload-optimizer", "optimizer states in host memory, updated there", Loses::nothing,
        [](const Subject& s) { return action::offloaded(s, Offload::optimizer); },
        [](const Subject&, const Settings&) {
          return std::string(
              "torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, fused=True)  # or "
              "DeepSpeed {\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}}}");
        }}
        .in_general({.inference = false,
                     .torch = "DeepSpeed {\"zero_optimization\": {\"offload_optimizer\": {\"device\": \"cpu\"}}}"}),
    ActionEntry{
        "offload-parameters", "weights in host memory, copied as they are used", Loses::nothing,
        [](const Subject& s) { return action::offloaded(s, Offload::parameters); },
        [](const Subject& s, const Settings&) {
          return std::string(
              s.training()
                  ? "fully_shard(layer, offload_policy=CPUOffloadPolicy()) for every layer, then the model  # or "
                    "DeepSpeed {\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}, "
                    "\"offload_optimizer\": {\"device\": \"cpu\"}}}"
                  : "accelerate.cpu_offload(model, execution_device=\"cuda\")");
        }}
        .in_general({.torch = "from_pretrained(MODEL, device_map=\"auto\"); training: offload_param of stage 3",
                     .engine = "--cpu-offload-gb N",
                     .other = "fewer layers on the device (llama.cpp -ngl N)"}),
};

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/actions_process.hpp>
#endif
