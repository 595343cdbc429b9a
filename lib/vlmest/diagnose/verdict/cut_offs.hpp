// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <vlmest/unit/units.hpp>

/// From where on the figures of a failure count as proof: parts of a whole, and bytes. Each with what it rests on; what
/// says "chosen" was not measured.
namespace vlmest::diagnose::cut_off {

struct Part {
  double value;
  std::string_view where;
  /// Whether `some` is that part of `all` or more; and whether it is more.
  constexpr bool reached(Bytes some, Bytes all) const {
    return static_cast<double>(some.value()) >= value * static_cast<double>(all.value());
  }
  constexpr bool exceeded(Bytes some, Bytes all) const {
    return static_cast<double>(some.value()) > value * static_cast<double>(all.value());
  }
};
struct Size {
  Bytes value;
  std::string_view where;
};

/// Of the device that other processes hold, to be the cause.
inline constexpr Part others{0.1, "chosen"};
/// The same where what is free by the message would have served the request: it was less when the request failed.
inline constexpr Part others_that_moved{0.25, "chosen: a context and what a driver keeps are less"};
/// Of what is reserved that lies in pieces, to be the cause where the run is not estimated; and where the stack says
/// what was being made, or a table is all there is.
inline constexpr Part pieces{0.2,
                             "tests/data/oom_runs, oom_held_out: 15 of 33 messages have pieces, 3 of them a fifth"};
inline constexpr Part pieces_beside_another_reason{0.5, "chosen: more than rounding leaves"};
/// Of what is allocated that grew over the recorded steps.
inline constexpr Part growth{1.0 / 32, "chosen: a recording may hold the last steps alone"};
/// Beyond what the settings explain, of that, and at least.
inline constexpr Part kept{0.2, "chosen"};
inline constexpr Size kept_at_least{Bytes(std::int64_t{1} << 30), "chosen: libraries take less"};
/// A temporary is the last drop below that part of the limit, where its kind has at most that part of what is alive;
/// weights are blamed where they take that part of the limit.
inline constexpr Part last_drop{0.05, "chosen"}, last_drop_of_its_kind{0.2, "chosen"}, weights_alone{0.75, "chosen"};
/// A kind of tensor that is less often right is not named by its size alone.
inline constexpr double named{0.5};

/// How far a request may be from a rank's part of all parameters: two groups of them, and padding.
inline constexpr double partition{0.02};

/// What fused attention asks for at most: 2^31 bytes are the result of 300 thousand tokens of 3,584.
inline constexpr Size fused_at_most{Bytes(std::int64_t{1} << 31), "torch's fused kernels: a result as large as q"};

/// What somebody tells of a failure (judge_story.hpp). Chosen as round numbers with the open texts of tests/data/corpus
/// in sight, which is why no guess of theirs is called likelier than not.
inline constexpr Size scores_of_a_story{Bytes(std::int64_t{1} << 30), "chosen: fused attention asks for less"},
    scores_in_inference{Bytes(std::int64_t{4} << 30), "chosen: more than the weights of a layer"},
    scores_in_training{Bytes(std::int64_t{16} << 30), "chosen: more than logits of usual lengths in fp32"},
    small_beside_an_engine{Bytes(std::int64_t{1} << 30), "chosen: less than an engine's own reserve"},
    single_weight{Bytes(std::int64_t{1} << 29), "chosen: of models of up to 70 thousand million parameters"},
    quadratic{Bytes(std::int64_t{100} << 30), "more than a GPU of 80 GiB has"},
    device_not_told{Bytes(std::int64_t{80} << 30), "the largest that is common in the open texts"};
/// Of all GPUs that weights, gradients and states of all parameters take, to be the cause of a training of theirs.
inline constexpr Part states_fill{0.5, "chosen: activations and what is not divided take the rest"};

/// Of an engine's weights that must be left for its KV cache: a hundredth of Qwen2.5-VL's holds 4,400 tokens (72B) or
/// 2,700 (7B), of LLaVA-1.5-7B's, which shares no keys, 270.
inline constexpr Part left_for_cache{0.01, "chosen: fewer tokens than the shortest prompts with pictures have"};

/// From where on the size of an allocation in an inference is read as that of one kind of tensor alone.
inline constexpr Size by_size_alone{Bytes(std::int64_t{1} << 30), "chosen: fused attention asks for less"};

/// A reading as scores is worth a sentence from that plausibility and that size on.
inline constexpr double scores_as_well{0.4};
inline constexpr Size scores_as_well_from{Bytes(std::int64_t{1} << 29), "chosen: small tensors have many explanations"};

}  // namespace vlmest::diagnose::cut_off
