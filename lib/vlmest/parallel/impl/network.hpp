// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/parallel/network.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/count.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::parallel {

VLMEST_INLINE std::int64_t steps(CollectiveKind kind, std::int64_t ranks) {
  if (ranks < 2) return 0;
  if (kind == CollectiveKind::send) return 1;
  if (kind != CollectiveKind::all_reduce) return ranks - 1;
  const auto tree = 2 * static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(ranks))));
  return std::min(2 * (ranks - 1), tree);
}

namespace network {

inline Seconds along(const CollectiveCurve& c, double bytes) {
  const auto& p = c.points;
  if (p.size() == 1 || bytes <= static_cast<double>(p.front().bytes.value())) return p.front().time;
  std::size_t i = 1;
  while (i + 1 < p.size() && static_cast<double>(p[i].bytes.value()) < bytes) ++i;
  const auto x0 = static_cast<double>(p[i - 1].bytes.value()), x1 = static_cast<double>(p[i].bytes.value());
  const double slope = (p[i].time.value - p[i - 1].time.value) / (x1 - x0);
  return {p[i - 1].time.value + slope * (bytes - x0)};
}

/// The curve that a collective of so many ranks is read off; nothing where none was measured.
inline const CollectiveCurve* nearest(const Domain& d, CollectiveKind kind, int ranks) {
  const CollectiveCurve* r = nullptr;
  for (const CollectiveCurve& c : d.curves) {
    if (c.kind != kind || c.points.empty()) continue;
    const bool nearer =
        r == nullptr || (r->ranks > ranks ? c.ranks < r->ranks : c.ranks <= ranks && c.ranks > r->ranks);
    if (nearer) r = &c;
  }
  return r;
}

}  // namespace network

VLMEST_INLINE Seconds time(const CollectiveCurve& curve, Bytes bytes) {
  return network::along(curve, static_cast<double>(bytes.value()));
}

VLMEST_INLINE Seconds time(const Network& n, CollectiveKind kind, Bytes bytes, std::int64_t ranks, std::int64_t apart) {
  if (ranks < 2) return {};
  const std::int64_t gpus = checked_mul(ranks - 1, apart) + 1;
  const auto of = std::find_if(n.domains.begin(), n.domains.end(), [&](const Domain& d) { return d.gpus >= gpus; });
  if (of == n.domains.end())
    throw Error("layout.network", "'" + n.name + "' joins no " + std::to_string(gpus) + " GPUs",
                "name a network that reaches over several hosts, or describe one: layout.network=FILE");
  const auto size = static_cast<int>(ranks);
  if (const CollectiveCurve* c = network::nearest(*of, kind, size)) {
    const double same = static_cast<double>(bytes.value()) * traffic(kind, size) / traffic(kind, c->ranks);
    // Of fewer ranks than were measured no less than the traffic takes.
    return std::max(
        network::along(*c, same) + of->hop * static_cast<double>(steps(kind, ranks) - steps(kind, c->ranks)),
        (bytes / of->bandwidth) * traffic(kind, size));
  }
  const bool innermost = of == n.domains.begin();
  // As many groups go out of the domain inside at once as it has of them.
  const auto groups = static_cast<double>(innermost ? 1 : std::min(apart, std::prev(of)->gpus));
  const Seconds alone = of->launch + of->hop * static_cast<double>(steps(kind, ranks) - 1) +
                        (bytes / of->bandwidth) * (traffic(kind, size) * groups);
  if (innermost) return alone;
  // The same ring goes through the links inside, as fast as they are.
  const std::int64_t inside = (std::prev(of)->gpus - 1) / apart + 1;
  return inside < 2 ? alone : std::max(alone, time(n, kind, bytes, inside, apart));
}

}  // namespace vlmest::parallel
