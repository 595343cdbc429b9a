// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// A kernel that adds each element to itself, eight times.
struct Toy {
  std::int64_t elements = 1;
  DType dtype = DType::bf16;
};

constexpr Cost cost(const Toy& o) {
  const Bytes n = size_of(Elements(o.elements), o.dtype);
  return {.read = n, .written = n, .engine = Engine::cuda_core, .dtype = o.dtype};
}

}  // namespace vlmest
