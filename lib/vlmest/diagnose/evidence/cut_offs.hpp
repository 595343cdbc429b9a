// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <vlmest/unit/units.hpp>

/// From where on the figures of a failure count as proof: parts of a whole, bytes, and numbers. Each with what it rests
/// on; what says "chosen" was not measured.
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
  constexpr bool reached(Bytes some) const { return some >= value; }
};
struct Number {
  double value;
  std::string_view where;
  constexpr bool reached(double some) const { return some >= value; }
};

/// Of the device that other processes hold, to be the cause.
inline constexpr Part others{0.1, "@others"};
/// The same where what is free by the message would have served the request: it was less when the request failed.
inline constexpr Part others_that_moved{0.25, "@others_that_moved"};
/// Of the device that is neither free nor reserved, where the message tells nothing of it: a context is less.
inline constexpr Part elsewhere{0.1, "@elsewhere"};
/// Of what is reserved that lies in pieces, to be the cause where the run is not estimated; and where the stack says
/// what was being made, or a table is all there is.
inline constexpr Part pieces{0.2, "@pieces"};
inline constexpr Part pieces_beside_another_reason{0.5, "@pieces_beside_another_reason"};
/// Of what is allocated that grew over the recorded steps.
inline constexpr Part growth{1.0 / 32, "@growth"};
/// Beyond what the settings explain, of that, and at least.
inline constexpr Part kept{0.2, "@kept"};
inline constexpr Size kept_at_least{Bytes(std::int64_t{1} << 30), "@kept_at_least"};
/// A temporary is the last drop below that part of the limit, where its kind has at most that part of what is alive;
/// weights are blamed where they take that part of the limit.
inline constexpr Part last_drop{0.05, "@last_drop"}, last_drop_of_its_kind{0.2, "@last_drop_of_its_kind"},
    weights_alone{0.75, "@weights_alone"};
/// A kind of tensor that is less often right is not named by its size alone.
inline constexpr Number named{0.5, "@named"};

/// How far a request may be from a rank's part of all parameters: two groups of them, and padding.
inline constexpr Number partition{0.02, "@partition"};
inline constexpr Size partition_from{Bytes(std::int64_t{1} << 30), "@partition_from"};

/// What fused attention asks for at most: 2^31 bytes are the result of 300 thousand tokens of 3,584.
inline constexpr Size fused_at_most{Bytes(std::int64_t{1} << 31), "@fused_at_most"};

/// What somebody tells of a failure (judge_story.hpp).
inline constexpr Size scores_of_a_story{Bytes(std::int64_t{1} << 30), "@scores_of_a_story"},
    scores_in_inference{Bytes(std::int64_t{4} << 30), "@scores_in_inference"},
    scores_in_training{Bytes(std::int64_t{16} << 30), "@scores_in_training"},
    small_beside_an_engine{Bytes(std::int64_t{1} << 30), "@small_beside_an_engine"},
    single_weight{Bytes(std::int64_t{1} << 29), "@single_weight"},
    quadratic{Bytes(std::int64_t{100} << 30), "@quadratic"},
    device_not_told{Bytes(std::int64_t{80} << 30), "@device_not_told"};
/// Of all GPUs that weights, gradients and states of all parameters take, to be the cause of a training of theirs.
inline constexpr Number states_fill{0.5, "@states_fill"};

/// Of an engine's weights that must be left for its KV cache: a hundredth of Qwen2.5-VL's holds 4,400 tokens (72B) or
/// 2,700 (7B), of LLaVA-1.5-7B's, which shares no keys, 270.
inline constexpr Part left_for_cache{0.01, "@left_for_cache"};

/// From where on the size of an allocation in an inference is read as that of one kind of tensor alone.
inline constexpr Size by_size_alone{Bytes(std::int64_t{1} << 30), "@by_size_alone"};

/// A reading as scores is worth a sentence from that plausibility and that size on.
inline constexpr Number scores_as_well{0.4, "@scores_as_well"};
inline constexpr Size scores_as_well_from{Bytes(std::int64_t{1} << 29), "@scores_as_well_from"};
/// Scores are thought of at all from that plausibility on; a figure in bytes, and a size on a device that is not known,
/// tell of them from those sizes on.
inline constexpr Number scores_at_all{0.1, "@scores_at_all"};
inline constexpr Size scores_by_digits{Bytes(std::int64_t{1} << 28), "@scores_by_digits"},
    scores_by_size{Bytes(std::int64_t{32} << 30), "@scores_by_size"};

/// Of the time of a step that is spent on waiting for data, to be slow by it; and to be slow by anything else.
inline constexpr Number waiting{0.4, "@waiting"}, not_waiting{0.05, "@not_waiting"};
/// Seconds that preparing a data set takes until somebody asks about it.
inline constexpr Number slow_map{1800, "@slow_map"};
/// Of the host's memory that is available when a process is killed, to doubt that it ran out.
inline constexpr Number roomy{0.5, "@roomy"};

}  // namespace vlmest::diagnose::cut_off
