// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/diagnose/text/printed_size.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/tensor_groups.hpp>

namespace vlmest::diagnose {

/// What a run may have had more of than its settings say.
enum class Unknown : std::uint8_t { text_tokens, batch, images, image_side };

inline constexpr std::array<std::string_view, 4> unknowns{"text tokens of a sequence", "sequences",
                                                          "images of a sequence", "pixels of an image"};
constexpr std::string_view name(Unknown u) { return unknowns[static_cast<std::size_t>(u)]; }

/// "With 86,600 tokens a sequence the logits would have this size."
struct Solution {
  Unknown unknown = Unknown::text_tokens;
  std::int64_t value = 0;  ///< the setting: tokens, sequences, images; of image_side the height in pixels
  std::int64_t width = 0;  ///< of image_side
  Cause cause = Cause::unknown;
  DescribedTensor tensor;    ///< as it is with that value
  std::int64_t seq = 0;      ///< tokens of a sequence with that value
  std::int64_t patches = 0;  ///< of the vision tower, all images of a sequence
  bool exact = false;        ///< its size is one that the message allows; else it is the first that is larger
  std::string assuming;      ///< a flag that has to change as well; empty: none
};

namespace solve {

/// A kind of tensor: the largest of its name in modules that differ by their layer alone.
using Key = std::tuple<std::string, std::string, std::string>;

struct Sized {
  TensorId tensor = none;
  Bytes bytes{};
  Cause cause = Cause::unknown;
};

/// Graphs of one model under changing plans.
class Builds {
 public:
  Builds(const Vlm& vlm, const Device& device, bool training) : vlm_(vlm), device_(device), training_(training) {}

  /// Builds a plan; false where the model refuses it.
  bool build(Plan plan) {
    plan.compute_capability = device_.sm;
    plan.multiprocessors = device_.multiprocessors;
    try {
      sequences_ = make_sequences(vlm_, plan);
      builder_.clear();
      Context c{builder_, plan};
      if (training_)
        build_training(c, vlm_, sequences_);
      else
        build_inference(c, vlm_, sequences_, checked_add(sequences_.seq, std::max<std::int64_t>(plan.new_tokens, 1)));
    } catch (const Error&) {
      return false;
    }
    return true;
  }
  const Graph& graph() const { return builder_.graph; }
  const Sequences& sequences() const { return sequences_; }
  std::int64_t patches() const {
    std::int64_t n = 0;
    for (const ImageLayout& l : sequences_.images) n = checked_add(n, checked_mul(l.tiles, l.patches.count()));
    return n / std::max<std::int64_t>(sequences_.batch, 1);
  }

  /// Activations and caches, the largest of each kind.
  std::map<Key, Sized> kinds() const {
    const Graph& g = graph();
    const TensorKinds of(g);
    std::map<std::pair<const char*, ScopeId>, Sized> by_scope;
    for (std::size_t i = 0; i < g.tensors.size(); ++i) {
      const Tensor& t = g.tensors[i];
      if (t.alias_of != none || (t.role != Role::activation && t.role != Role::kv_cache)) continue;
      const LiveTensor live{static_cast<TensorId>(i), "", none, requested_bytes(t)};
      const char* made = t.name[0] != '\0' || t.born < 0 ? t.name : g.node(t.born).name;
      Sized& s = by_scope[{made, t.scope}];
      if (live.bytes > s.bytes) s = {live.tensor, live.bytes, of.of(live)};
    }
    std::map<Key, Sized> r;
    for (const auto& [at, s] : by_scope) {
      const auto path = tensor_groups::cut_path(g, at.second);
      Sized& best = r[{path.before, path.after, at.first}];
      if (s.bytes > best.bytes) best = s;
    }
    return r;
  }
  Bytes size_of(const Key& key) const {
    const auto all = kinds();
    const auto found = all.find(key);
    return found == all.end() ? Bytes{} : found->second.bytes;
  }

