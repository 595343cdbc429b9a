// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <vlmest/graph/value.hpp>

namespace vlmest {

/// Where the gradient of a tensor flows to: the recorded call that made it, or a parameter that collects it. Shape and
/// type are the tensor's, to which a gradient is summed and cast before it is handed on.
struct GradEdge {
  std::int32_t call = none;  ///< none: nowhere
  std::int32_t output = 0;   ///< which result of that call
  TensorId parameter = none;
  Shape shape;
  DType dtype = DType::bf16;
  explicit operator bool() const { return call != none || parameter != none; }
};

/// One call of a backward function: gradients of the results come in (an empty Value where none flows), gradients of
/// the inputs go out.
struct Gradients {
  std::vector<Value> in;
  std::vector<Value> out;
  std::vector<bool> wanted;
  bool wants(std::size_t i) const { return wanted[i]; }
};

/// A differentiable call of the forward pass, with what it saved captured in `run` (torch autograd's Node).
struct GradCall {
  const char* name = "";
  ScopeId scope = 0;
  std::int32_t outputs = 1;
  std::int32_t holders = 0;  ///< results and later calls that need it
  std::vector<GradEdge> inputs;
  std::function<void(Gradients&)> run;
};

}  // namespace vlmest
