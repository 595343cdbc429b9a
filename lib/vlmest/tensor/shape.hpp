// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <vlmest/unit/units.hpp>

namespace vlmest {

/// Sizes (or strides) of up to six dimensions, outermost first.
class Shape {
 public:
  static constexpr int max_rank = 6;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> d) {
    for (auto n : d) push_back(n);
  }

  constexpr int rank() const { return rank_; }
  /// Negative indices count from the last dimension, as in torch.
  constexpr std::int64_t operator[](int i) const { return d_[at(i)]; }
  constexpr std::int64_t& operator[](int i) { return d_[at(i)]; }
  constexpr const std::int64_t* begin() const { return d_.data(); }
  constexpr const std::int64_t* end() const { return d_.data() + rank_; }

  constexpr void push_back(std::int64_t n) {
    if (rank_ == max_rank) throw Error("shape", "more than six dimensions");
    d_[static_cast<std::size_t>(rank_++)] = n;
  }
  constexpr void insert(int i, std::int64_t n) {
    push_back(0);
    for (int j = rank_ - 1; j > i; --j) d_[static_cast<std::size_t>(j)] = d_[static_cast<std::size_t>(j - 1)];
    d_[static_cast<std::size_t>(i)] = n;
  }
  constexpr void erase(int i) {
    const auto k = static_cast<int>(at(i));
    for (int j = k; j + 1 < rank_; ++j) d_[static_cast<std::size_t>(j)] = d_[static_cast<std::size_t>(j + 1)];
    d_[static_cast<std::size_t>(--rank_)] = 0;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.d_[static_cast<std::size_t>(i)] != b.d_[static_cast<std::size_t>(i)]) return false;
    return true;
  }

 private:
  constexpr std::size_t at(int i) const {
    const int k = i < 0 ? i + rank_ : i;
    if (k < 0 || k >= rank_) throw Error("shape", "dimension index out of range");
    return static_cast<std::size_t>(k);
  }

  std::array<std::int64_t, max_rank> d_{};
  std::int8_t rank_ = 0;
};

/// Product of the sizes; 1 for a scalar.
constexpr Elements numel(const Shape& s) {
  std::int64_t n = 1;
  for (auto d : s) n = checked_mul(n, d);
  return Elements(n);
}

/// Row-major strides, in elements (torch.Tensor.contiguous).
constexpr Shape contiguous_strides(const Shape& s) {
  Shape t = s;
  std::int64_t n = 1;
  for (int i = s.rank() - 1; i >= 0; --i) {
    t[i] = n;
    n = checked_mul(n, s[i] > 1 ? s[i] : 1);
  }
  return t;
}

/// "2x576x1024"; "1" for a scalar.
inline std::string to_string(const Shape& s) {
  std::string r;
  for (auto d : s) {
    if (!r.empty()) r += 'x';
    r += std::to_string(d);
  }
  return r.empty() ? "1" : r;
}

}  // namespace vlmest
