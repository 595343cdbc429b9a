// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/snapshot/timeline.hpp>
#include <vlmest/diagnose/evidence/stack/frame_traits.hpp>

namespace vlmest::diagnose {

/// Lines of a program that make attention scores. A stack of a snapshot has no source lines, and where attention is
/// written out in a module's forward, no function's name tells of it. But its softmax shows, torch.nn.functional's or
/// the program's own: what it gives are the scores, and lines of the same function whose results are as large, or
/// half or twice as large for another type, make them too (the product, the scale, the mask, the cast, dropout).
class ScoreLines {
 public:
  ScoreLines() = default;
  ScoreLines(const StackTable& stacks, const std::vector<CallStackTraits>& traits, const std::vector<Allocation>& all) {
    callers_.resize(stacks.stack_count());
    for (StackTable::Stack s = 0; s < callers_.size(); ++s) callers_[s] = caller_of_softmax(stacks, s);
    std::map<Function, std::set<std::int64_t>> sizes;
    for (const Allocation& a : all)
      if (const auto f = callers_[a.stack]; f != CallStackTraits::no_frame)
        sizes[function_of(stacks, f)].insert(a.requested.value());
    if (sizes.empty()) return;
    for (const Allocation& a : all) {
      const CallStackTraits& t = traits[a.stack];
      // A layer that the function calls may give as much by chance.
      if (t.program == CallStackTraits::no_frame ||
          (t.innermost & (trait::linear | trait::norm | trait::embedding)) != 0)
        continue;
      const auto known = sizes.find(function_of(stacks, t.program));
      if (known == sizes.end()) continue;
      const auto n = a.requested.value();
      for (const auto size : known->second)
        if (n == size || n == 2 * size || 2 * n == size) lines_.insert(t.program);
    }
  }

  /// Whether an allocation with this stack makes scores.
  bool holds(StackTable::Stack s, const CallStackTraits& t) const {
    if (s < callers_.size() && callers_[s] != CallStackTraits::no_frame) return true;
    return lines_.contains(t.program) && (t.innermost & (trait::linear | trait::norm | trait::embedding)) == 0;
  }

 private:
  using Function = std::pair<std::uint32_t, std::uint32_t>;  ///< words of file and name
  static Function function_of(const StackTable& stacks, std::uint32_t frame) {
    return {stacks.words(frame).file, stacks.words(frame).function};
  }
  /// The frame that called softmax in a forward, or a function named after attention; no_frame where none did. A loss
  /// and sampling take the softmax of logits.
  static std::uint32_t caller_of_softmax(const StackTable& stacks, StackTable::Stack s) {
    bool in_softmax = false;
    for (const auto f : stacks.stack(s)) {
      const auto name = stacks.function(f);
      if (!stacks.file(f).ends_with(".py")) continue;
      if (name == "softmax") {
        in_softmax = true;
      } else if (in_softmax) {
        const Traits of = naming::of_function(name);
        const bool attends = name == "forward" || (of & trait::attention) != 0;
        return attends && (of & trait::loss) == 0 ? f : CallStackTraits::no_frame;
      } else if ((naming::origin_of(stacks.file(f)) & trait::in_torch) == 0) {
        return CallStackTraits::no_frame;
      }
    }
    return CallStackTraits::no_frame;
  }

  std::vector<std::uint32_t> callers_;
  std::set<std::uint32_t> lines_;
};

}  // namespace vlmest::diagnose
