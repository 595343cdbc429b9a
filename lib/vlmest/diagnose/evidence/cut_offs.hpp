// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <vlmest/unit/units.hpp>

/// From where on the figures of a failure count as proof: parts of a whole, bytes, and numbers. All were set by hand;
/// each says how many cases ask it and between which values none of their answers changes. The cases are the 153 open
/// texts of tests/data/corpus, with and without their flags, and the 26 recorded runs of tests/data/oom_runs, by
/// message and by snapshot; they are counted by a build whose `reached` and `exceeded` write down what they are asked.
/// Ranges are those in which no figure lies that was asked: an answer may stay the same beyond them.
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
inline constexpr Part others{0.1, "16 cases, 13 reach it; from 0.089 to 0.108 nothing changes"};
/// The same where what is free by the message would have served the request: it was less when the request failed.
inline constexpr Part others_that_moved{0.25, "2 cases reach it; up to 0.279 nothing changes"};
/// Of the device that is neither free nor reserved, where the message tells nothing of it: a context is less.
inline constexpr Part elsewhere{0.1, "no case asks it: a context and its libraries take less"};
/// Of what is reserved that lies in pieces, to be the cause where the run is not estimated; and where the stack says
/// what was being made, or a table is all there is.
inline constexpr Part pieces{0.2, "11 cases, 1 reaches it; from 0.143 to 0.446 nothing changes"};
inline constexpr Part pieces_beside_another_reason{0.5, "7 cases, none reaches it; from 0.134 on nothing changes"};
/// Of what is allocated that grew over the recorded steps.
inline constexpr Part growth{1.0 / 32, "2 cases reach it; up to 0.055 nothing changes"};
/// Beyond what the settings explain, of that, and at least.
inline constexpr Part kept{0.2, "no case gets as far"};
inline constexpr Size kept_at_least{Bytes(std::int64_t{1} << 30), "no case asks it: libraries take less"};
/// A temporary is the last drop below that part of the limit, where its kind has at most that part of what is alive;
/// weights are blamed where they take that part of the limit.
inline constexpr Part last_drop{0.05, "7 cases, 1 is beyond; from 0.039 to 0.085 nothing changes"},
    last_drop_of_its_kind{0.2, "6 cases, 4 are beyond; from 0.141 to 0.345 nothing changes"},
    weights_alone{0.75, "2 cases, none reaches it; from 0.563 on nothing changes"};
/// A kind of tensor that is less often right is not named by its size alone.
inline constexpr Number named{0.5, "by its meaning: what is less often right than wrong"};

/// How far a request may be from a rank's part of all parameters: two groups of them, and padding.
inline constexpr Number partition{0.02, "1 case, far off; that of tests/data/cases is within 0.001"};
inline constexpr Size partition_from{Bytes(std::int64_t{1} << 30), "1 case reaches it; up to 1.15 GiB nothing changes"};

/// What fused attention asks for at most: 2^31 bytes are the result of 300 thousand tokens of 3,584.
inline constexpr Size fused_at_most{Bytes(std::int64_t{1} << 31),
                                    "no case asks it: torch's fused kernels ask for a result as large as q"};

/// What somebody tells of a failure (judge_story.hpp).
inline constexpr Size scores_of_a_story{Bytes(std::int64_t{1} << 30),
                                        "47 cases, 23 reach it; from 0.79 to 1.11 GiB nothing changes"},
    scores_in_inference{Bytes(std::int64_t{4} << 30), "3 cases, none reaches it; from 0.72 GiB on nothing changes"},
    scores_in_training{Bytes(std::int64_t{16} << 30), "1 case does not reach it; from 0.32 GiB on nothing changes"},
    small_beside_an_engine{Bytes(std::int64_t{1} << 30), "2 cases, 1 reaches it; from 0.23 to 4 GiB nothing changes"},
    single_weight{Bytes(std::int64_t{1} << 29), "3 cases, 1 reaches it; from 0.11 to 0.71 GiB nothing changes"},
    quadratic{Bytes(std::int64_t{100} << 30), "144 cases, 4 reach it; from 46 to 111 GiB nothing changes"},
    device_not_told{Bytes(std::int64_t{80} << 30), "the largest that is common in the open texts"};
/// Of all GPUs that the weights of an inference take in 16 bits, to be the cause: a context, libraries and the
/// temporaries of one layer take the rest.
inline constexpr Number weights_fill{0.85, "set by hand"};
/// Of all GPUs that weights, gradients and states of all parameters take, to be the cause of a training of theirs.
inline constexpr Number states_fill{0.5, "13 cases, 7 reach it; from 0 to 0.56 nothing changes"};

/// Inputs of a batch from which on it is of crops or pages, not of answers.
inline constexpr Number many_at_once{16, "set by hand"};

/// Of what a doubling of the length adds, over what the one before it added: two by what grows with it, four by what
/// grows with its square.
inline constexpr Number square{3.2, "1 case reaches it, at 3.94"};

/// Of an engine's weights that must be left for its KV cache: a hundredth of Qwen2.5-VL's holds 4,400 tokens (72B) or
/// 2,700 (7B), of LLaVA-1.5-7B's, which shares no keys, 270.
inline constexpr Part left_for_cache{
    0.01, "no case asks it, one of tests/data/cases is at 0.0012: fewer tokens than a short prompt with pictures has"};

/// How far a rank's weights in an engine's log may be from a whole part of the settings' weights: what no rank divides.
inline constexpr Number whole_part{0.05, "no case asks it, one of tests/data/cases is at 0.007"};

/// From where on the size of an allocation in an inference is read as that of one kind of tensor alone.
inline constexpr Size by_size_alone{Bytes(std::int64_t{1} << 30),
                                    "1 case does not reach it; from 0.23 GiB on nothing changes"};

/// A reading as scores is worth a sentence from that plausibility and that size on.
inline constexpr Number scores_as_well{0.4, "7 cases, 6 reach it; from 0.31 to 0.5 nothing changes"};
inline constexpr Size scores_as_well_from{Bytes(std::int64_t{1} << 29),
                                          "6 cases, 5 reach it; from 0.23 to 0.58 GiB nothing changes"};
/// Scores are thought of at all from that plausibility on; a figure in bytes, and a size on a device that is not known,
/// tell of them from those sizes on.
inline constexpr Number scores_at_all{0.1, "62 cases, 59 reach it; from 0.021 to 0.3 nothing changes"};
inline constexpr Size scores_by_digits{Bytes(std::int64_t{1} << 28), "4 cases reach it; up to 45 GiB nothing changes"},
    scores_by_size{Bytes(std::int64_t{32} << 30), "17 cases, 4 reach it; from 6.6 to 39 GiB nothing changes"};

/// Of the time of a step that is spent on waiting for data, to be slow by it; and to be slow by anything else.
inline constexpr Number waiting{0.4, "3 cases, 1 reaches it; from 0.01 to 0.56 nothing changes"},
    not_waiting{0.05, "no case asks it"};
/// Seconds that preparing a data set takes until somebody asks about it.
inline constexpr Number slow_map{1800, "2 cases, 1 reaches it; from 2 to 26,660 nothing changes"};
/// Of the host's memory that is available when a process is killed, to doubt that it ran out.
inline constexpr Number roomy{0.5, "1 case reaches it; up to 0.87 nothing changes"};

}  // namespace vlmest::diagnose::cut_off
