// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/evidence/snapshot/analysis.hpp>
#include <vlmest/diagnose/evidence/stack/frame_words.hpp>
#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/failure/failure.hpp>

namespace vlmest::diagnose {

/// A stack of a snapshot as a traceback prints it: outermost frame first.
inline std::vector<Frame> frames_of(const StackTable& stacks, StackTable::Stack s) {
  std::vector<Frame> r;
  for (const std::uint32_t f : stacks.stack(s)) r.push_back(stacks.frame(f));
  std::reverse(r.begin(), r.end());
  return r;
}

namespace snapshot_failure {

constexpr RunPhase phase_of(Stage s) {
  switch (s) {
    case Stage::load: return RunPhase::load_weights;
    case Stage::forward: return RunPhase::forward;
    case Stage::backward: return RunPhase::backward;
    case Stage::optimizer: return RunPhase::optimizer_step;
    default: return RunPhase::unknown;
  }
}

/// A stack of a snapshot has no source lines, which name most sites; what kind of code it ends in is known still.
/// A product that a model's outermost forward calls itself is its output head.
AllocationSite site_of(const CodeSite& site, const std::vector<Frame>& frames);

/// The kind of tensor to blame for a group of live allocations. `recorded`: there are events or stacks.
Cause cause_of(const RecordedSnapshot& s, const LiveGroup& g, bool recorded);

inline std::string place(const StackTable& stacks, const CodeSite& s) {
  const std::uint32_t f = s.program != CallStackTraits::no_frame ? s.program : s.user;
  if (f == CallStackTraits::no_frame) return {};
  const std::string file(stacks.file(f));
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(stacks.words(f).line) + " " +
         std::string(stacks.function(f));
}

/// Logits are made once in a pass: where those of many passes are alive, outputs are kept.
std::optional<SteadyGrowth> kept_outputs(const RecordedSnapshot& s, const SnapshotAnalysis& a);

/// A loss is made once in a pass too. Where those of many passes are alive, with tensors that were made between each of
/// them and the next, their graphs are kept. Several losses of one pass, one for each layer, have nothing between them.
std::optional<SteadyGrowth> kept_graphs(const RecordedSnapshot& s, const SnapshotAnalysis& a);

/// Growth counts where nearly every later step holds more, and by something to speak of.
std::optional<SteadyGrowth> growth_of(const RecordedSnapshot& s, const SnapshotAnalysis& a);

}  // namespace snapshot_failure

/// What a snapshot says of the allocation that failed, or, where none did, of the peak. A snapshot does not tell how
/// much the device has: what was reserved, with what the driver had left, is what this process could have had at least.
Failure failure_of(const RecordedSnapshot& s, const SnapshotAnalysis& a);

/// One failure out of a snapshot and the message of the same: the snapshot's exact figures, and what only the message
/// tells (the device's size, limits, other processes).
Failure merged(Failure snapshot, const Failure& message);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/failure/impl/from_snapshot.hpp>
#endif
