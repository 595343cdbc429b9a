// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace solve {

VLMEST_INLINE Plan with(Plan p, Unknown u, std::int64_t v, ImageSize native) {
  switch (u) {
    case Unknown::text_tokens:
      p.seq.reset();
      p.text = v;
      break;
    case Unknown::batch: p.batch = v; break;
    case Unknown::images:
      p.seq.reset();
      p.images = v;
      break;
    case Unknown::image_side:
      p.seq.reset();
      p.more_sizes.clear();
      p.image_height = v;
      p.image_width = std::max<std::int64_t>(1, v * native.width / std::max<std::int64_t>(native.height, 1));
      break;
  }
  return p;
}

VLMEST_INLINE bool affordable(const Plan& p, Unknown u, std::int64_t v, std::int64_t now, std::int64_t patches) {
  switch (u) {
    case Unknown::text_tokens: return v <= most_tokens;
    case Unknown::batch: return v <= (p.images > 0 ? most_images / p.images : std::int64_t{1} << 14);
    case Unknown::images: return v <= most_images / std::max<std::int64_t>(p.batch, 1);
    case Unknown::image_side: {
      const double scale = static_cast<double>(v) / static_cast<double>(std::max<std::int64_t>(now, 1));
      return scale * scale * static_cast<double>(std::max<std::int64_t>(patches, 1)) <=
             static_cast<double>(most_patches);
    }
  }
  return false;
}

VLMEST_INLINE double root_of(double a, double b, double c) {
  double best = 1, least = 1e300;
  for (const double q : {1.0, 2.0, 4.0}) {
    const double x = std::pow(a, 1 / q), y = std::pow(b, 1 / q), z = std::pow(c, 1 / q);
    const double bend = std::abs((z - y) - (y - x)) / std::max(z, 1e-9);
    if (bend < least * 0.999) {
      least = bend;
      best = q;
    }
  }
  return best;
}

}  // namespace solve

VLMEST_INLINE std::vector<Solution> solve_unknown(const Vlm& vlm, const Plan& plan, const Device& device, bool training,
                                                  const PrintedSize& size, AllocationSite site, std::size_t kinds) {
  solve::Builds builds(vlm, device, training);
  std::vector<Solution> r;
  if (!builds.build(plan)) return r;
  struct Wanted {
    solve::Key key;
    solve::Sized now;
  };
  std::vector<Wanted> wanted;
  const TensorKinds kinds_of(builds.graph());
  for (const auto& [key, now] : builds.kinds()) {
    if (now.bytes > size.high) continue;
    const Tensor& t = builds.graph().tensor(now.tensor);
    const PlannedAllocation a{{now.tensor, "", none, now.bytes}, t.born, "", Moment::load, {}};
    if (site != AllocationSite::unknown && agrees(site, builds.graph(), kinds_of, a) < site_match::yes) continue;
    wanted.push_back({key, now});
  }
  sort_stably(wanted, [](const Wanted& a, const Wanted& b) { return a.now.bytes > b.now.bytes; });
  // One of each cause and type: scores, logits and activations grow differently, and many have a copy in fp32.
  const auto type_of = [&](const Wanted& w) { return builds.graph().tensor(w.now.tensor).dtype; };
  std::vector<Wanted> chosen;
  for (const Wanted& w : wanted)
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const Wanted& c) { return c.now.cause == w.now.cause && type_of(c) == type_of(w); }))
      chosen.push_back(w);
  if (chosen.size() > kinds) chosen.resize(kinds);
  if (chosen.empty()) return r;
  const ImageSize native = builds.sequences().images.empty() ? ImageSize{} : builds.sequences().image;
  const std::int64_t text = builds.sequences().text, patches = builds.patches();
  for (const Unknown u : {Unknown::text_tokens, Unknown::batch, Unknown::images, Unknown::image_side}) {
    if (native.height == 0 && (u == Unknown::images || u == Unknown::image_side)) continue;
    const std::int64_t now = std::max<std::int64_t>(1, u == Unknown::text_tokens ? text
                                                       : u == Unknown::batch     ? plan.batch
                                                       : u == Unknown::images    ? plan.images
                                                                                 : native.height);
    if (!solve::affordable(plan, u, 3 * now, now, patches)) continue;
    // What each of the chosen kinds takes at a value; empty where the model refuses it.
    std::map<std::int64_t, std::vector<Bytes>> built;
    const auto sizes_at = [&](std::int64_t v) -> const std::vector<Bytes>& {
      const auto [at, fresh] = built.try_emplace(v);
      if (fresh && builds.build(solve::with(plan, u, v, native), true))
        for (const Wanted& w : chosen) at->second.push_back(builds.size_of(w.key));
      return at->second;
    };
    bool refused = false;
    for (std::int64_t i = 1; i <= 3 && !refused; ++i) refused = sizes_at(i * now).empty();
    if (refused) continue;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const Wanted& w = chosen[k];
      const auto size_at = [&](std::int64_t v) { return static_cast<double>(sizes_at(v)[k].value()); };
      const std::array<double, 3> sizes{size_at(now), size_at(2 * now), size_at(3 * now)};
      if (!(sizes[0] > 0 && sizes[2] > sizes[0])) continue;
      const auto value = solve::smallest(now, sizes, static_cast<double>(size.low.value()),
                                         [&](std::int64_t v) -> std::optional<double> {
                                           if (!solve::affordable(plan, u, v, now, patches) || sizes_at(v).empty())
                                             return std::nullopt;
                                           return size_at(v);
                                         });
      if (!value || !builds.build(solve::with(plan, u, *value, native))) continue;
      const auto all = builds.kinds();
      const auto found = all.find(w.key);
      if (found == all.end()) continue;
      Solution s{.unknown = u, .value = *value, .cause = w.now.cause};
      s.tensor = describe(builds.graph(), {found->second.tensor, "", none, found->second.bytes});
      s.exact = size.holds(found->second.bytes);
      s.seq = builds.sequences().seq;
      s.patches = builds.patches();
      if (u == Unknown::image_side) s.width = solve::with(plan, u, *value, native).image_width;
      r.push_back(s);
    }
  }
  sort_stably(r, [](const Solution& a, const Solution& b) { return a.exact && !b.exact; });
  return r;
}

}  // namespace vlmest::diagnose
