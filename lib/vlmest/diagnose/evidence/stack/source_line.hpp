// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/evidence/stack/frame.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// What single lines of source tell: those of a stack, and those that somebody pasted without one.
namespace vlmest::diagnose {

namespace source_line {

/// Calls that make a tensor of the shape that they are given. Inductor writes the shapes of a compiled graph out
/// (torch/_inductor/codegen/wrapper.py).
inline constexpr auto makers = std::to_array<std::string_view>(
    {"empty_strided_cuda(", "empty_strided(", "torch.empty(", "torch.zeros(", "torch.ones(", "torch.full("});

}  // namespace source_line

/// The tensor that a line makes, where it gives the shape in numbers and the type: "buf7 = empty_strided_cuda((262208,
/// 2560), (2560, 1), torch.float32)".
std::optional<DescribedTensor> tensor_made_in(std::string_view code);

/// The source line that stands alone right before a message (`before`, the nearest line last), as a frame without a
/// file; nothing where the line is no source or names no kind of tensor.
std::optional<Frame> bare_source_line(const std::vector<std::string_view>& before);

/// Whether the innermost frame hands a mask to scaled_dot_product_attention.
bool attends_with_mask(const std::vector<Frame>& frames);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/stack/impl/source_line.hpp>
#endif
