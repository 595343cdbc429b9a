// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/evidence/oom/group.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace oom_group {

VLMEST_INLINE std::optional<PrintedSize>* figure(OomMessage& m, OomField f) {
  switch (f) {
    case OomField::requested: return &m.requested;
    case OomField::total: return &m.total;
    case OomField::free: return &m.free;
    case OomField::allocated: return &m.allocated;
    case OomField::reserved: return &m.reserved;
    case OomField::reserved_unallocated: return &m.reserved_unallocated;
    case OomField::private_pools: return &m.private_pools;
    case OomField::allowed: return &m.allowed;
    case OomField::own_process: return &m.own_process;
    case OomField::other: return &m.other;
    default: return nullptr;
  }
}

}  // namespace oom_group

VLMEST_INLINE std::vector<OomGroup> group_oom_facts(const std::vector<OomFact>& facts) {
  using namespace oom_group;
  std::vector<OomGroup> groups;
  bool open = false, alone = false, figures = false, begun = false;
  const auto close = [&] {
    if (!open) return;
    open = false;
    auto& m = groups.back().message;
    const bool telling = m.requested || m.reserved_unallocated || (m.total && (m.free || m.allocated)) ||
                         (m.allocated && (m.reserved || m.free)) || (begun && m.own_process);
    m.has_numbers = m.requested || m.total || m.allocated || m.own_process;
    if (!(begun && figures && m.has_numbers) && !telling && !alone) groups.pop_back();
  };
  std::size_t covered = 0;  // an anchor within another one's words says nothing new
  for (const auto& f : facts) {
    const bool inside = f.field != OomField::begin && f.end <= covered;
    if (f.field != OomField::begin && f.field != OomField::gpu && !inside) covered = f.end;
    if (inside) continue;
    if (f.async_only && !(open && groups.back().message.backend == MemoryBackend::cuda_malloc_async)) continue;
    if (open) {
      auto& m = groups.back().message;
      bool next = f.at > groups.back().end + reach;
      // torch's words begin a message; those of the others stand before, between and behind the figures, and the first
      // words of a group take the figures before them.
      if (f.field == OomField::begin && figures)
        next = next || (f.backend != MemoryBackend::ggml && (in_torch(f.backend) || (begun && f.backend != m.backend)));
      if (auto* was = figure(m, f.field); was != nullptr && was->has_value() && f.size)
        next = next || !agree(**was, *f.size);
      if (f.field == OomField::gpu && m.gpu && *m.gpu != f.number) next = next || figures;
      if (next) close();
    }
    // "requested:", "total;" and "free;" stand in other texts as well: they never begin a message.
    const bool weak = f.field == OomField::gpu || f.field == OomField::free || f.field == OomField::allowed ||
                      f.field == OomField::process || f.field == OomField::other;
    if (!open) {
      if (weak && f.field != OomField::gpu) continue;
      groups.push_back({{}, f.at, f.end});
      open = true;
      alone = figures = begun = false;
    }
    auto& g = groups.back();
    g.end = std::max(g.end, f.end);
    if (f.field == OomField::begin) {
      begun = true;
      alone = alone || f.alone;
      g.message.backend = better(g.message.backend, f.backend);
      if (g.message.reason == OomReason::none) g.message.reason = f.reason;
    } else if (f.field == OomField::gpu) {
      if (!g.message.gpu) g.message.gpu = f.number;
    } else if (f.field == OomField::process) {
      figures = true;
      if (f.size && g.message.processes.size() < 256) g.message.processes.push_back({f.number, *f.size});
    } else {
      figures = true;
      auto& figure_ = *figure(g.message, f.field);
      if (f.size && (!figure_ || f.size->exact())) figure_ = f.size;
    }
  }
  close();
  return groups;
}

}  // namespace vlmest::diagnose
