// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/failure/tensor_sizes.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::optional<TensorSizes> tensor_sizes(const OomMessage& m) {
  if (!m.requested || m.backend == MemoryBackend::server) return std::nullopt;
  const auto& r = *m.requested;
  const auto below = [](Bytes b, std::int64_t n) { return Bytes(std::max<std::int64_t>(b.value() - n, 0)); };
  if (m.backend == MemoryBackend::mps) return TensorSizes{below(r.low, (16 << 10) - 1), r.high, SizeRule::page};
  if (!prints_segments(m)) return TensorSizes{r.low, r.high, r.exact() ? SizeRule::exact_bytes : SizeRule::as_printed};
  using namespace allocator;
  if (r.holds(Bytes(small_segment_size))) return TensorSizes{Bytes(1), Bytes(small_size), SizeRule::small_segment};
  if (r.holds(Bytes(large_segment_default)) && r.low >= Bytes(large_segment_default - round_large))
    return TensorSizes{Bytes(small_size + 1), Bytes(large_segment_default), SizeRule::large_segment};
  const auto first = (r.low.value() + round_large - 1) / round_large * round_large;
  const auto last = r.high.value() / round_large * round_large;
  if (first > last || last < min_large_alloc)
    return TensorSizes{below(r.low, (128 << 10) - 1), r.high, SizeRule::old_rounding};
  return TensorSizes{below(Bytes(first), round_large - 1), Bytes(last), SizeRule::multiple};
}

}  // namespace vlmest::diagnose
