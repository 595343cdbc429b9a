// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>

#include "device_tensor.hpp"

/// Tensors that start some elements behind an aligned address, as slices of larger ones do.
namespace vlmest::kernels {

/// An input with `offset` other elements before it.
class OffsetInput {
 public:
  OffsetInput(DType t, std::vector<double> values, std::int64_t offset)
      : input_(t, padded(std::move(values), offset)), bytes_(size_of(Elements(offset), t).value()), offset_(offset) {}

  const void* data() const { return static_cast<const std::byte*>(input_.data()) + bytes_; }
  std::span<const double> values() const { return input_.values().subspan(static_cast<std::size_t>(offset_)); }

 private:
  static std::vector<double> padded(std::vector<double> values, std::int64_t offset) {
    values.insert(values.begin(), static_cast<std::size_t>(offset), 1e4);
    return values;
  }
  Input input_;
  std::int64_t bytes_;
  std::int64_t offset_;
};

/// An output with `offset` poisoned elements before it, which must stay so.
class OffsetOutput {
 public:
  OffsetOutput(DType t, std::int64_t n, std::int64_t offset)
      : output_(t, n + offset), bytes_(size_of(Elements(offset), t).value()), offset_(offset) {}

  void* data() const { return static_cast<std::byte*>(output_.data()) + bytes_; }
  std::vector<double> values() const {
    std::vector<double> r = output_.values();
    const auto own = r.begin() + offset_;
    EXPECT_TRUE(std::all_of(r.begin(), own, [](double v) { return std::isnan(v); }))
        << "the kernel wrote before its output";
    return {own, r.end()};
  }

 private:
  Output output_;
  std::int64_t bytes_;
  std::int64_t offset_;
};

}  // namespace vlmest::kernels
