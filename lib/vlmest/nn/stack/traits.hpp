// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/run_script.hpp>

/// What a software stack (a runtime: transformers, an inference engine) does in its own way. Blocks do not ask which
/// stack runs them; they ask for one of these traits, or call a word of its vocabulary (the other headers of nn/stack).
namespace vlmest {

/// A value without a default: a stack that leaves one out does not compile.
template <class T>
class Required {
 public:
  constexpr Required(T value) : value_(value) {}
  constexpr operator const T&() const { return value_; }

 private:
  T value_;
};
using Trait = Required<bool>;

struct StackTraits {
  /// Masks are tensors, and the host reads them to find out whether they hide anything; without, the attention kernel
  /// is told what each query sees.
  Trait makes_masks;
  Trait attends_by_flash;   ///< one attention kernel without a score matrix, whatever the plan asks for
  Trait flash_attention_2;  ///< such a kernel is the library's: it has its limits, and the host reads lengths for it
  Trait pads_values;        ///< values narrower than keys are widened for such a kernel in every model
  Trait written_out_multihead_attention;  ///< torch.nn.MultiheadAttention forms its scores
  Trait scales_queries;           ///< factors of queries by position are multiplied in; else a kernel knows them
  Trait gathers_angles;           ///< rows of a table of angles are copied by position; else read where they lie
  Trait fuses_gate;               ///< act(gate) * up is one kernel
  Trait fuses_scaled_sums;        ///< so is x + scale * y
  Trait fuses_loss;               ///< so is the loss, where the plan asks for none
  Trait attends_to_stored_cache;  ///< attention reads a cache in the type and the pages in which it lies
  Trait keeps_recent_wide;        ///< a group-quantised cache holds its newest tokens in the activations' type
  /// Weights come through transformers' quantizers, which replace modules, and unpack what they have no kernel for.
  Trait transformers_quantizers;
  Required<RunScript> inference;      ///< of the phases prefill and decode; measures both
  Required<RunScript> training;       ///< of the phases of a step; measures all
  Required<RunScript> training_loop;  ///< of the same
};

}  // namespace vlmest
