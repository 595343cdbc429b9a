// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include <vlmest/diagnose/inversion/attention_heads.hpp>
#include <vlmest/diagnose/inversion/multiples.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace multiples_of {

/// Engines' default of sequences, then powers of two, then the few pictures that a prompt may be allowed.
inline double plausible_count(std::int64_t pictures, int ranks) {
  const double shared = ranks == 1 ? 1 : ranks == 2 ? 0.6 : 0.3;
  if (pictures == 256) return shared;
  if (std::has_single_bit(static_cast<std::uint64_t>(pictures))) return 0.5 * shared;
  return pictures <= 20 ? 0.4 * shared : 0;
}

/// The pictures of which one has `one` bytes, divided over `ranks`: added to `r` where a whole number prints so.
inline void add(std::vector<Multiple>& r, const Failure& f, Multiple m) {
  const std::int64_t one = m.tensor.bytes.value();
  if (one < 1) return;
  for (const int ranks : {1, 2, 4, 8}) {
    const auto share = [&](std::int64_t n) { return Bytes(narrow(static_cast<Wide>(one) * n / ranks)); };
    if (f.tensor->high.value() / one > 4096) continue;
    const std::int64_t n =
        f.tensor->high.value() / one * ranks + narrow(static_cast<Wide>(f.tensor->high.value() % one) * ranks / one);
    if (n < 1 || n > 4096 || !f.tensor->holds(share(n))) continue;
    // A figure in which several counts print alike tells none of them.
    if (n > 1 && f.tensor->holds(share(n - 1)) && n != 256) continue;
    m.pictures = n;
    m.ranks = ranks;
    m.plausibility = plausible_count(n, ranks);
    if (m.plausibility > 0) r.push_back(m);
  }
}

}  // namespace multiples_of

VLMEST_INLINE std::vector<Multiple> multiples(const Vlm& vlm, const Plan& given, const Device& device,
                                              const Failure& f) {
  std::vector<Multiple> r;
  if (!f.tensor || !f.telling || !takes_images(vlm)) return r;
  const auto largest = largest_picture(vlm.image_processor);
  if (!largest) return r;
  Plan plan;
  plan.dtype = given.dtype;
  plan.text = 16;
  plan.image_height = largest->resized.height;
  plan.image_width = largest->resized.width;
  solve::Builds builds(vlm, device, false);
  if (!builds.build(plan)) return r;
  const Graph& g = builds.graph();
  const TensorKinds kinds(g);
  for (std::size_t i = 0; i < g.tensors.size(); ++i) {
    const Tensor& t = g.tensors[i];
    if (t.alias_of != none) continue;
    const LiveTensor live{static_cast<TensorId>(i), "", none, requested_bytes(t)};
    const bool pixels = t.role == Role::input && t.shape.rank() > 1 && is_floating(t.dtype);
    const bool tower = t.role == Role::activation && g.scopes[static_cast<std::size_t>(t.scope)].part == Part::vision;
    if (!pixels && !tower) continue;
    Multiple m{.tensor = describe(g, live), .tiles = largest->tiles};
    const bool known = std::any_of(r.begin(), r.end(), [&](const Multiple& x) {
      return x.tensor.shape == m.tensor.shape && x.tensor.dtype == m.tensor.dtype;
    });
    if (known) continue;
    multiples_of::add(r, f, m);
    // Processors give pixels in fp32, and engines unfold them before they convert.
    if (pixels && bits(t.dtype) == 16) {
      m.tensor.dtype = "fp32";
      m.tensor.bytes = m.tensor.bytes + m.tensor.bytes;
      multiples_of::add(r, f, m);
    }
  }
  const bool patches = f.site == AllocationSite::patch_embedding || f.site == AllocationSite::convolution ||
                       f.site == AllocationSite::pixel_values;
  // Of many kinds some have a size that agrees by chance: pixels and the patches made of them are the largest.
  sort_stably(r, [&](const Multiple& a, const Multiple& b) {
    const auto rank = [&](const Multiple& m) {
      const bool first = m.tensor.role == Role::input || m.tensor.scope.find("patch") != std::string::npos;
      return m.plausibility * (patches && !first ? 0.5 : 1);
    };
    return rank(a) != rank(b) ? rank(a) > rank(b) : a.tensor.bytes > b.tensor.bytes;
  });
  return r;
}

}  // namespace vlmest::diagnose
