// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace vlmest {

/// One thing that a process does with a graph.
struct RunStep {
  enum class Action : std::uint8_t {
    warm_up,      ///< as many bytes as the parameters have in one block, which is freed: they then lie in it
    load,         ///< parameters and buffers, then the inputs
    run,          ///< phases; what they make waits for `drop` or `keep`
    pass,         ///< phases; of what they make their caller's variables go, the rest stays
    drop,         ///< what the phases made goes, so that they can run again
    keep,         ///< it stays: later phases go on from there
    mark,         ///< where `rewind` goes back to
    rewind,       ///< what was made since goes, but for optimizer states
    empty_cache,  ///< torch.cuda.empty_cache()
    set_up,       ///< what runs several ranks begins: weights are sent or divided, buckets made
    rebuild,      ///< a step begins that is not the first: buckets are made anew, where they are
  } action;
  enum class Phases : std::uint8_t {
    nothing,
    first,
    second,
    all,
    all_but_last,
    states,  ///< of the last one only what comes before anything runs
  } phases = Phases::nothing;
  bool measured = false;  ///< its memory is what is asked for
};

/// How a runtime goes through the phases of a graph: some steps once, then rounds, until one reserves nothing more.
struct RunScript {
  std::span<const RunStep> once{};
  std::span<const RunStep> round{};
  int least_rounds = 0;
  int most_rounds = 0;
};

}  // namespace vlmest
