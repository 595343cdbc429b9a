// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/plan/plan.hpp>
#include <vlmest/tensor/described_tensor.hpp>

/// A failed request read backwards as logits, or their fp32 copy, of N positions: sequences x N x vocabulary.
namespace vlmest::diagnose {

struct HeadRows {
  std::string scope;  ///< the head's module
  std::int64_t batch = 1;
  std::int64_t positions = 0;  ///< N: the most that print so
  std::int64_t vocabulary = 0;
  int element = 4;  ///< bytes
  double plausibility = 0;
  DescribedTensor tensor() const;
};

/// The more plausible of both types. `plan` says whether logits of all positions are computed; transformers before 4.45
/// computed them in every prefill, and up to 4.47 in fp32 (GenerationMixin and modeling_llama.py of those versions,
/// whose LlamaForCausalLM.forward ends in logits.float()): the time of torch 2.1 and before. Nothing where neither says
/// so, or no whole number of positions prints so.
std::optional<HeadRows> head_rows(const Failure& f, const Vlm& vlm, const Plan& plan, const Device& device);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/head_rows.hpp>
#endif
