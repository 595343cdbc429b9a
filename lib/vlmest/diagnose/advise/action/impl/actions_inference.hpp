// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/action/actions_inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace action {

VLMEST_INLINE std::vector<Settings> windows(const Subject& s) {
  std::vector<Settings> r;
  if (s.training() || kv(s).kind != KvLayout::Kind::dense) return r;
  const std::int64_t tokens = make_sequences(s.now.vlm, s.plan()).seq + s.plan().new_tokens;
  for (std::int64_t k = 15; k > 0; --k)
    if (const std::int64_t window = tokens * k / 16; window >= 2) {
      KvLayout& l = r.emplace_back(s.now).plan.kv;
      l.kind = KvLayout::Kind::sliding;
      l.window = window;
    }
  return r;
}

}  // namespace action
}  // namespace vlmest::diagnose
