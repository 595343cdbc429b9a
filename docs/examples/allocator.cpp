// SPDX-License-Identifier: Apache-2.0
// The caching allocator's rules, one after the other.
#include <cstdio>

#include <vlmest/allocator/caching_allocator.hpp>

int main() {
  using namespace vlmest;
  allocator::CachingAllocator a;
  const auto show = [&](const char* what) {
    std::printf("%-56s allocated %9ld  reserved %9ld\n", what, long(a.allocated().value()), long(a.reserved().value()));
  };
  const auto small = a.alloc(Bytes(1000));
  show("1,000 B: rounded to 1,024, in a 2 MiB segment");
  const auto medium = a.alloc(Bytes(1679616));
  show("1,679,616 B: 1,679,872 of a 20 MiB segment");
  const auto large = a.alloc(Bytes(45088768));
  show("45,088,768 B: a segment of its own, 44 MiB");
  a.free(large);
  show("freed: the segment stays cached");
  const auto again = a.alloc(Bytes(44000000));
  show("44,000,000 B: takes the cached block, cuts off the rest");
  const auto rest = a.alloc(Bytes(1679616));
  std::printf("1,679,616 B occupy %ld: the best fit leaves under 1 MiB, which is not cut off\n",
              long(a.block_size(rest).value()));
  for (const auto& s : a.segments()) {
    std::printf("segment of %ld:", long(s.size.value()));
    for (const auto& b : s.blocks) std::printf(" %ld %s", long(b.size.value()), b.allocated() ? "used" : "free");
    std::printf("\n");
  }
  for (const auto block : {small, medium, again, rest}) a.free(block);
  a.empty_cache();
  show("all freed, cache emptied");
}
