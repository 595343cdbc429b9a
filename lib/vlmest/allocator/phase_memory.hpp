// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/allocator/segment.hpp>
#include <vlmest/analysis/timeline.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest::allocator {

/// Memory of one phase as the framework reports it.
struct PhaseMemory {
  Bytes before{};                ///< allocated when the phase began
  Bytes peak{};                  ///< torch.cuda.max_memory_allocated() of the phase
  Bytes after{};                 ///< allocated when its outputs still live
  Bytes reserved{};              ///< torch.cuda.max_memory_reserved() of the process so far
  NodeId node = 0;               ///< the node inside which the peak lies, or
  std::uint8_t turn = own_turn;  ///< between it and the node before, what has come and gone by then
  Bytes scratch{};               ///< library scratch at the peak, rounded by the allocator
  Fragmentation at_peak{};       ///< how reserved memory is spent at that moment
};

/// Memory while a node runs.
struct NodeMemory {
  NodeId node = 0;
  Bytes allocated{};  ///< its scratch included
  Bytes scratch{};    ///< what the libraries behind it take for as long as it runs
  Bytes libraries{};  ///< their workspaces, which stay
  Bytes reserved{};
};

/// For who asks for no node: those of layers that are known then need not run (layer_memo.hpp).
struct Unobserved {
  void operator()(const NodeMemory&) const {}
};

}  // namespace vlmest::allocator
