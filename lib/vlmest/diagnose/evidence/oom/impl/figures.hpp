// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/oom/figures.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<FragmentationTest> fragmentation(const OomMessage& m) {
  const auto u = unallocated(m);
  if (!m.requested || !u) return std::nullopt;
  FragmentationTest t{*m.requested, *u, m.free, u->low >= m.requested->high, false, {}};
  // Printed alike, as "2.00 GiB" and "2.00 GiB": a cached block of the size would have been used.
  if (m.free || t.fragmented) {
    const auto have = u->value + (m.free ? m.free->value : Bytes());
    t.together_enough = have >= m.requested->value;
    if (!t.together_enough) t.shortage = m.requested->value - have;
  }
  return t;
}

VLMEST_INLINE void guess_own_process(OomMessage& m) {
  const auto r = reserved(m);
  if (m.own_process || m.processes.empty() || !r) return;
  std::vector<std::size_t> alike;
  for (std::size_t i = 0; i < m.processes.size(); ++i) {
    const auto& p = m.processes[i].in_use;
    if (p.high >= r->low + Bytes(100 << 20) && p.low <= r->high + context_at_most) alike.push_back(i);
  }
  std::size_t own = m.processes.size();
  if (alike.size() == 1) own = alike.front();
  if (own == m.processes.size() && m.processes.size() == 1 && m.total && m.free &&
      m.processes[0].in_use.high >= r->low && m.total->high - m.free->low < m.processes[0].in_use.low + r->low)
    own = 0;
  if (own == m.processes.size()) return;
  m.own_process = m.processes[own].in_use;
  m.own_process_guessed = true;
  m.processes.erase(m.processes.begin() + static_cast<std::ptrdiff_t>(own));
}

}  // namespace vlmest::diagnose
