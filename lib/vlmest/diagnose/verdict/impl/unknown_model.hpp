// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <string>
#include <vector>

#include <vlmest/diagnose/evidence/text/words.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/diagnose/verdict/unknown_model.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace unknown_model {

inline void add(std::vector<RowWidth>& all, std::int64_t elements, const std::string& model) {
  if (elements < 1) return;
  const auto same = std::find_if(all.begin(), all.end(), [&](const RowWidth& w) { return w.elements == elements; });
  if (same == all.end())
    all.push_back({elements, {model}});
  else
    same->models.push_back(model);
}

/// A number of rows that has the size.
struct RowFit {
  const RowWidth* of = nullptr;
  int element = 2;  ///< bytes
  std::int64_t rows = 0;
  Bytes bytes() const { return Bytes(rows * of->elements * element); }
};

/// The power of two of rows, from 512 on, that has the size, for each width and type.
inline std::vector<RowFit> fits(const std::vector<RowWidth>& all, const PrintedSize& size,
                                std::initializer_list<int> elements) {
  std::vector<RowFit> r;
  for (const RowWidth& w : all)
    for (const int element : elements) {
      const std::int64_t most = size.high.value() / (w.elements * element);
      if (most < 512) continue;
      const RowFit fit{&w, element, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)))};
      if (size.holds(fit.bytes())) r.push_back(fit);
    }
  return r;
}

inline std::string of_models(const RowWidth& w) {
  std::string r = w.models.front();
  if (w.models.size() > 1) r += " and " + std::to_string(w.models.size() - 1) + " more";
  return r;
}

inline std::string words(const RowFit& fit, const char* width) {
  using score_matrix::number;
  return number(fit.rows) + " x " + number(fit.of->elements) + " (" + width + of_models(*fit.of) + ") x " +
         std::to_string(fit.element) + " bytes = " + in_words(fit.bytes());
}

inline std::string list(const std::vector<RowFit>& all, const char* width) {
  std::string r;
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 3); ++i)
    r += (i > 0 ? ", or " : "") + words(all[i], width);
  if (all.size() > 3) r += ", and " + std::to_string(all.size() - 3) + " more";
  return r;
}

}  // namespace unknown_model

VLMEST_INLINE PublicRows public_rows(const std::vector<const Vlm*>& models, const Device& device) {
  PublicRows r;
  for (const Vlm* vlm : models) try {
      solve::Builds builds(*vlm, device, false);
      if (!builds.build(solve::short_prompt(*vlm), true)) continue;
      std::int64_t vocabulary = 0, cache = 0;
      for (const auto& [key, sized] : builds.kinds()) {
        const Shape& s = builds.graph().tensor(sized.tensor).shape;
        if (sized.cause == Cause::logits && s.rank() > 0) vocabulary = std::max(vocabulary, s[-1]);
        if (sized.cause == Cause::kv_cache && s.rank() == 4) cache = std::max(cache, s[1] * s[3]);
      }
      unknown_model::add(r.vocabularies, vocabulary, vlm->name);
      unknown_model::add(r.caches, cache, vlm->name);
    } catch (const Error&) {
      continue;  // a model that does not run as it is given
    }
  // What most models have comes first.
  for (auto* all : {&r.vocabularies, &r.caches})
    sort_stably(*all, [](const RowWidth& a, const RowWidth& b) { return a.models.size() > b.models.size(); });
  return r;
}

VLMEST_INLINE bool may_name_rows(const Verdict& v, const Failure& f) {
  if (v.tensor || f.made || f.foreign || f.outside || f.program || f.whole_graph || !f.tensor || !f.telling)
    return false;
  return v.cause == Cause::logits || v.cause == Cause::kv_cache;
}

VLMEST_INLINE void name_by_public_rows(Verdict& v, const Failure& f, const PublicRows& rows) {
  using namespace unknown_model;
  if (!may_name_rows(v, f)) return;
  if (v.cause == Cause::kv_cache) {
    // Keys and values of one layer, each by itself or both together: their rows are powers of two themselves.
    const std::vector<RowFit> all = fits(rows.caches, *f.tensor, {2, 4});
    if (!all.empty())
      v.why +=
          " As keys or values of one layer it would be tokens x heads and their width x bytes: " + list(all, "as of ") +
          (all.size() > 1 ? ". Each of these has the size, so that it tells none of them." : ".");
    return;
  }
  const std::vector<RowFit> all = fits(rows.vocabularies, *f.tensor, {4, 2});
  if (all.empty()) return;
  // Of one vocabulary twice as many rows in half the bytes fit as well: that is still one.
  const bool alone = std::all_of(all.begin(), all.end(), [&](const RowFit& x) { return x.of == all.front().of; });
  v.why += " As logits of all tokens it would be tokens x vocabulary x bytes, " + list(all, "the vocabulary of ");
  v.why += alone ? ". No other public vocabulary has a round number of rows of that size."
                 : ". Several fit, so that the size tells none of them.";
  if (!alone) return;
  const RowFit& fit = all.front();
  v.tensor = DescribedTensor{.name = fit.element == 4 ? "logits in fp32" : "logits",
                             .scope = {},
                             .role = Role::activation,
                             .shape = {fit.rows, fit.of->elements},
                             .dtype = fit.element == 4 ? "fp32" : "bf16",
                             .bytes = fit.bytes()};
}

}  // namespace vlmest::diagnose
