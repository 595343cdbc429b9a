// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include <vlmest/graph/run_script.hpp>
#include <vlmest/nn/stack/traits.hpp>

/// A process that runs torch eagerly, for stacks that do.
namespace vlmest::stacks {

namespace steps {
using Do = RunStep::Action;
using Of = RunStep::Phases;

inline constexpr std::array inference{RunStep{Do::load}, RunStep{Do::run, Of::first},
                                      RunStep{Do::drop}, RunStep{Do::run, Of::first, true},
                                      RunStep{Do::keep}, RunStep{Do::run, Of::second, true}};
// from_pretrained() makes no tensor that it drops again, so the cache is empty when it is emptied first.
inline constexpr std::array training{RunStep{Do::load},
                                     RunStep{Do::empty_cache},
                                     RunStep{Do::set_up},
                                     RunStep{Do::mark},
                                     RunStep{Do::pass, Of::all_but_last},
                                     RunStep{Do::pass, Of::states},
                                     RunStep{Do::rewind},
                                     RunStep{Do::empty_cache},
                                     RunStep{Do::rebuild},
                                     RunStep{Do::pass, Of::all, true}};
inline constexpr std::array loop_start{RunStep{Do::load}, RunStep{Do::empty_cache}, RunStep{Do::set_up},
                                       RunStep{Do::mark}};
inline constexpr std::array loop_step{RunStep{Do::pass, Of::all}, RunStep{Do::rewind}, RunStep{Do::rebuild}};

/// The same steps after the warm-up of the allocator.
template <std::size_t N>
constexpr std::array<RunStep, N + 1> warmed_up(const std::array<RunStep, N>& steps) {
  std::array<RunStep, N + 1> r{RunStep{Do::warm_up}};
  for (std::size_t i = 0; i < N; ++i) r[i + 1] = steps[i];
  return r;
}
inline constexpr auto rank_inference = warmed_up(inference);
inline constexpr auto rank_training = warmed_up(training);
inline constexpr auto rank_loop_start = warmed_up(loop_start);
}  // namespace steps

/// The first prefill warms the allocator and the libraries up; the second is what runs from then on, and decode
/// follows.
inline constexpr RunScript torch_inference{.once = steps::inference};

/// The first step makes the optimizer states, which are all that remains of it; the second is what runs from then on.
/// Between them the cache is emptied, as scripts that measure a step do (torch.cuda.empty_cache(), then
/// reset_peak_memory_stats()): what the second reserves is its own, without what the first one left in pieces.
inline constexpr RunScript torch_training{.once = steps::training};

/// A loop that never empties the cache. Its first step runs without optimizer states, which then lie in the segments
/// that it leaves, so that what the next steps need finds less room there. The third or fourth reserves nothing more.
inline constexpr RunScript torch_training_loop{
    .once = steps::loop_start, .round = steps::loop_step, .least_rounds = 3, .most_rounds = 6};

inline constexpr RunScripts torch_scripts{
    .inference = torch_inference, .training = torch_training, .training_loop = torch_training_loop};

/// One of several ranks: each loads its part by from_pretrained(), which warms the allocator up. A model on one GPU is
/// made there and has no such block.
inline constexpr RunScripts torch_rank_scripts{
    .inference = RunScript{.once = steps::rank_inference},
    .training = RunScript{.once = steps::rank_training},
    .training_loop =
        RunScript{.once = steps::rank_loop_start, .round = steps::loop_step, .least_rounds = 3, .most_rounds = 6}};

}  // namespace vlmest::stacks
