// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention_args.hpp>

namespace vlmest::stacks {

/// Attention as the run does it.
inline Attended attend(Context& c, const AttentionArgs& a) { return c.words().attend(c, a); }

/// The same with sinks[H] (Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023; OpenAI, gpt-oss
/// model card, 2025): beside the keys each query head has one learned logit, to which weight goes that no value gets.
inline Attended attend_with_sinks(Context& c, const AttentionArgs& a, const Value& sinks) {
  return c.words().attend_with_sinks(c, a, sinks);
}

}  // namespace vlmest::stacks
