// SPDX-License-Identifier: Apache-2.0
// One history under several settings of PYTORCH_ALLOC_CONF.
#include <cstdio>
#include <vector>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/allocator/config_text.hpp>

int main() {
  using namespace vlmest;
  std::printf("%-66s %9s %9s %9s %9s\n", "MiB at the end", "allocated", "reserved", "split", "largest");
  for (const char* settings : {"", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4",
                               "per_process_memory_fraction:0.5,garbage_collection_threshold:0.6"}) {
    allocator::CachingAllocator a(
        allocator::parse_allocator_config(settings, {.total_memory = Bytes(std::int64_t{2} << 30)}));
    std::vector<allocator::Block> kept;
    for (int batch = 1; batch <= 16; ++batch) {  // each pass is larger than the one before, and leaves a result
      const auto hidden = a.alloc(Bytes(batch * 7'300'000)), wide = a.alloc(Bytes(batch * 19'500'000));
      kept.push_back(a.alloc(Bytes(batch * 1'150'000)));
      a.free(wide);
      a.free(hidden);
    }
    const auto mib = [](Bytes b) { return b.value() / double(1 << 20); };
    const auto f = a.fragmentation();
    std::printf("%-66s %9.1f %9.1f %9.1f %9.1f\n", *settings ? settings : "(none)", mib(a.allocated()), mib(f.reserved),
                mib(f.split), mib(f.largest_free));
  }
}
