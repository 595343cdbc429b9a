// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vlmest/allocator/config.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/library/attention.hpp>
#include <vlmest/op/cross_entropy.hpp>
#include <vlmest/op/elementwise.hpp>
#include <vlmest/op/gather.hpp>
#include <vlmest/op/op.hpp>
#include <vlmest/op/rope.hpp>

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

SingleOp linear(const Reader& r);

SingleOp sdpa(const Reader& r);

SingleOp fft(const Reader& r, Fft::Kind kind, int rank, bool inverse);

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
SingleOp norm(const Reader& r, Norm::Kind kind);

SingleOp rope(const Reader& r);
/// The table's rows decide nothing but how large it is.
SingleOp embedding(const Reader& r);
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
void on_device(SingleOp& s, int compute_capability);

}  // namespace single_op

/// One entry of an op list as it runs on a device of that compute capability (10 * major + minor). Throws Error for an
/// unknown op, naming the known ones.
SingleOp read_op(const nlohmann::json& document, const std::string& where, int compute_capability = 90);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/op.hpp>
#endif
