// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma4.py, Gemma4ClippableLinear: a linear whose inputs and results are held between
/// bounds that the checkpoint stores, or a plain one.
struct ClippedLinear {
  ScopeId scope = 0;
  Linear linear;
  TensorId input_min = none, input_max = none, output_min = none, output_max = none;  ///< none: it does not clip
};

inline ClippedLinear make_clipped_linear(Context& c, const char* name, std::int64_t in, std::int64_t out, bool clips) {
  Module m(c, name);
  ClippedLinear r{.scope = m.scope};
  r.linear = make_linear(c, "linear", in, out, false);
  if (!clips) return r;
  const auto bound = [&](const char* key) { return buffer(c, key, Shape{}, c.dtype()); };
  r.input_min = bound("input_min");
  r.input_max = bound("input_max");
  r.output_min = bound("output_min");
  r.output_max = bound("output_max");
  return r;
}

inline Value forward(Context& c, const ClippedLinear& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = arg;
  if (l.input_min != none) x = eager::clamp(x, Value(c.b, l.input_min), Value(c.b, l.input_max));
  x = forward(c, l.linear, x);
  if (l.output_min != none) x = eager::clamp(x, Value(c.b, l.output_min), Value(c.b, l.output_max));
  return x;
}

}  // namespace vlmest
