// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/op/cost.hpp>
#include <vlmest/unit/words.hpp>

namespace vlmest {

/// A kernel of the gated delta rule (Gated DeltaNet, arXiv:2412.06464, section 3) over chunks of tokens, as the package
/// fla has them: flash-linear-attention 0.5.2, fla/ops/gated_delta_rule and fla/ops/common. Each head of each sequence
/// has its own queries, keys, values and state. On Hopper fla refuses chunk_bwd_kernel_dqkwg under Triton 3.4 to 3.7.0,
/// whose results are wrong there (common/chunk_o.py); what it allocates is the same under any.
struct DeltaRule {
  enum class Kind : std::uint8_t {
    solve,            ///< chunk_gated_delta_rule_fwd_kkt_solve_kernel: the inverse of a chunk's triangular system
    values,           ///< recompute_w_u_fwd_kernel: keys and values times it
    states,           ///< chunk_gated_delta_rule_fwd_kernel_h: the state before each chunk, one after the other
    outputs,          ///< chunk_fwd_kernel_o
    local_gradients,  ///< chunk_bwd_kernel_dv_local: the values' gradients within a chunk
    state_gradients,  ///< chunk_gated_delta_rule_bwd_kernel_dhu: the states' gradients, one after the other
    gradients,        ///< chunk_bwd_kernel_dqkwg
    wy_gradients,     ///< prepare_wy_repr_bwd_kernel
    step,             ///< fused_recurrent_gated_delta_rule_fwd_kernel: token by token
  };
  Kind kind = Kind::outputs;
  std::int64_t batch = 1;
  std::int64_t tokens = 1;  ///< of each sequence
  std::int64_t heads = 1;
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  DType dtype = DType::bf16;  ///< of queries, keys, values and all but the decay's sums and the last state
};

template <>
inline constexpr std::array<std::string_view, 9> words_of<DeltaRule::Kind>{
    "solve", "values", "states", "outputs", "local_gradients", "state_gradients", "gradients", "wy_gradients", "step"};

/// The tokens that these kernels take at a time.
inline constexpr std::int64_t delta_rule_chunk = 64;

/// Chunks of one head, all of the tokens' count but the last.
constexpr std::int64_t chunks(const DeltaRule& o) { return (o.tokens + delta_rule_chunk - 1) / delta_rule_chunk; }

/// What a kernel moves.
struct DeltaRuleOperands {
  std::int64_t token = 0;         ///< elements of o.dtype, for each token of a head
  std::int64_t chunk = 0;         ///< the same for each chunk of a head
  std::int64_t token_floats = 0;  ///< fp32, for each token of a head
  std::int64_t head_floats = 0;   ///< fp32, for each head of a sequence
};
/// What a kernel does: multiply-adds of its products for each chunk of a head (of a step for each token), and the
/// operands that it reads and writes, each once.
struct DeltaRuleWork {
  std::int64_t macs = 0;
  DeltaRuleOperands read, written;
};

/// The variables are those of fla: S the states, A the chunks' inverses, x' a transpose, do the gradient of o.
constexpr DeltaRuleWork work_of(const DeltaRule& o) {
  constexpr std::int64_t n = delta_rule_chunk;
  const std::int64_t k = o.key_dim, v = o.value_dim, state = checked_mul(k, v), within = n * n, through = n * state;
  using enum DeltaRule::Kind;
  switch (o.kind) {
    // The lower half of k k', then the inverse in fp32. k, beta, g -> A.
    case solve:
      return {.macs = within * k / 2 + within * n / 6,
              .read = {.token = k + 1, .token_floats = 1},
              .written = {.token = n}};
    // A (beta k), A (beta v). k, v, beta, A, g -> w, u.
    case values:
      return {
          .macs = within * (k + v), .read = {.token = k + v + 1 + n, .token_floats = 1}, .written = {.token = k + v}};
    // w S, k' v_new. k, w, u, g -> v_new, S, the last S.
    case states:
      return {.macs = 2 * through,
              .read = {.token = 2 * k + v, .token_floats = 1},
              .written = {.token = v, .chunk = state, .head_floats = state}};
    // q S, q k', (q k') v_new. q, k, v_new, S, g -> o.
    case outputs:
      return {.macs = through + within * (k + v),
              .read = {.token = 2 * k + v, .chunk = state, .token_floats = 1},
              .written = {.token = v}};
    // k q', (k q') do. q, k, do, g -> dv.
    case local_gradients:
      return {.macs = within * (k + v), .read = {.token = 2 * k + v, .token_floats = 1}, .written = {.token = v}};
    // k dS, q' do, w' dv. q, k, w, do, dv, g -> dv, dS.
    case state_gradients:
      return {.macs = 3 * through,
              .read = {.token = 3 * k + 2 * v, .token_floats = 1},
              .written = {.token = v, .chunk = state}};
    // do S', v_new dS', dv S', do v_new', q k', (…) k, (…)' q. q, k, w, v_new, do, dv, S, dS, g -> dq, dk, dw, dg.
    case gradients:
      return {.macs = 3 * through + within * (v + 3 * k),
              .read = {.token = 3 * k + 3 * v, .chunk = 2 * state, .token_floats = 1},
              .written = {.token = 3 * k, .token_floats = 1}};
    // dw k', du v', A' dw, A' du, k k', (…) k, and A on both sides. k, v, beta, A, dw, du, g -> dk, dv, dbeta, dg.
    case wy_gradients:
      return {.macs = within * (4 * k + 2 * v) + 2 * within * n,
              .read = {.token = 2 * (k + v) + 1 + n, .token_floats = 1},
              .written = {.token = k + v + 1, .token_floats = 1}};
    // S' k, the update, S' q. q, k, v, beta, g, S -> o, S.
    case step:
      return {.macs = 3 * state,
              .read = {.token = 2 * k + v + 1, .token_floats = 1, .head_floats = state},
              .written = {.token = v, .head_floats = state}};
  }
  return {};
}

/// Bytes of operands over all heads and sequences.
constexpr Bytes bytes_of(const DeltaRuleOperands& x, const DeltaRule& o) {
  const std::int64_t heads = checked_mul(o.batch, o.heads), tokens = checked_mul(heads, o.tokens);
  return size_of(
             Elements(checked_add(checked_mul(tokens, x.token), checked_mul(checked_mul(heads, chunks(o)), x.chunk))),
             o.dtype) +
         size_of(Elements(checked_add(checked_mul(tokens, x.token_floats), checked_mul(heads, x.head_floats))),
                 DType::fp32);
}

/// No FLOPs: torch's counter sees no kernel of a package, with which FLOPs are compared; what is performed takes time.
constexpr Cost cost(const DeltaRule& o) {
  const DeltaRuleWork w = work_of(o);
  const bool by_token = o.kind == DeltaRule::Kind::step;
  Cost r;
  r.uncounted =
      flops(Macs(checked_mul(w.macs, checked_mul(checked_mul(o.batch, o.heads), by_token ? o.tokens : chunks(o)))));
  r.read = bytes_of(w.read, o);
  r.written = bytes_of(w.written, o);
  r.engine = by_token ? Engine::cuda_core : Engine::tensor_core;
  r.dtype = o.dtype;
  return r;
}

}  // namespace vlmest
