// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <vlmest/diagnose/evidence/text/log_prefix.hpp>

/// What a label of a training log means: "train/grad_norm", "memory(GiB)", "max_mem_allocated".
namespace vlmest::diagnose::memory_log {

enum class Quantity : std::uint8_t {
  none,
  step,
  rank,
  loss,
  grad_norm,
  loss_scale,
  allocated,
  peak_allocated,
  reserved,
  peak_reserved,
  active,  ///< allocated, with what waits for another stream: taken where nothing says "allocated"
  peak_active,
  used,
  free,
  total
};

inline bool is(std::string_view label, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), label) != names.end();
}
inline bool ends_word(std::string_view label, std::string_view word) {
  return label == word ||
         (label.size() > word.size() && label.ends_with(word) && label[label.size() - word.size() - 1] == ' ');
}

/// Words that tell of bytes that somebody wants or wanted, which nobody may have got: "Tried to allocate 2.00 GiB",
/// "allocating 384 MiB", "requested memory: 30 GB". They are no memory in use.
bool is_wish(std::string_view label);

/// A quantity by its label (plain_label) and what stands behind its value.
Quantity quantity(std::string_view label, std::string_view after);

/// The same, with an answer for each label that came by lately: a log has few, in every line.
class KnownQuantities {
 public:
  Quantity operator()(std::string_view label, std::string_view after);

 private:
  struct Known {
    std::array<char, 48> label{};
    std::size_t size = 0;  ///< 0: none
    Quantity quantity = Quantity::none;
  };
  std::array<Known, 128> known_;
};

}  // namespace vlmest::diagnose::memory_log

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/text/impl/log_quantity.hpp>
#endif
