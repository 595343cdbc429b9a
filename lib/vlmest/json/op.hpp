// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vlmest/allocator/config.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/op/cross_entropy.hpp>
#include <vlmest/op/elementwise.hpp>
#include <vlmest/op/gather.hpp>
#include <vlmest/op/op.hpp>
#include <vlmest/op/rope.hpp>
#include <vlmest/op/sdpa_backend.hpp>

namespace vlmest::json {

/// One operation on its own: the op, and the tensors that it reads and makes.
struct SingleOp {
  Op op;
  Bytes inputs{};
  Bytes outputs{};
  /// Allocated while it runs, each block rounded as the allocator rounds it: inputs, outputs, workspace.
  Bytes peak{};
};

namespace single_op {

inline DType dtype(const Reader& r, std::string_view absent, const char* key = "dtype") {
  try {
    return parse_dtype(r.string(key, absent));
  } catch (const Error& e) {
    throw Error(r.path() + "." + key, e.what_happened, e.hint);
  }
}
inline std::int64_t size(const Reader& r, const char* key) { return r.integer_required(key, 1, std::int64_t{1} << 40); }
inline std::int64_t size(const Reader& r, const char* key, std::int64_t absent) {
  return r.integer(key, absent, 1, std::int64_t{1} << 40);
}

inline SingleOp linear(const Reader& r) {
  const Matmul o{.batch = size(r, "batch", 1),
                 .m = size(r, "m"),
                 .n = size(r, "n"),
                 .k = size(r, "k"),
                 .dtype = dtype(r, "bf16"),
                 .bias = r.boolean("bias", false)};
  const Cost c = cost(o);
  return {o, c.read, c.written, {}};
}

inline SingleOp sdpa(const Reader& r) {
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

inline SingleOp fft(const Reader& r, Fft::Kind kind, int rank, bool inverse) {
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

inline SingleOp elementwise(const Reader& r, Elementwise::Kind kind) {
  const MemoryOp m = memory_op(Elementwise{.kind = kind, .elements = size(r, "elements"), .dtype = dtype(r, "bf16")});
  return {m, m.read, m.written, {}};
}

struct Rows {
  std::int64_t rows, width;
};
/// Rows of `width` (4096 where not given): from `rows`, or from `elements`.
inline Rows rows(const Reader& r) {
  const std::int64_t width = size(r, "width", 4096);
  if (r.given("rows")) return {size(r, "rows"), width};
  const std::int64_t n = size(r, "elements");
  if (n % width != 0) r.fail("elements", "is no multiple of the width " + std::to_string(width), "give rows and width");
  return {n / width, width};
}

inline SingleOp softmax(const Reader& r) {
  const auto [n, width] = rows(r);
  const DType t = dtype(r, "bf16");
  const Softmax o{.rows = n, .width = width, .in = t, .out = dtype(r, name(t), "out"), .fused = true};
  const Cost c = cost(o);
  return {o, c.read, c.written, {}};
}
inline SingleOp norm(const Reader& r, Norm::Kind kind) {
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

inline SingleOp rope(const Reader& r) {
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
/// The table's rows decide nothing but how large it is.
inline SingleOp embedding(const Reader& r) {
  const Gather o{.rows = size(r, "rows"),
                 .width = size(r, "width", 4096),
                 .table_rows = size(r, "vocab"),
                 .dtype = dtype(r, "bf16")};
  MemoryOp m = memory_op(o);
  m.access = Access::fused;
  const Bytes table = size_of(Elements(checked_mul(o.table_rows, o.width)), o.dtype);
  return {m, table + size_of(Elements(o.rows), o.index), m.written, {}};
}
inline SingleOp cross_entropy(const Reader& r) {
  const CrossEntropy o{.rows = size(r, "rows"), .vocab = size(r, "vocab"), .dtype = dtype(r, "fp32")};
  const MemoryOp m = memory_op(o);
  const Bytes logits = size_of(Elements(checked_mul(o.rows, o.vocab)), o.dtype);
  return {m, logits + size_of(Elements(o.rows), DType::int64), m.written, {}};
}

struct Entry {
  std::string_view name;
  SingleOp (*read)(const Reader&);
};
inline constexpr std::array known{
    Entry{"linear", linear},
    Entry{"sdpa", sdpa},
    Entry{"fft2", [](const Reader& r) { return fft(r, Fft::Kind::c2c, 2, false); }},
    Entry{"ifft2", [](const Reader& r) { return fft(r, Fft::Kind::c2c, 2, true); }},
    Entry{"rfft2", [](const Reader& r) { return fft(r, Fft::Kind::r2c, 2, false); }},
    Entry{"irfft2", [](const Reader& r) { return fft(r, Fft::Kind::c2r, 2, true); }},
    Entry{"fft", [](const Reader& r) { return fft(r, Fft::Kind::c2c, 1, false); }},
    Entry{"ifft", [](const Reader& r) { return fft(r, Fft::Kind::c2c, 1, true); }},
    Entry{"rfft", [](const Reader& r) { return fft(r, Fft::Kind::r2c, 1, false); }},
    Entry{"irfft", [](const Reader& r) { return fft(r, Fft::Kind::c2r, 1, true); }},
    Entry{"add", [](const Reader& r) { return elementwise(r, Elementwise::Kind::add); }},
    Entry{"mul", [](const Reader& r) { return elementwise(r, Elementwise::Kind::mul); }},
    Entry{"silu", [](const Reader& r) { return elementwise(r, Elementwise::Kind::silu); }},
    Entry{"gelu", [](const Reader& r) { return elementwise(r, Elementwise::Kind::gelu); }},
    Entry{"silu_mul", [](const Reader& r) { return elementwise(r, Elementwise::Kind::silu_mul); }},
    Entry{"copy", [](const Reader& r) { return elementwise(r, Elementwise::Kind::copy); }},
    Entry{"read", [](const Reader& r) { return elementwise(r, Elementwise::Kind::read); }},
    Entry{"write", [](const Reader& r) { return elementwise(r, Elementwise::Kind::write); }},
    Entry{"softmax", softmax},
    Entry{"layernorm", [](const Reader& r) { return norm(r, Norm::Kind::layer_norm); }},
    Entry{"rmsnorm", [](const Reader& r) { return norm(r, Norm::Kind::rms_norm); }},
    Entry{"rope", rope},
    Entry{"embedding", embedding},
    Entry{"cross_entropy", cross_entropy},
};

}  // namespace single_op

namespace single_op {

/// Attention runs on the backend that torch chooses on a device.
inline void on_device(SingleOp& s, int compute_capability) {
  auto* const o = std::get_if<Attention>(&s.op);
  if (!o) return;
  o->backend = choose_backend({.op = *o, .sm = compute_capability, .enable_gqa = o->heads != o->kv_heads});
  const Cost c = cost(*o);
  s.inputs = c.read;
  s.outputs = c.written;
}

}  // namespace single_op

/// One entry of an op list as it runs on a device of that compute capability (10 * major + minor). Throws Error for an
/// unknown op, naming the known ones.
inline SingleOp read_op(const nlohmann::json& document, const std::string& where, int compute_capability = 90) {
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
