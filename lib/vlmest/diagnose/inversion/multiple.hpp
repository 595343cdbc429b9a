// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// An engine that measures what it needs runs its tower over as many of the largest pictures as its settings admit:
/// vLLM max_num_seqs of them, 256 where nothing is said (v0: worker/enc_dec_model_runner.py, profile_run), or
/// limit_mm_per_prompt in a prompt (multimodal/profiling.py). What it asks for then is a whole number of times one
/// picture's, or, with tensor parallelism, a rank's share of it.
namespace vlmest::diagnose {

struct Multiple {
  DescribedTensor tensor;  ///< of one picture
  Cause cause = Cause::vision_tiles;
  std::int64_t pictures = 1;
  std::int64_t tiles = 1;  ///< of one picture
  int ranks = 1;           ///< that share it
  double plausibility = 0;
};

/// "256 pictures of 4 tiles: ..."
std::string multiple_words(const Multiple& m);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/multiple.hpp>
#endif
