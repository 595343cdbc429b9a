// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/reference/rows.hpp>

#include <vlmest/op/cross_entropy.hpp>

namespace vlmest::kernels::reference {

struct CrossEntropyResult {
  std::vector<double> losses;  ///< [rows], 0 where the target is ignored
  double mean = 0;             ///< over the rows that count; NaN where none does
};

/// log(sum exp(x)) - x[target] by row (torch.nn.functional.cross_entropy with class numbers). Throws Error for a target
/// outside the vocabulary.
inline CrossEntropyResult cross_entropy(const CrossEntropy& op, std::span<const double> logits,
                                        std::span<const std::int64_t> targets, std::int64_t ignore_index = -100) {
  const auto x = rows_of(logits, op.rows, op.vocab, "logits");
  expect_size(targets, op.rows, "targets");
  CrossEntropyResult r;
  double sum = 0, counted = 0;
  for (std::int64_t i = 0; i < op.rows; ++i) {
    const std::int64_t target = targets[static_cast<std::size_t>(i)];
    r.losses.push_back(0);
    if (target == ignore_index) continue;
    if (target < 0 || target >= op.vocab) throw Error("reference", "target " + std::to_string(target) + " is outside");
    const double largest = x.row(i).maxCoeff();
    r.losses.back() = std::log((x.row(i).array() - largest).exp().sum()) + largest - x(i, target);
    sum += r.losses.back();
    ++counted;
  }
  r.mean = sum / counted;
  return r;
}

}  // namespace vlmest::kernels::reference
