// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/graph/eager/concatenation.hpp>
#include <vlmest/graph/eager/copy.hpp>
#include <vlmest/graph/eager/gradient.hpp>

/// Operations of a process group among the ops of a model: torch.distributed's, which work in place, and those of
/// torch/distributed/_functional_collectives.py, which DTensor calls and which give a tensor of their own. Each works
/// on this rank's tensor; all `ranks` have one of its size.
namespace vlmest::eager {

/// torch.distributed.all_reduce(v): in place.
inline Value all_reduce_(Value v, int ranks) {
  Builder& b = v.builder();
  const CollectiveOp op{.kind = CollectiveKind::all_reduce, .ranks = ranks, .bytes = data_bytes(v), .dtype = v.dtype()};
  return emit_inplace(b, "allreduce_", op, {}, v);
}

/// funcol.all_reduce: on a copy in row-major order (torch/csrc/distributed/c10d/Functional.cpp, all_reduce).
inline Value all_reduce(Value v, int ranks) { return all_reduce_(clone_contiguous(std::move(v)), ranks); }

/// funcol.all_gather_tensor along the first dimension: the parts one after the other.
inline Value all_gather_first(Value v, int ranks) {
  Builder& b = v.builder();
  Shape rows = v.shape();
  rows[0] = checked_mul(rows[0], ranks);
  const DType t = v.dtype();
  const CollectiveOp op{
      .kind = CollectiveKind::all_gather, .ranks = ranks, .bytes = size_of(numel(rows), t), .dtype = t};
  return emit1(b, "all_gather_into_tensor", op, b.result(t, rows, "all_gather_into_tensor"), {}, v);
}

/// funcol.permute_tensor: all of it to one other rank, by an all-to-all whose other parts are empty.
inline Value permute_tensor(Value v, int ranks) {
  Builder& b = v.builder();
  const CollectiveOp op{.kind = CollectiveKind::send, .ranks = ranks, .bytes = data_bytes(v), .dtype = v.dtype()};
  return emit1(b, "all_to_all_single", op, b.result(v.dtype(), v.shape(), "all_to_all_single"), {}, v);
}

/// funcol.all_gather_tensor along the last dimension: the parts, then put side by side by chunk and cat, which is a
/// view where all that stands before that dimension is of size 1 (_maybe_view_chunk_cat).
inline Value all_gather_last(Value v, int ranks) {
  const Shape part = v.shape();
  Value gathered = all_gather_first(std::move(v), ranks);
  Shape whole = part;
  const int last = part.rank() - 1;
  whole[last] = checked_mul(whole[last], ranks);
  if (numel(part).value() == part[last]) return view(std::move(gathered), whole);
  std::vector<Value> parts;
  for (int i = 0; i < ranks; ++i) parts.push_back(slice(gathered, 0, i * part[0], (i + 1) * part[0]));
  gathered.reset();
  return cat(std::span<Value>(parts), last);
}

/// This rank's part of the last dimension: a copy (torch/distributed/tensor/placement_types.py,
/// Shard._replicate_to_shard).
inline Value own_part(const Value& v, int ranks) {
  const std::int64_t part = v.size(-1) / ranks;
  return clone_contiguous(slice(v, -1, 0, part));
}

/// A tensor under no history of its own: what follows is a backward that is written down here.
template <class Run>
Value redistributed(const Value& from, Value to, const char* name, Run run) {
  if (const GradEdge e = edge(from)) differentiable(to, name, {e}, std::move(run));
  return to;
}

/// What every rank has, as the input of a layer that is divided by its outputs: the same tensor, whose gradient is
/// the sum of all ranks' (torch/distributed/tensor/_api.py, DTensor.from_local: _FromTorchTensor.backward).
inline Value sum_gradient(const Value& v, int ranks) {
  if (!needs_grad(v)) return v;
  return redistributed(v, v.builder().view(v, v.shape(), v.tensor().strides), "FromTorchTensorBackward",
                       [ranks](Gradients& g) { g.out[0] = all_reduce(std::move(g.in[0]), ranks); });
}
/// The same as transformers' own autograd.Function has it, in place (distributed/tensor_parallel.py,
/// _AllReduceBackward).
inline Value sum_gradient_in_place(const Value& v, int ranks) {
  if (!needs_grad(v)) return v;
  return redistributed(v, v.builder().view(v, v.shape(), v.tensor().strides), "_AllReduceBackwardBackward",
                       [ranks](Gradients& g) { g.out[0] = all_reduce_(contiguous(std::move(g.in[0])), ranks); });
}
/// The sum of all ranks' tensors, whose gradient each rank has whole (torch/distributed/tensor/_redistribute.py,
/// Redistribute.backward: from replicate to partial nothing is done).
inline Value sum_of_ranks(Value v, int ranks) {
  const GradEdge e = edge(v);
  Value y = all_reduce(detached(v), ranks);
  v.reset();
  if (e) differentiable(y, "RedistributeBackward", {e}, [](Gradients& g) { g.out[0] = std::move(g.in[0]); });
  return y;
}
/// All ranks' parts of the last dimension; of the gradient each rank takes its own.
inline Value gather_of_ranks(Value v, int ranks) {
  const GradEdge e = edge(v);
  Value y = all_gather_last(detached(v), ranks);
  v.reset();
  if (e) differentiable(y, "RedistributeBackward", {e}, [ranks](Gradients& g) { g.out[0] = own_part(g.in[0], ranks); });
  return y;
}
/// This rank's part of the last dimension of what every rank has; the gradient is gathered.
inline Value split_to_ranks(const Value& v, int ranks) {
  const GradEdge e = edge(v);
  Value y = own_part(detached(v), ranks);
  if (e)
    differentiable(y, "RedistributeBackward", {e},
                   [ranks](Gradients& g) { g.out[0] = all_gather_last(contiguous(std::move(g.in[0])), ranks); });
  return y;
}

}  // namespace vlmest::eager
