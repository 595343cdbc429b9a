// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/graph/eager/gradient.hpp>
#include <vlmest/op/elementwise.hpp>
#include <vlmest/op/rope.hpp>

/// Kernels of an idealised stack, with what each saves for its backward: as Liger-Kernel 0.8.2 does (Hsu et al.,
/// arXiv:2410.10989; src/liger_kernel/ops), where it has the kernel. A backward writes over what nothing else needs.
namespace vlmest::eager {

/// True where v is the only hold on its storage: a kernel may write its result there.
inline bool writable(const Value& v) { return is_contiguous(v) && v.builder().references(v.id()) == 1; }

/// Where a backward writes a gradient of v's shape and type: over v, or into a fresh tensor.
inline Value over(const Value& v, bool in_place, const char* name) {
  Builder& b = v.builder();
  return in_place ? v : Value(b, b.result(v.dtype(), v.shape(), strides_like(v.tensor(), v.shape()), name));
}

/// The gradient of a parameter of this shape out of partial sums in fp32, one for each multiprocessor (rms_norm.py,
/// rms_norm_backward: _dW.sum(dim=0).to(W.dtype)).
inline Value from_partial_sums(Value partial, Shape shape, DType t) {
  const ReductionScratch split = reduction_scratch(partial.tensor(), 0, 4, partial.builder().gpu);
  Shape one = partial.shape();
  one.erase(0);
  return to(view(reduce("sum.dim_IntList", DType::fp32, one, std::move(partial), {}, 1, split), shape), t);
}

/// RMS norm over the last dimension (rms_norm.py): saves x, the weight and 1 / rms of each row; the gradient of x is
/// written over the incoming one. Layer norm without a bias: the mean of each row too (layer_norm.py).
inline Value fused_norm(Norm::Kind kind, Value x, Value weight) {
  Builder& b = x.builder();
  const bool layer = kind == Norm::Kind::layer_norm;
  const std::int64_t width = x.size(-1), rows = numel(x.shape()).value() / width;
  const DType t = x.dtype();
  const Norm op{.kind = kind, .rows = rows, .width = width, .dtype = t, .parameters = weight ? 1 : 0, .fused = true};
  const GradEdge ex = edge(x), ew = edge(weight);
  const bool trains = ex || ew;
  const char* name = layer ? "layer_norm" : "rms_norm";
  const std::array<TensorId, 3> outs{b.result(t, x.shape(), name),
                                     trains ? b.result(DType::fp32, {rows}, "rstd") : none,
                                     trains && layer ? b.result(DType::fp32, {rows}, "mean") : none};
  const std::array<TensorId, 2> ins{x.id(), weight ? weight.id() : none};
  b.emit(name, op, ins, std::span(outs).first(trains ? layer ? 3 : 2 : 1));
  Value y(b, outs[0]);
  if (!trains) return y;
  Value rstd(b, outs[1]), mean = layer ? Value(b, outs[2]) : Value();
  differentiable(
      y, layer ? "LigerLayerNormFunctionBackward" : "LigerRMSNormFunctionBackward", {ex, ew},
      [layer, sx = saved(x, true), sw = saved(weight, true), sr = saved(rstd, true),
       sm = saved(mean, true)](Gradients& g) {
        Builder& at = sx.builder();
        const DType u = sx.dtype();
        const std::int64_t n = sw ? numel(sw.shape()).value() : 0;
        g.in[0] = contiguous(std::move(g.in[0]));
        const Value dx = over(g.in[0], !layer && writable(g.in[0]), "input gradient");
        const TensorId sums =
            sw ? at.result(DType::fp32, {at.gpu.multiprocessors, n}, "partial weight gradients") : none;
        const std::array<TensorId, 5> from{g.in[0].id(), sx.id(), sr.id(), sm ? sm.id() : none, sw ? sw.id() : none};
        const std::array<TensorId, 2> into{dx.id(), sums};
        const Bytes whole = data_bytes(sx);
        const Bytes partial = sw ? size_of(Elements(checked_mul(at.gpu.multiprocessors, n)), DType::fp32) : Bytes{};
        at.emit(layer ? "layer_norm_backward" : "rms_norm_backward",
                MemoryOp{.read = whole * 2, .written = whole + partial, .dtype = u}, from,
                std::span(into).first(sw ? 2 : 1));
        if (g.wants(0)) g.out[0] = dx;
        if (sw) {
          Value weight_gradient = from_partial_sums(Value(at, sums), sw.shape(), sw.dtype());
          if (g.wants(1)) g.out[1] = std::move(weight_gradient);
        }
      });
  return y;
}

/// What act(gate) * up moves, whatever the activation.
constexpr MemoryOp gate_op(const Shape& s, DType t) {
  return memory_op(Elementwise{.kind = Elementwise::Kind::silu_mul, .elements = numel(s).value(), .dtype = t});
}

/// act(gate) * up in one kernel (swiglu.py, geglu.py): saves both and computes the activation again; the gradients are
/// written over them.
inline Value fused_gate(Value gate, Value up) {
  Builder& b = gate.builder();
  const DType t = gate.dtype();
  const Bytes n = data_bytes(gate);
  const GradEdge eg = edge(gate), eu = edge(up);
  const bool trains = eg || eu;
  const Value sg = saved(gate, trains), su = saved(up, trains);
  const TensorId out = b.result(t, gate.shape(), "act_mul");
  Value r = emit1(b, "act_mul", gate_op(gate.shape(), t), out, {}, gate, up);
  differentiable(r, "LigerSiLUMulFunctionBackward", {eg, eu}, [sg, su, n, t](Gradients& g) {
    Builder& at = sg.builder();
    g.in[0] = contiguous(std::move(g.in[0]));
    const Value dg = over(sg, writable(sg), "gate gradient");
    const Value du = over(su, writable(su), "up gradient");
    const std::array<TensorId, 3> from{g.in[0].id(), sg.id(), su.id()};
    const std::array<TensorId, 2> into{dg.id(), du.id()};
    at.emit("act_mul_backward", MemoryOp{.read = n * 3, .written = n * 2, .dtype = t}, from, into);
    if (g.wants(0)) g.out[0] = dg;
    if (g.wants(1)) g.out[1] = du;
  });
  return r;
}
/// The same over the halves of one tensor's last dimension (swiglu.py, LigerFusedGateUpSiLUMulFunction): saves it; its
/// gradient is a fresh tensor.
inline Value fused_gate(Value both) {
  Builder& b = both.builder();
  const DType t = both.dtype();
  Shape s = both.shape();
  s[s.rank() - 1] /= 2;
  const Bytes n = size_of(numel(s), t);
  const GradEdge e = edge(both);
  const Value kept = saved(both, static_cast<bool>(e));
  const TensorId out = b.result(t, s, "act_mul");
  Value r = emit1(b, "act_mul", gate_op(s, t), out, {}, both);
  differentiable(r, "LigerFusedGateUpSiLUMulFunctionBackward", {e}, [kept, n, t](Gradients& g) {
    Builder& at = kept.builder();
    g.in[0] = contiguous(std::move(g.in[0]));
    const std::array<TensorId, 2> from{g.in[0].id(), kept.id()};
    const std::array<TensorId, 1> into{at.result(t, kept.shape(), "gate and up gradient")};
    at.emit("act_mul_backward", MemoryOp{.read = n * 3, .written = n * 2, .dtype = t}, from, into);
    g.out[0] = Value(at, into[0]);
  });
  return r;
}

/// Rotation of q and k in place by one kernel (rope.py): saves cos and sin alone; the gradients are turned back in
/// place.
inline void fused_rotate(const Value& q, const Value& k, const Value& cos, const Value& sin) {
  Builder& b = q.builder();
  const Bytes angles = data_bytes(cos) * 2;
  // One row of angles turns all heads of its token, and those of all sequences that share it.
  const std::int64_t rows = numel(cos.shape()).value() / cos.size(-1), width = q.size(-1);
  const RotaryEmbedding op{.rows = rows,
                           .heads = numel(q.shape()).value() / width / rows,
                           .kv_heads = numel(k.shape()).value() / width / rows,
                           .head_dim = width,
                           .rotary_dim = cos.size(-1),
                           .dtype = q.dtype(),
                           .angles = cos.dtype()};
  const GradEdge eq = edge(q), ek = edge(k);
  const std::array<TensorId, 4> ids{q.id(), k.id(), cos.id(), sin.id()};
  const std::array<TensorId, 2> outs{q.id(), k.id()};
  b.emit("rope", memory_op(op), ids, outs);
  if (!eq && !ek) return;
  const std::array<Value, 2> rotated{q, k};
  b.differentiable(
      {.name = "LigerRopeFunctionBackward",
       .inputs = {eq, ek},
       .run =
           [c = saved(cos, true), s = saved(sin, true), angles](Gradients& g) {
             std::vector<TensorId> from{c.id(), s.id()}, into;
             Bytes moved{};
             for (std::size_t i = 0; i < 2; ++i) {
               if (!g.in[i]) continue;
               const Tensor& t = g.in[i].tensor();
               const bool dense = strides_like(t, t.shape) == t.strides;
               g.out[i] = over(g.in[i], dense && c.builder().references(g.in[i].id()) == 1, "turned gradient");
               from.push_back(g.in[i].id());
               into.push_back(g.out[i].id());
               moved += data_bytes(g.in[i]);
             }
             c.builder().emit("rope_backward", MemoryOp{.read = moved + angles, .written = moved, .dtype = c.dtype()},
                              from, into);
           }},
      rotated);
}

/// One kernel over operands that broadcast to the first one's shape: x plus a scaled operand, or x times a gate.
/// `passes`: the gradient of x is the incoming one. All operands but such an x are saved. Gradients of vectors and
/// numbers are summed up from partial sums, those of larger operands are written at full size and then summed.
template <class... In>
Value fused_scale(const char* name, bool passes, Value x, In... rest) {
  const std::array<GradEdge, sizeof...(In) + 1> edges{edge(x), edge(rest)...};
  const bool trains = std::any_of(edges.begin(), edges.end(), [](const GradEdge& e) { return static_cast<bool>(e); });
  const Shape whole = x.shape();
  const DType t = x.dtype();
  std::vector<Value> kept{saved(x, trains && !passes), saved(rest, trains)...};
  Value r = pointwise(name, t, std::move(x), std::move(rest)...);
  if (!trains) return r;
  const auto run = [kept = std::move(kept), passes, whole, t](Gradients& g) {
    Builder& b = g.in[0].builder();
    std::vector<TensorId> from{g.in[0].id()}, into;
    Bytes read = data_bytes(g.in[0]), written{};
    for (const Value& v : kept)
      if (v) {
        from.push_back(v.id());
        read += data_bytes(v);
      }
    std::vector<Value> made(kept.size());
    for (std::size_t i = passes ? 1 : 0; i < kept.size(); ++i) {
      if (!g.wants(i)) continue;
      const std::int64_t n = numel(kept[i].shape()).value();
      const bool summed = n <= whole[-1];
      const TensorId id = summed ? b.result(DType::fp32, {b.gpu.multiprocessors, n}, "partial gradients")
                                 : b.result(t, whole, "operand gradient");
      made[i] = Value(b, id);
      into.push_back(id);
      written += data_bytes(made[i]);
    }
    if (!into.empty()) b.emit("scale_backward", MemoryOp{.read = read, .written = written, .dtype = t}, from, into);
    if (passes && g.wants(0)) g.out[0] = g.in[0];
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!made[i]) continue;
      const bool summed = numel(kept[i].shape()).value() <= whole[-1];
      g.out[i] = summed ? from_partial_sums(std::move(made[i]), kept[i].shape(), kept[i].dtype()) : std::move(made[i]);
    }
  };
  r.builder().differentiable({.name = "FusedScaleBackward", .inputs = {edges.begin(), edges.end()}, .run = run},
                             std::span<const Value>(&r, 1));
  return r;
}

}  // namespace vlmest::eager
