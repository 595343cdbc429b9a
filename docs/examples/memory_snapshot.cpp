// SPDX-License-Identifier: Apache-2.0
// A memory snapshot, written with json.dump(torch.cuda.memory._snapshot(), file): is it what torch's rules lead to, and
// what would the same process have reserved with other settings?
#include <cstdio>
#include <fstream>
#include <map>

#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/json/memory_snapshot.hpp>

int main() {
  using namespace vlmest;
  std::ifstream file("docs/examples/memory_snapshot.json");
  const auto snapshot = json::read_memory_snapshot(nlohmann::json::parse(file));
  const auto r = allocator::reproduce(snapshot);
  std::printf("%zu events lead from %zu to %zu segments: %s\n", snapshot.events.size(), r.initial.segments.size(),
              r.replay.segments.size(), r.exact ? "every block as recorded" : r.difference.c_str());
  std::printf("peak of event %zu: %ld bytes allocated, %ld reserved, %ld of them between live blocks\n\n",
              r.replay.peak_event, long(r.replay.peak_allocated.value()), long(r.replay.at_peak.reserved.value()),
              long(r.replay.at_peak.split.value()));

  for (const char* settings : {"", "expandable_segments:True", "roundup_power2_divisions:8"}) {
    allocator::CachingAllocator a(allocator::parse_allocator_config(settings));
    std::map<std::int64_t, allocator::Block> live;  // by the address they had
    for (const auto& s : r.initial.segments)
      for (const auto& b : s.blocks)
        if (b.active()) live[b.address] = a.alloc(b.requested);
    for (const auto& e : snapshot.events) {
      if (e.action == allocator::TraceAction::alloc) live[e.address] = a.alloc(e.size, e.stream);
      if (e.action == allocator::TraceAction::free_requested) a.free(live[e.address]);
    }
    std::printf("%-28s peak %ld allocated, %ld reserved\n", *settings ? settings : "(default)",
                long(a.peak_allocated().value()), long(a.peak_reserved().value()));
  }
}
