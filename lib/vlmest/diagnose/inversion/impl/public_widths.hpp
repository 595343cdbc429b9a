// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/diagnose/inversion/public_widths.hpp>
#include <vlmest/tensor/dtype.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace public_width {

/// Names round: "7B" has 6.7 billion parameters or 8.5.
inline bool may_be(const PublicWidths& w, double parameters) {
  return w.billions == 0 || parameters <= 0 || (parameters >= 0.8e9 * w.billions && parameters <= 1.25e9 * w.billions);
}
inline bool rounds_to(const PublicWidths& w, double parameters) {
  return w.billions > 0 && std::abs(w.billions * 1e9 - parameters) < 0.5e9;
}

/// A kind of weight with its two dimensions.
struct Widths {
  std::string_view kind;
  std::int64_t rows = 0, columns = 0;
};

inline std::array<Widths, 4> widths_of(const PublicWidths& w) {
  return {{{"MLP weight", w.intermediate, w.hidden},
           {"embedding or head", w.vocabulary, w.hidden},
           {"merged gate and up projections", 2 * w.intermediate, w.hidden},
           {"projection of attention", w.hidden, w.hidden}}};
}

}  // namespace public_width

VLMEST_INLINE std::vector<DescribedTensor> weights_of_size(const PrintedSize& size, Cause cause,
                                                           const ToldModel& told) {
  std::vector<DescribedTensor> r;
  const auto add_of = [&](DType type, bool (*counts)(const PublicWidths&, double)) {
    for (const PublicWidths& w : public_widths)
      for (const public_width::Widths& of : public_width::widths_of(w)) {
        // Engines merge projections when they load them; trainings mostly keep them apart.
        if (cause != Cause::weights && of.rows == 2 * w.intermediate) continue;
        const Bytes bytes = size_of(Elements(of.rows * of.columns), type);
        if (!counts(w, told.parameters) || !size.holds(bytes)) continue;
        const Shape shape{of.rows, of.columns};
        if (std::any_of(r.begin(), r.end(), [&](const DescribedTensor& x) { return x.shape == shape; })) continue;
        r.push_back({.name = std::string(of.kind) + " of " + std::string(w.model),
                     .scope = {},
                     .role = Role::weight,
                     .shape = shape,
                     .dtype = std::string(name(type)),
                     .bytes = bytes});
      }
  };
  // A name is of the model that rounds to it, where one does.
  const auto add = [&](DType type) {
    const std::size_t before = r.size();
    add_of(type, public_width::rounds_to);
    if (r.size() == before) add_of(type, public_width::may_be);
  };
  if (told.eight_bits && cause == Cause::weights) add(DType::int8);
  if (r.empty()) add(DType::bf16);
  if (r.empty() || cause != Cause::weights) add(DType::fp32);
  if (r.empty()) add(DType::int8);
  return r;
}

}  // namespace vlmest::diagnose
