// SPDX-License-Identifier: Apache-2.0
#include "peak_table.hpp"

#include <array>

#include <fmt/core.h>

#include <vlmest/report/memory_curve.hpp>
#include <vlmest/report/tensor_groups.hpp>
#include <vlmest/unit/sort_stably.hpp>

#include "units.hpp"

namespace vlmest::tool {
namespace {

double percent(Bytes part, Bytes whole) {
  return whole == Bytes{} ? 0 : 100 * static_cast<double>(part.value()) / static_cast<double>(whole.value());
}

}  // namespace

Table peak_table(const Graph& g, const std::vector<LiveTensor>& all, Bytes peak, std::size_t top) {
  Table t{.head = {"tensor", "role", "shape", "dtype", "count", "bytes", "share"}, .rows = {}, .left = 4};
  const auto share = [&](Bytes b) { return fmt::format("{:.1f} %", percent(b, peak)); };
  Bytes rest = peak;
  for (const auto& x : grouped(g, all)) {
    if (t.rows.size() == top) break;
    rest -= x.bytes;
    t.rows.push_back({x.scope.empty() ? x.name : x.scope + " " + x.name, std::string(name(x.role)), to_string(x.shape),
                      x.dtype, std::to_string(x.count), show(x.bytes), share(x.bytes)});
  }
  if (rest > Bytes{}) t.rows.push_back({"other", "", "", "", "", show(rest), share(rest)});
  return t;
}

std::string by_role(const Graph& g, const std::vector<LiveTensor>& all, Bytes peak) {
  std::array<Bytes, roles> held{};
  for (const auto& t : all) held[static_cast<std::size_t>(role_of(g, t))] += t.bytes;
  std::vector<Role> order;
  for (std::size_t i = 0; i < roles; ++i)
    if (held[i] > Bytes{}) order.push_back(static_cast<Role>(i));
  const auto of = [&](Role x) { return held[static_cast<std::size_t>(x)]; };
  sort_stably(order, [&](Role a, Role b) { return of(a) > of(b); });
  std::string line;
  for (const Role x : order)
    if (percent(of(x), peak) >= 0.05)
      line += fmt::format("{}{} {} ({:.1f} %)", line.empty() ? "" : ", ", name(x), show(of(x)), percent(of(x), peak));
  return line;
}

}  // namespace vlmest::tool
