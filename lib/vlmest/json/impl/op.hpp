// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/op.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace single_op {

VLMEST_INLINE SingleOp linear(const Reader& r) {
  const Matmul o{.batch = size(r, "batch", 1),
                 .m = size(r, "m"),
                 .n = size(r, "n"),
                 .k = size(r, "k"),
                 .dtype = dtype(r, "bf16"),
                 .bias = r.boolean("bias", false)};
  const Cost c = cost(o);
  return {o, c.read, c.written, {}};
}

VLMEST_INLINE SingleOp sdpa(const Reader& r) {
  Attention o{.batch = size(r, "batch", 1),
              .heads = size(r, "heads"),
              .q_len = size(r, "q_len"),
              .head_dim = size(r, "head_dim"),
              .causal = r.boolean("causal", false),
              .dtype = dtype(r, "bf16")};
  o.kv_heads = size(r, "kv_heads", o.heads);
  o.kv_len = size(r, "kv_len", o.q_len);
  o.v_dim = size(r, "v_dim", o.head_dim);
  if (o.heads % o.kv_heads != 0)
    r.fail("kv_heads", "does not divide the query heads", "heads must be a multiple of kv_heads");
  return {o, {}, {}, {}};  // sizes and backend follow the device: on_device()
}

VLMEST_INLINE SingleOp fft(const Reader& r, Fft::Kind kind, int rank, bool inverse) {
  Fft o{.kind = kind,
        .batch = checked_mul(size(r, "batch", 1), size(r, "channels", 1)),
        .rank = rank,
        .inverse = inverse,
        .dtype = dtype(r, "fp32")};
  if (rank == 2)
    o.n = {size(r, "height"), size(r, "width"), 1};
  else
    o.n = {size(r, "width"), 1, 1};
  check(o);
  return {o, input_bytes(o), output_bytes(o), {}};
}

VLMEST_INLINE SingleOp norm(const Reader& r, Norm::Kind kind) {
  const auto [n, width] = rows(r);
  const Norm o{.kind = kind,
               .rows = n,
               .width = width,
               .dtype = dtype(r, "bf16"),
               .parameters = kind == Norm::Kind::layer_norm ? 2 : 1,
               .fused = true};
  const Cost c = cost(o);
  return {o, c.read, size_of(Elements(checked_mul(n, width)), o.dtype), {}};
}

VLMEST_INLINE SingleOp rope(const Reader& r) {
  RotaryEmbedding o{.batch = size(r, "batch", 1),
                    .rows = size(r, "rows"),
                    .heads = size(r, "heads"),
                    .head_dim = size(r, "head_dim"),
                    .dtype = dtype(r, "bf16")};
  o.kv_heads = size(r, "kv_heads", o.heads);
  o.rotary_dim = size(r, "rotary_dim", o.head_dim);
  o.angles = dtype(r, name(o.dtype), "angles");
  if (o.rotary_dim > o.head_dim)
    r.fail("rotary_dim", "is more than the head has", "head_dim is the upper limit and the default");
  const MemoryOp m = memory_op(o);
  return {m, m.read, m.written, {}};
}

VLMEST_INLINE SingleOp embedding(const Reader& r) {
  const Gather o{.rows = size(r, "rows"),
                 .width = size(r, "width", 4096),
                 .table_rows = size(r, "vocab"),
                 .dtype = dtype(r, "bf16")};
  MemoryOp m = memory_op(o);
  m.access = Access::fused;
  const Bytes table = size_of(Elements(checked_mul(o.table_rows, o.width)), o.dtype);
  return {m, table + size_of(Elements(o.rows), o.index), m.written, {}};
}

VLMEST_INLINE void on_device(SingleOp& s, int compute_capability) {
  auto* const o = std::get_if<Attention>(&s.op);
  if (!o) return;
  o->backend = choose_backend({.op = *o, .gpu = {.sm = compute_capability}, .enable_gqa = o->heads != o->kv_heads});
  const Cost c = cost(*o);
  s.inputs = c.read;
  s.outputs = c.written;
}

}  // namespace single_op

VLMEST_INLINE SingleOp read_op(const nlohmann::json& document, const std::string& where, int compute_capability) {
  const Reader r(document, where);
  const std::string op = r.string("op", "");
  std::string names;
  for (const auto& e : single_op::known) {
    names += (names.empty() ? "" : ", ") + std::string(e.name);
    if (e.name != op) continue;
    SingleOp s = e.read(r);
    single_op::on_device(s, compute_capability);
    const auto rounded = [](Bytes b) {
      return b == Bytes{} ? b : allocator::round_size(allocator::AllocatorConfig{}, b);
    };
    s.peak = rounded(s.inputs) + rounded(s.outputs) + rounded(cost(s.op).workspace);
    return s;
  }
  r.fail("op", op.empty() ? "missing" : "unknown op '" + op + "'", "known: " + names);
}

}  // namespace vlmest::json
