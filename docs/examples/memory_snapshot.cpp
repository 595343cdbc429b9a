// SPDX-License-Identifier: Apache-2.0
// A memory snapshot, written with json.dump(torch.cuda.memory._snapshot(), file): is it what torch's rules lead to, and
// what would the same process have reserved with other settings?
#include <cstdio>
#include <fstream>

#include <vlmest/allocator/reproduce.hpp>
#include <vlmest/allocator/what_if.hpp>
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
    const auto peaks = allocator::peaks_with(allocator::parse_allocator_config(settings), snapshot, r.initial);
    std::printf("%-28s peak %ld allocated, %ld reserved\n", *settings ? settings : "(default)",
                long(peaks.allocated.value()), long(peaks.reserved.value()));
  }
}
