// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vlmest::parallel {

/// What a DeepSpeed configuration decides, in elements, with its defaults (deepspeed/runtime/zero/config.py).
struct ZeroSettings {
  std::int64_t reduce_bucket = 500'000'000;
  std::int64_t prefetch = 50'000'000;
  std::int64_t persistence = 100'000;
  std::int64_t live = 1'000'000'000;
  std::int64_t reuse = 1'000'000'000;
  std::int64_t sub_group = 1'000'000'000;
};

}  // namespace vlmest::parallel
