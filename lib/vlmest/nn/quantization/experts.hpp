// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include <vlmest/graph/eager/routing.hpp>
#include <vlmest/nn/quantized.hpp>

/// The weights of a mixture's experts, one tensor for all of them. transformers replaces the module of fused experts
/// for fp8 (integrations/finegrained_fp8.py, FP8Experts) and mxfp4 (integrations/mxfp4.py, Mxfp4GptOssExperts) alone;
/// bitsandbytes quantises nn.Linear only, so they stay wide there. Other methods' checkpoints store each expert's
/// matrices like a linear's; serving engines keep them so, stacked.
namespace vlmest {

struct ExpertWeights {
  StoredWeight gate_up, down;
};

/// gate_up_proj[experts, 2 inner, hidden] and down_proj[experts, hidden, inner] of the current scope.
/// compressed-tensors' are unpacked while they are loaded (integrations/compressed_tensors.py, DecompressExperts).
inline ExpertWeights make_expert_weights(Context& c, const StoredSize& gate_up, const StoredSize& down) {
  const WeightStorage* how = checkpoint_storage(c, StoredModule::experts);
  const bool wide = !how || (c.stack().transformers_quantizers && c.quantization->unpacked_by_transformers);
  if (wide) return {{parameter(c, "gate_up_proj", gate_up.wide()), {}}, {parameter(c, "down_proj", down.wide()), {}}};
  ExpertWeights r;
  if (const auto* fp8 = std::get_if<Fp8Weight>(how)) {
    static constexpr StoredNames up{
        .weight = "gate_up_proj", .scales = "gate_up_proj_scale_inv", .input = "gate_up_proj_activation_scale"},
        out{.weight = "down_proj", .scales = "down_proj_scale_inv", .input = "down_proj_activation_scale"};
    r.gate_up = declare(c, *fp8, gate_up, &up, 2);
    r.down = declare(c, *fp8, down, &out);
  } else {
    const bool mx = std::holds_alternative<Fp4Weight>(*how) && !std::get<Fp4Weight>(*how).nv;
    static constexpr StoredNames up{"gate_up_proj",       "gate_up_proj_scales",       "gate_up_proj_zeros",
                                    "gate_up_proj_g_idx", "gate_up_proj_global_scale", "gate_up_proj_input_scale"},
        out{"down_proj",       "down_proj_scales",       "down_proj_zeros",
            "down_proj_g_idx", "down_proj_global_scale", "down_proj_input_scale"},
        up_blocks{"gate_up_proj_blocks", "gate_up_proj_scales"}, out_blocks{"down_proj_blocks", "down_proj_scales"};
    r.gate_up = declare_as(c, *how, gate_up, mx ? &up_blocks : &up);
    r.down = declare_as(c, *how, down, mx ? &out_blocks : &out);
  }
  for (auto [w, n] : {std::pair{&r.gate_up, &gate_up}, {&r.down, &down}}) {
    w->quantized.how = how;
    w->quantized.in = n->in;
    w->quantized.out = n->out;
  }
  return r;
}

/// Rows sorted by expert, each times its expert's matrix; one kernel that reads stored matrices as they are
/// (finegrained_fp8's grouped_matmul, triton_kernels' matmul_ogs, Marlin for mixtures). `ranks` that divide the experts
/// have rows of each other's, which are left out.
inline Value expert_matmul(Context& c, Value x, TensorId weight, const QuantizedWeight& q, const Value& offsets,
                           std::int64_t active, bool inputs_first = false, int ranks = 1) {
  using namespace eager;
  Value w(c.b, weight);
  if (!q.how) {
    if (!inputs_first) w = transpose(std::move(w), 1, 2);
    return grouped_mm(std::move(x), std::move(w), offsets, active, ranks);
  }
  const std::int64_t experts = w.size(0);
  const GroupedMatmul op{.rows = x.size(0),
                         .n = q.out,
                         .k = q.in,
                         .groups = experts,
                         .active = active,
                         .dtype = x.dtype(),
                         .stored = Bytes(stored_bytes(w, q).value() / experts)};
  const TensorId r = c.b.result(x.dtype(), {op.rows, op.n}, "grouped_mm");
  Value at = offsets;
  return emit1(c.b, "grouped_matmul", op, r, {}, x, w, at);
}

}  // namespace vlmest
