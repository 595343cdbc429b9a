// SPDX-License-Identifier: Apache-2.0
// Measured rows, read as `vlmest validate` does; the operations among them are predicted as well.
#include <cmath>

#include <vlmest/json/measured_file.hpp>

#include "device.hpp"
#include "target.hpp"

namespace {

using namespace vlmest;
using fuzz::require;

void check(const Comparison& c) {
  require(!c.quantity.empty(), "a comparison of nothing");
  require(std::isfinite(c.measured) && c.measured >= 0, "a figure that nothing measures");
  require(std::isfinite(c.predicted) && c.predicted >= 0, "a prediction that is none");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const json::MeasuredFile f = json::read_measured(fuzz::text(data, size), "input");
    require(f.rows == f.runs.size() + f.ops.size() + f.skipped.size() + f.problems.size(), "a row that was lost");
    for (const auto& e : f.problems) fuzz::require_readable(e);
    for (const auto& p : f.runs) {
      const Plan& plan = p.row.plan;
      require(!p.row.model.empty() && !name(p.row).empty(), "a run without a name");
      require(plan.batch > 0 && plan.text >= 0 && plan.images >= 0 && plan.new_tokens > 0, "a plan of nothing");
      require((plan.image_height > 0) == (plan.image_width > 0), "half an image");
      for (const auto& [key, value] : p.row.figures) require(std::isfinite(value) && value >= 0, "a figure");
    }
    for (const auto& p : f.ops) try {
        const auto all = compare(p.row, fuzz::device);
        for (const auto& c : all) check(c);
        for (const auto& c : all) require(summary(all, c.quantity).rows > 0, "a quantity that is not summed up");
      } catch (const Error& e) {
        fuzz::require_readable(e);
      }
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
