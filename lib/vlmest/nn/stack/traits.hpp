// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/run_script.hpp>
#include <vlmest/unit/required.hpp>

/// What a software stack (a runtime: transformers, an inference engine) does in its own way. Blocks do not ask which
/// stack runs them; they ask for one of these traits, or call a word of its vocabulary (the other headers of nn/stack).
namespace vlmest {

/// A stack that leaves one out does not compile.
using Trait = Required<bool>;

/// How a stack goes through the phases of a graph. One that leaves a script out does not compile.
struct RunScripts {
  Required<RunScript> inference;      ///< of the phases prefill and decode: measures both
  Required<RunScript> training;       ///< of a step's phases: measures all
  Required<RunScript> training_loop;  ///< of the same, step after step
};

struct StackTraits {
  /// Masks are tensors, and the host reads them to find out whether they hide anything; without, the attention kernel
  /// is told what each query sees.
  Trait makes_masks;
  /// One attention kernel without a score matrix, whatever the plan asks for.
  Trait attends_by_flash;
  /// FlashAttention is the library's, version 2: types, devices and models it has no path for are refused, and the host
  /// reads the longest length for it.
  Trait flash_attention_2;
  /// torch.nn.MultiheadAttention forms its scores.
  Trait written_out_multihead_attention;
  /// Queries are multiplied by the factors of their positions; without, the attention kernel is told them.
  Trait scales_queries;
  /// Rows of a table of angles are copied by position; without, they are read where they lie.
  Trait gathers_angles;
  /// act(gate) * up over the halves of one product is a kernel.
  Trait fuses_gate;
  /// x + scale * y is a kernel.
  Trait fuses_scaled_sums;
  /// A loss over whole logits is a kernel.
  Trait fuses_loss;
  /// Attention reads a cache in the type and the pages in which it lies.
  Trait attends_to_stored_cache;
  /// A group-quantised cache holds its newest tokens in the activations' type.
  Trait keeps_recent_wide;
  /// Layers of linear attention (Gated DeltaNet) run op by op; without, their kernels are not described and such models
  /// are refused.
  Trait writes_out_linear_attention;
  /// Mixtures whose module runs every expert on every token do so (Llama 4); without, tokens go to the experts that are
  /// chosen for them, as in other mixtures.
  Trait runs_every_expert;
  /// Attention adds biases of relative positions to its scores; without, no kernel is described that does and such
  /// models are refused.
  Trait adds_position_biases;
  /// Attention's kernels take heads of more than 256 channels and keys and values of an earlier layer; without, models
  /// that have them are refused.
  Trait attends_to_wide_shared_heads;
  /// Weights come through transformers' quantizers, which replace modules, and unpack what they have no kernel for.
  Trait transformers_quantizers;
  /// Layers are divided among GPUs by the model's own plan (nn/shard_rules.hpp); without, how is not described.
  Trait divides_layers;
  Required<RunScripts> scripts;       ///< of a process that runs the model alone
  Required<RunScripts> rank_scripts;  ///< of one of several ranks
};

}  // namespace vlmest
