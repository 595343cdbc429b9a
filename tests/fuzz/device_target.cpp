// SPDX-License-Identifier: Apache-2.0
// A device description, and the roofline of one op on what it describes.
#include <cmath>

#include <vlmest/analysis/work.hpp>
#include <vlmest/json/device.hpp>

#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vlmest;
  using fuzz::require;
  try {
    const Device d = parse_device(fuzz::text(data, size), "input");
    require(d.usable_bytes > Bytes{} && d.usable_bytes <= d.memory_bytes, "memory");
    require(d.sm >= 50 && d.multiprocessors >= 1 && !d.name.empty(), "names and counts");
    for (const DType t : {DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8, DType::int8})
      require(peak(d, t) > FlopRate{}, "no rate");
    const Work w = work(Matmul{.m = 128, .n = 128, .k = 128}, d);
    require(w.time.value > 0 && std::isfinite(w.time.value), "the time of a product");
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
