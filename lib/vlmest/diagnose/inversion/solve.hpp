// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/text/printed_size.hpp>
#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/diagnose/inversion/solution.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/tensor_groups.hpp>
#include <vlmest/transform/training_step.hpp>

namespace vlmest::diagnose {

namespace solve {

/// A kind of tensor: the largest of its name in modules that differ by their layer alone.
using Key = std::tuple<std::string, std::string, std::string>;

struct Sized {
  TensorId tensor = none;
  Bytes bytes{};
  Cause cause = Cause::unknown;
};

/// A short prompt with one picture, for what does not depend on lengths: heads, weights, the vocabulary.
inline Plan short_prompt(const Vlm& vlm) {
  Plan plan;
  plan.images = takes_images(vlm) ? 1 : 0;
  plan.text = 64;
  return plan;
}

/// Graphs of one model under changing plans.
class Builds {
 public:
  Builds(const Vlm& vlm, const Device& device, bool training) : vlm_(vlm), device_(device), training_(training) {}

  /// Builds a plan; false where the model refuses it. `sizes_alone`: with no more than three layers of those that run
  /// alike, where nothing but their tensors' sizes is asked for. Three, because the gradients of what several layers
  /// read are added up: the second one to a fresh tensor, the third in place.
  bool build(Plan plan, bool sizes_alone = false) {
    builder_.most_copies = sizes_alone ? 2 : INT32_MAX;
    try {
      sequences_ = make_sequences(vlm_, plan);
      builder_.clear();
      builder_.gpu = gpu_of(device_);
      Context c{builder_, plan, stack_of(plan)};
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
    for (const auto* all : {&sequences_.images, &sequences_.videos})
      for (const ImageLayout& l : *all)
        n = checked_add(n, checked_mul(checked_mul(l.tiles, l.frames), l.patches.count()));
    return n / std::max<std::int64_t>(sequences_.batch, 1);
  }

  /// Activations and caches, the largest of each kind.
  std::map<Key, Sized> kinds() const {
    const Graph& g = graph();
    const TensorKinds of(g);
    std::map<std::pair<const char*, ScopeId>, Sized> by_scope;
    for (std::size_t i = 0; i < g.tensors.size(); ++i) {
      const Tensor& t = g.tensors[i];
      if (!is_counted(t)) continue;
      const LiveTensor live{static_cast<TensorId>(i), "", none, requested_bytes(t)};
      if (live.bytes == Bytes{}) continue;
      Sized& s = by_scope[{made_by(g, t), t.scope}];
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
  /// The largest of one kind.
  Bytes size_of(const Key& key) const {
    const Graph& g = graph();
    const auto& [before, after, name] = key;
    Bytes most{};
    for (const Tensor& t : g.tensors) {
      if (!is_counted(t)) continue;
      const Bytes n = requested_bytes(t);
      if (n <= most || name != made_by(g, t)) continue;
      const auto path = tensor_groups::cut_path(g, t.scope);
      if (path.before == before && path.after == after) most = n;
    }
    return most;
  }

 private:
  static bool is_counted(const Tensor& t) {
    return t.alias_of == none && (t.role == Role::activation || t.role == Role::kv_cache);
  }
  /// Its name, or that of the op that makes it.
  static const char* made_by(const Graph& g, const Tensor& t) {
    return t.name[0] != '\0' || t.born < 0 ? t.name : g.node(t.born).name;
  }

  const Vlm& vlm_;
  const Device& device_;
  bool training_;
  Builder builder_;
  Sequences sequences_;
};

/// The plan with its unknown set. Pictures keep their shape.
Plan with(Plan p, Unknown u, std::int64_t v, ImageSize native);

/// Nobody runs more, and a graph of more would take seconds: searches end there. Images are counted over the batch.
constexpr std::int64_t most_images = 64, most_patches = 200'000, most_tokens = std::int64_t{1} << 21;

bool affordable(const Plan& p, Unknown u, std::int64_t v, std::int64_t now, std::int64_t patches);

/// bytes^(1/q) at three equally distant values: the q for which it is closest to a straight line. Sizes are products of
/// lengths that are straight lines in the unknown: one (activations, logits), two (scores), and twice as many in a side
/// of a picture.
double root_of(double a, double b, double c);

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
std::vector<Solution> solve_unknown(const Vlm& vlm, const Plan& plan, const Device& device, bool training,
                                    const PrintedSize& size, AllocationSite site, std::size_t kinds = 4);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/solve.hpp>
#endif