 private:
  const Vlm& vlm_;
  const Device& device_;
  bool training_;
  Builder builder_;
  Sequences sequences_;
};

/// The plan with its unknown set. Pictures keep their shape.
inline Plan with(Plan p, Unknown u, std::int64_t v, ImageSize native) {
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

/// Nobody runs more, and a graph of more would take seconds: searches end there. Images are counted over the batch.
constexpr std::int64_t most_images = 64, most_patches = 200'000, most_tokens = std::int64_t{1} << 21;

inline bool affordable(const Plan& p, Unknown u, std::int64_t v, std::int64_t now, std::int64_t patches) {
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

/// bytes^(1/q) at three equally distant values: the q for which it is closest to a straight line. Sizes are products of
/// lengths that are straight lines in the unknown: one (activations, logits), two (scores), and twice as many in a side
/// of a picture.
inline double root_of(double a, double b, double c) {
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

/// The smallest value above `now` with at least `low` bytes. `bytes` builds; `from` are the sizes at now, 2 now, 3 now.
template <class BytesAt>
std::optional<std::int64_t> smallest(std::int64_t now, const std::array<double, 3>& from, double low, BytesAt bytes) {
  const double q = root_of(from[0], from[1], from[2]);
  const auto line = [&](double b) { return std::pow(b, 1 / q); };
  const double slope = (line(from[2]) - line(from[0])) / (2 * static_cast<double>(now));
  if (!(slope > 0)) return std::nullopt;
  std::int64_t below = now, above = 0;
  double at_below = from[0], at_above = 0;
  double guess = static_cast<double>(now) + (line(low) - line(from[0])) / slope;
  std::int64_t step = 1;
  for (int tries = 0; tries < 14; ++tries) {
    if (!(guess < 1e12)) return std::nullopt;
    std::int64_t v = std::max(below + 1, static_cast<std::int64_t>(std::ceil(guess)));
    if (above > 0) v = std::min(v, above - 1);
    const std::optional<double> b = bytes(v);
    if (!b) return std::nullopt;
    if (*b >= low) {
      above = v;
      at_above = *b;
    } else {
      below = v;
      at_below = *b;
    }
    if (above > 0 && above - below == 1) break;
    if (above == 0) {
      guess = static_cast<double>(below + step);
      step *= 2;
    } else if (at_above > at_below && tries % 3 != 2) {
      // Just below the target first, so that the bracket closes from both sides.
      const double part = (line(low) - line(at_below)) / (line(at_above) - line(at_below));
      guess = static_cast<double>(below) + part * static_cast<double>(above - below) - 0.5;
    } else {
      guess = (static_cast<double>(below) + static_cast<double>(above)) / 2;
    }
  }
  return above > 0 ? std::optional(above) : std::nullopt;
}

}  // namespace solve

/// Which value of one unknown gives a tensor of this size, all else as planned: for each unknown and each kind of
/// tensor that agrees with the site and is not larger already, the smallest value with which it is in the interval (or
/// above it, where none is inside). Ordered by how well they fit. At most `kinds` kinds of tensors are tried for each
/// unknown, and values beyond what a graph of some milliseconds holds are not.
inline std::vector<Solution> solve_unknown(const Vlm& vlm, const Plan& plan, const Device& device, bool training,
                                           const PrintedSize& size, AllocationSite site, std::size_t kinds = 4) {
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
    if (now.bytes > size.high || now.bytes == Bytes{}) continue;
    const Tensor& t = builds.graph().tensor(now.tensor);
    const PlannedAllocation a{{now.tensor, "", none, now.bytes}, t.born, "", Moment::load, {}};
    if (site != AllocationSite::unknown && agrees(site, builds.graph(), kinds_of, a) < site_match::yes) continue;
    wanted.push_back({key, now});
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Wanted& a, const Wanted& b) { return a.now.bytes > b.now.bytes; });
  // One of each cause and type: scores, logits and activations grow differently, and many have a copy in fp32.
  const auto type_of = [&](const Wanted& w) { return builds.graph().tensor(w.now.tensor).dtype; };
  std::vector<Wanted> chosen;
  for (const Wanted& w : wanted)
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const Wanted& c) { return c.now.cause == w.now.cause && type_of(c) == type_of(w); }))
      chosen.push_back(w);
  if (chosen.size() > kinds) chosen.resize(kinds);
  const ImageSize native = builds.sequences().images.empty() ? ImageSize{} : builds.sequences().image;
  const std::int64_t text = builds.sequences().text, patches = builds.patches();
  for (const Unknown u : {Unknown::text_tokens, Unknown::batch, Unknown::images, Unknown::image_side}) {
    if (native.height == 0 && (u == Unknown::images || u == Unknown::image_side)) continue;
    const std::int64_t now = std::max<std::int64_t>(1, u == Unknown::text_tokens ? text
                                                       : u == Unknown::batch     ? plan.batch
                                                       : u == Unknown::images    ? plan.images
                                                                                 : native.height);
    if (!solve::affordable(plan, u, 3 * now, now, patches)) continue;
    std::array<std::map<solve::Key, solve::Sized>, 3> at;
    bool built = true;
    for (std::size_t i = 0; i < at.size() && built; ++i) {
      built = builds.build(solve::with(plan, u, now * static_cast<std::int64_t>(i + 1), native));
      if (built) at[i] = builds.kinds();
    }
    if (!built) continue;
    for (const Wanted& w : chosen) {
      std::array<double, 3> sizes{};
      for (std::size_t i = 0; i < at.size(); ++i)
        if (const auto found = at[i].find(w.key); found != at[i].end())
          sizes[i] = static_cast<double>(found->second.bytes.value());
      if (!(sizes[0] > 0 && sizes[2] > sizes[0])) continue;
      const auto value = solve::smallest(
          now, sizes, static_cast<double>(size.low.value()), [&](std::int64_t v) -> std::optional<double> {
            if (!solve::affordable(plan, u, v, now, patches) || !builds.build(solve::with(plan, u, v, native)))
              return std::nullopt;
            return static_cast<double>(builds.size_of(w.key).value());
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
  std::stable_sort(r.begin(), r.end(), [](const Solution& a, const Solution& b) { return a.exact && !b.exact; });
  return r;
}

}  // namespace vlmest::diagnose
