// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/tensor/dtype.hpp>
#include <vlmest/tensor/shape.hpp>

/// Shapes that a text prints: "torch.Size([30688, 151936])", "shape: (2, 16, 4096, 4096)", TensorFlow's "OOM when
/// allocating tensor with shape[246534,1280] and type float" (core/common_runtime/bfc_allocator and the kernels' own
/// OP_REQUIRES_OK). One of them, in one of a few types, may be the tensor that was asked for.
namespace vlmest::diagnose {

struct PrintedShape {
  Shape shape;                 ///< two dimensions or more
  std::optional<DType> dtype;  ///< where it stands right behind
  std::int64_t line = 0;       ///< from 1
};

/// Those of a text's first and last 256 KiB, at most 64. Shapes with a name in place of a number are left out.
std::vector<PrintedShape> find_printed_shapes(std::string_view text);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/printed_shape.hpp>
#endif
