// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::diagnose {

/// What is known of a run beside its settings.
struct KnownOfRun {
  bool device = false;     ///< which it is: otherwise nothing is said to be too much
  bool deepspeed = false;  ///< it trains with DeepSpeed, whose optimizers hold fp32 copies of 16-bit weights
};

/// The verdict on a training of which only settings are known: what takes most of each GPU, where they need more than
/// the device has. DeepSpeed's states are 12 bytes a trained parameter, an fp32 copy and two fp32 moments
/// (deepspeed/runtime/zero/stage_1_and_2.py, single_partition_of_fp32_groups; stage3.py, fp32_partitioned_groups_flat).
Verdict judge_settings(const Settings& s, const Device& device, KnownOfRun known, Estimator& estimator);

/// A request that is a rank's part of all trained parameters, in fp32 or in 16 bits, as ZeRO and flat optimizers hold
/// their copies, their moments and their gradients (deepspeed/runtime/zero/stage_1_and_2.py, stage3.py). Groups with
/// and without weight decay are two tensors, and parts are padded: the size is right within a fiftieth. `why`
/// begins with what it is.
std::optional<Verdict> judge_partition(const Failure& f, const Settings& s, const Device& device, Estimator& estimator);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_settings.hpp>
#endif
