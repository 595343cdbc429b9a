// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/norm.hpp>
#include <vlmest/tensor/tensor.hpp>
#include <vlmest/unit/call_ref.hpp>
#include <vlmest/unit/required.hpp>

namespace vlmest {

class Value;
struct AttentionArgs;
struct Attended;
struct Context;
struct GatedMlp;
struct Moe;
struct Routing;

/// A stack that leaves one out does not compile.
template <class F>
using Word = Required<F*>;

/// What stacks compute each in its own way: the functions behind the words that blocks call (kernels.hpp, mlp.hpp,
/// attention.hpp and experts.hpp say what each one means). A CallRef runs what the model's own Python writes out; a
/// stack with a kernel for it does not call it.
struct StackWords {
  Word<Value(Context&, Norm::Kind, Value& x, Value& weight, CallRef<Value> module)> norm;
  Word<void(Context&, Value& q, Value& k, const Value& cos, const Value& sin, CallRef<void> module)> rotate;
  Word<Value(Context&, const Value& first, const Value& second, CallRef<Value> module)> join_channels;
  Word<Value(Context&, const Value& x)> quick_gelu;
  Word<Value(Context&, const Value& x)> gelu_new;
  Word<Value(Context&, const Value& x, const Value& y)> add_scaled;
  Word<Value(Context&, TensorId gate, Value x)> tanh_gate;
  Word<Value(Context&, const GatedMlp&, const Value& x)> gated_mlp;
  Word<Attended(Context&, const AttentionArgs&)> attend;
  Word<Attended(Context&, const AttentionArgs&, const Value& sinks)> attend_with_sinks;
  Word<Routing(Context&, CallRef<Routing> module)> route;
  Word<Value(Context&, const Moe&, const Value& x, const Routing&)> experts;
};

}  // namespace vlmest
