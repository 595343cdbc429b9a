// SPDX-License-Identifier: Apache-2.0
// A list of operations, read and costed as `vlmest op` does.
#include <cmath>

#include <vlmest/analysis/work.hpp>
#include <vlmest/json/op.hpp>
#include <vlmest/json/parse.hpp>

#include "device.hpp"
#include "target.hpp"

namespace {

using namespace vlmest;

void cost_one(const nlohmann::json& entry) {
  try {
    const json::SingleOp s = json::read_op(entry, "input");
    const Cost c = cost(s.op);
    const Work w = work(s.op, fuzz::device);
    fuzz::require(c.flops >= Flops{} && c.flops >= c.flops_causal, "FLOPs");
    fuzz::require(s.inputs > Bytes{} && s.outputs > Bytes{} && c.read > Bytes{} && c.written > Bytes{}, "bytes");
    fuzz::require(s.peak >= s.inputs + s.outputs && c.workspace >= Bytes{}, "the peak");
    fuzz::require(w.time.value > 0 && std::isfinite(w.time.value) && w.kernels > 0, "time");
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const nlohmann::json list = json::parse(fuzz::text(data, size), "input");
    if (list.is_array())
      for (const auto& entry : list) cost_one(entry);
    else
      cost_one(list);
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
