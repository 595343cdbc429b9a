// SPDX-License-Identifier: Apache-2.0
// One product on several devices: prefill and decode of the same layer.
#include <cstdio>

#include <vlmest/analysis/work.hpp>
#include <vlmest/json/device.hpp>

int main() {
  using namespace vlmest;
  for (const char* device : {"l4", "a100-80", "h200-sxm"}) {
    const Device d = load_device(std::string("models/device/") + device + ".json");
    std::printf("%-9s ridge %5.0f FLOPs/B\n", device, ridge(d, DType::bf16));
    for (const std::int64_t tokens : {4096, 64, 1}) {
      const Matmul product{.m = tokens, .n = 11008, .k = 4096};
      const Roofline limit = roofline(cost(product), d);
      std::printf("  %4ld tokens: %7.1f FLOPs/B, at least %8.1f us, expected %8.1f us, %s\n", long(tokens),
                  intensity(cost(product)), limit.time().us(), work(product, d).time.us(),
                  std::string(name(limit.bound())).c_str());
    }
  }
}
