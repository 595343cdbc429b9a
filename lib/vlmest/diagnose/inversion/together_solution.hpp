// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// Batch, length and pictures of a run, where two of them or all are not told. One figure cannot tell several numbers:
/// what is found are settings that explain it, the likeliest first, with how many there are.
namespace vlmest::diagnose {

/// What is known of a run's inputs; the others are looked for.
struct ToldInputs {
  bool batch = false, length = false, images = false, image_size = false;
  int unknown() const { return !batch + !length + !(images && image_size); }
};

/// Settings with which a tensor has the size. What does not touch that tensor may be anything, and is empty.
struct TogetherSolution {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> seq;  ///< tokens of a sequence
  std::optional<std::int64_t> images;
  std::int64_t height = 0, width = 0;  ///< of each picture, in pixels
  Cause cause = Cause::unknown;
  DescribedTensor tensor;  ///< as an estimate with these settings has it
  double share = 0;        ///< of the plausibility of all that were found
};

struct Together {
  std::vector<TogetherSolution> likeliest;  ///< each a build that has a tensor of the size
  std::size_t found = 0;                    ///< of so many that agree with the size by arithmetic
};

/// "batch 4 with 8,192 tokens a sequence: logits of lm_head, 4x8192x152064 in fp32 = 18.56 GiB"
std::string together_words(const TogetherSolution& s);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/together_solution.hpp>
#endif
