// SPDX-License-Identifier: Apache-2.0
#include "slow_shapes.hpp"

#include <vlmest/report/slow_shapes.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

std::vector<SlowShape> found(const Reported& r, const ReportOptions& o) {
  if (o.inference) {
    const Graph& g = r.estimator.graph();
    const std::array<Repeated, 1> prefill{Repeated{g.phases[0].first, g.phases[0].last, 1}};
    return slow_shapes(g, prefill, r.device);
  }
  const Graph& g = r.estimator.training_graph();
  return slow_shapes(g, stretches(g, r.estimate.training.micro_batches), r.device);
}

}  // namespace

Table slow_shapes_table(const Reported& r, const ReportOptions& o) {
  Table t{.head = {"slow shape", "op", "why", "faster with", "times", "time", "saves"}, .rows = {}, .left = 4};
  for (const SlowShape& s : found(r, o))
    t.rows.push_back({s.point.scope, s.point.name, std::string(name(s.faster.why)), s.faster.what,
                      grouped(s.point.count), show(s.point.time()), show(s.saved())});
  return t;
}

Slowness slowness(const Reported& r, const ReportOptions& o) {
  Slowness all;
  for (const SlowShape& s : found(r, o)) {
    ++all.shapes;
    all.saves += s.saved();
  }
  return all;
}

nlohmann::ordered_json slow_shapes_json(const Reported& r, const ReportOptions& o) {
  auto list = nlohmann::ordered_json::array();
  for (const SlowShape& s : found(r, o))
    list.push_back({{"scope", s.point.scope},
                    {"op", s.point.name},
                    {"shape", s.point.shape},
                    {"count", s.point.count},
                    {"time_us", significant(s.point.time().us())},
                    {"why", std::string(name(s.faster.why))},
                    {"faster_with", s.faster.what},
                    {"saves_us", significant(s.saved().us())}});
  return list;
}

}  // namespace vlmest::tool
