// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vlmest/unit/words.hpp>

namespace vlmest {

/// What a storage is that runs beside a graph and so belongs to no tensor of it: what frameworks of data and pipeline
/// parallelism allocate.
enum class BesideGraph : std::uint8_t {
  nothing,
  gathered_weights,       ///< a unit's whole weights, while it runs
  all_gather_input,       ///< this rank's part of them, come from the host or in the type that they are gathered in
  all_gather_output,      ///< the flat buffer from which they are copied
  whole_gradients,        ///< a unit's, before they are reduced
  reduce_scatter_input,   ///< the flat buffer into which they are copied
  reduce_scatter_output,  ///< this rank's part of them
  gradient_bucket,        ///< of gradients that are reduced together
  bucket_copy,            ///< of a bucket whose parts go to several ranks
  gradient_partition,     ///< this rank's part of the reduced gradients
  flat_weights,           ///< all trained weights one after the other
  kept_shards,            ///< of weights that stay whole beside them
  master_weights,         ///< this rank's part in fp32, which the optimizer updates
  optimizer_states,       ///< of that part
  step_temporary,         ///< of the optimizer's step over it
  receives,               ///< of a pipeline's stage: hidden states of one micro-batch, or their gradients
  last_result,            ///< of the last stage: logits of the micro-batch before
  in_flight,              ///< a copy of a tensor that another micro-batch saved
  cast_input,             ///< an input in the type that weights are gathered in
};
template <>
inline constexpr std::array<std::string_view, 19> words_of<BesideGraph>{"",
                                                                        "gathered weights",
                                                                        "all_gather input",
                                                                        "all_gather output",
                                                                        "whole gradients",
                                                                        "reduce_scatter input",
                                                                        "reduced gradients",
                                                                        "gradient bucket",
                                                                        "copy of a bucket",
                                                                        "gradient partition",
                                                                        "flat weights",
                                                                        "shards of persistent weights",
                                                                        "fp32 weights",
                                                                        "optimizer states",
                                                                        "temporary of the step",
                                                                        "buffer of a receive",
                                                                        "logits of the micro-batch before",
                                                                        "saved by a micro-batch in flight",
                                                                        "cast input"};

}  // namespace vlmest
