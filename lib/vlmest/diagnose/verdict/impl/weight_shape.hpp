// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <vlmest/analysis/params.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/verdict/weight_shape.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace weight_shape {

VLMEST_INLINE std::vector<DescribedTensor> of_size(const Graph& g, const PrintedSize& size) {
  std::vector<DescribedTensor> r;
  for (const Tensor& t : g.tensors) {
    if (t.role != Role::weight || t.alias_of != none || t.shape.rank() < 2) continue;
    std::int64_t elements = 1;
    for (const std::int64_t n : t.shape) elements *= n;
    for (const DType type : {DType::bf16, DType::fp32})
      if (const Bytes bytes = size_of(Elements(elements), type); size.holds(bytes))
        if (std::none_of(r.begin(), r.end(), [&](const DescribedTensor& x) { return x.shape == t.shape; }))
          r.push_back({.name = "weight",
                       .scope = path(g, t.scope),
                       .role = Role::weight,
                       .shape = t.shape,
                       .dtype = std::string(name(type)),
                       .bytes = bytes});
  }
  return r;
}

VLMEST_INLINE DescribedTensor in_shape_of(DescribedTensor weight, Cause c) {
  if (c == Cause::optimizer_state) {
    weight.name = "an optimizer's state or temporary of a weight";
    weight.role = Role::optimizer_state;
  } else if (c == Cause::gradients) {
    weight.name = "gradient of a weight";
    weight.role = Role::gradient;
  }
  return weight;
}

/// A shape, and the models that have it.
struct SharedShape {
  DescribedTensor tensor;
  std::vector<std::string> models;
};

}  // namespace weight_shape

VLMEST_INLINE void name_weight(Verdict& v, const Failure& f, const std::vector<const Vlm*>& models,
                               const Device& device, double parameters_told) {
  using namespace weight_shape;
  if (v.tensor || !of_parameters(v.cause) || !f.tensor || !f.telling || f.foreign) return;
  std::vector<SharedShape> all;
  for (const Vlm* vlm : models) try {
      solve::Builds builds(*vlm, device, false);
      if (!builds.build(solve::short_prompt(*vlm))) continue;
      // A name rounds, and leaves out the tower.
      const auto size = static_cast<double>(parameters(builds.graph()).total().value());
      if (parameters_told > 0 && (size < 0.8 * parameters_told || size > 1.4 * parameters_told)) continue;
      for (DescribedTensor& t : of_size(builds.graph(), *f.tensor)) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const SharedShape& c) {
          const Shape& s = c.tensor.shape;
          // A layer's up and down projections have the same two widths.
          return s == t.shape || (s.rank() == 2 && t.shape.rank() == 2 && s[0] == t.shape[1] && s[1] == t.shape[0]);
        });
        if (same == all.end())
          all.push_back({std::move(t), {vlm->name}});
        else if (same->models.back() != vlm->name)
          same->models.push_back(vlm->name);
      }
    } catch (const Error&) {
      continue;  // a model that does not run as it is given
    }
  // Few run in fp32: only where no weight in 16 bits has the size.
  const bool short_types = std::any_of(all.begin(), all.end(), [](const auto& c) { return c.tensor.dtype == "bf16"; });
  if (short_types) std::erase_if(all, [](const SharedShape& c) { return c.tensor.dtype != "bf16"; });
  // What one model alone has may as well be of another one that is not among them.
  if (all.size() != 1 || all.front().models.size() < 2) return;
  const SharedShape& c = all.front();
  // Many weights of models that are not among these lie within the 2 MiB of a figure: without a size of the model it is
  // no more than a possibility.
  const bool told = parameters_told > 0;
  if (told) {
    v.tensor = in_shape_of(c.tensor, v.cause);
    v.tensor->scope.clear();
  }
  const auto billions = std::to_string(static_cast<std::int64_t>(std::llround(parameters_told / 1e9)));
  v.why += std::string(told ? " Of" : " It may be one of these: of") + " the weights of " +
           std::to_string(models.size()) + " models" +
           (told ? ", those with about " + billions + " billion parameters asked, only those" : ", those") + " of " +
           to_string(c.tensor.shape) + " in " + c.tensor.dtype + ", or transposed, have that size: " + c.tensor.scope +
           " of " + c.models.front() + " and of " + std::to_string(c.models.size() - 1) + " with the same layers.";
}

}  // namespace vlmest::diagnose
