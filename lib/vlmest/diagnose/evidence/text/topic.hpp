// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vlmest::diagnose {

/// What people speak of who tell of a failure.
enum class Topic : std::uint8_t {
  host,         ///< the memory of the machine: RAM, in Chinese 内存, where 显存 is that of a GPU
  killed,       ///< a process that was ended
  grows,        ///< memory that goes up from step to step, or request to request
  fragments,    ///< memory in pieces
  states,       ///< an optimizer's states by their names
  logits,       ///< a head's output, or what a loss or a log-probability makes of it
  saves,        ///< a checkpoint that is being written
  unfused,      ///< attention that writes its scores: eager, math, or no flash attention on that GPU
  others,       ///< another process on the device
  slow_data,    ///< a loader that steps wait for
  all_weights,  ///< training of all weights
  adapters,     ///< LoRA
  pictures,     ///< images, video, their number or resolution
  loads,        ///< a model that is being loaded
  rollout,      ///< reinforcement learning, with its generations
  serves,       ///< an engine with kernels and a cache of its own that answers requests
  hosts,        ///< a server that has others answer: engines, or transformers
  trains,       ///< training in any words
  answers,      ///< inference in any words
  share,        ///< the share of a device that an engine takes
  memory,       ///< memory in any words
  machine,      ///< the RAM of the machine in a list of what it has
  slow,         ///< time that is lost
  varies,       ///< a failure that comes with some samples or requests and not with others
  own_size,     ///< a model that takes pictures in their own resolution, or tiles of it
  starts,       ///< the command or call that starts an engine
  attends,      ///< a source line of attention
  gradient,     ///< a source line of gradients and their buckets
  cache,        ///< keys and values of what was answered before
  sharded,      ///< ZeRO, FSDP
  few_bits,     ///< weights of fewer than 16 bits
  answered,     ///< requests that an engine was answering: it has started
  profiles,     ///< an engine's run over its largest inputs
  offloads,     ///< an optimizer's states in the host's memory
  old_gpu,      ///< a GPU older than Ampere, which FlashAttention-2 has no kernels for (its README)
  busy_host,    ///< a CPU that is busy while the GPU is not
  one_device,   ///< one GPU that is used of several
  batches       ///< a batch of many inputs
};
inline constexpr std::size_t topics = static_cast<std::size_t>(Topic::batches) + 1;

}  // namespace vlmest::diagnose
