// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <vlmest/diagnose/evidence/cause.hpp>
#include <vlmest/diagnose/inversion/solve.hpp>
#include <vlmest/unit/units.hpp>

/// Sizes of tensors as products of a run's inputs: what a kind of tensor grows with is seen in a few runs of a model,
/// so that other inputs are arithmetic.
namespace vlmest::diagnose::together {

/// The numbers that sizes of tensors are products of.
struct Inputs {
  std::int64_t batch = 1, seq = 0, images = 0, patches = 0;  ///< patches: of one sequence
};

/// What a tensor's size grows with: of pairs, those of all patches of a batch, of each picture's own, and of one
/// picture where a tower attends to one after the other.
enum class Form : std::uint8_t { tokens, token_pairs, patches, patch_pairs, patch_pairs_of_each, patch_pairs_of_one };
inline constexpr std::array forms{Form::tokens,      Form::token_pairs,         Form::patches,
                                  Form::patch_pairs, Form::patch_pairs_of_each, Form::patch_pairs_of_one};
constexpr bool of_language(Form f) { return f == Form::tokens || f == Form::token_pairs; }

inline double amount(Form f, const Inputs& in) {
  const auto b = static_cast<double>(in.batch), s = static_cast<double>(in.seq), p = static_cast<double>(in.patches);
  switch (f) {
    case Form::tokens: return b * s;
    case Form::token_pairs: return b * s * s;
    case Form::patches: return b * p;
    case Form::patch_pairs: return b * p * b * p;
    case Form::patch_pairs_of_each: return in.images > 0 ? b * p * p / static_cast<double>(in.images) : 0;
    case Form::patch_pairs_of_one: {
      const double one = in.images > 0 ? p / static_cast<double>(in.images) : 0;
      return one * one;
    }
  }
  return 0;
}

/// A kind of tensor that is `each` bytes times an amount.
struct Product {
  solve::Key key;
  Cause cause = Cause::unknown;
  Form form = Form::tokens;
  double each = 0;
  double plausibility = 1;
};

/// The amount of which the sizes at all points are the same multiple; nothing where none is, or where it stays.
inline std::optional<Form> form_of(const std::vector<std::pair<Inputs, Bytes>>& at) {
  for (const Form f : forms) {
    const double x = amount(f, at.front().first), size = static_cast<double>(at.front().second.value());
    bool varies = false;
    const bool same = x > 0 && std::all_of(at.begin(), at.end(), [&](const auto& p) {
                        const double here = amount(f, p.first);
                        varies = varies || here != x;
                        return static_cast<double>(p.second.value()) * x == size * here;
                      });
    if (same && varies) return f;
  }
  return std::nullopt;
}

}  // namespace vlmest::diagnose::together
