// SPDX-License-Identifier: Apache-2.0
#include <kernels/attention/cudnn.hpp>

#if defined(VLMEST_HAVE_CUDNN)

#include <limits>

#include <kernels/attention/cudnn_graph.hpp>

namespace vlmest::kernels {

using attention::CudnnAttentionGraph;
using attention::CudnnDescriptor;
using cuda::check;

namespace {

class CudnnHandle {
 public:
  CudnnHandle() { check(cudnnCreate(&handle_)); }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle() { static_cast<void>(cudnnDestroy(handle_)); }
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

/// The plan of the first engine that the heuristic offers and that can be built.
CudnnDescriptor first_plan(cudnnHandle_t handle, const CudnnDescriptor& graph) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A)
      .finalise();
  std::int64_t offered = 0;
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                 &offered, nullptr));
  std::vector<CudnnDescriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> addresses;
  for (std::int64_t i = 0; i < offered; ++i)
    addresses.push_back(configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t given = 0;
  if (offered > 0)
    check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   offered, &given, addresses.data()));
  std::string reason;
  for (std::int64_t i = 0; i < given; ++i) {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[static_cast<std::size_t>(i)]);
    try {
      plan.finalise();
      return plan;
    } catch (const Error& e) {
      reason = ": " + e.what_happened;
    }
  }
  throw Error("attention/cudnn", "no engine of cuDNN does this attention" + reason,
              "head sizes are multiples of 8 up to 256, and causal queries no more than the keys");
}

}  // namespace

struct CudnnAttention::Plan {
  CudnnHandle handle;
  CudnnDescriptor plan;
  Bytes workspace{};
  std::vector<std::int64_t> scalar_ids;
  // The host addresses of these go into every call.
  mutable float scale = 0;
  mutable float hidden = -std::numeric_limits<float>::infinity();
  mutable std::int32_t kv_len = 0;
  mutable std::int32_t q_len = 0;

  explicit Plan(const Attention& op)
      : plan(first_plan(handle.get(), CudnnAttentionGraph(op).finalised(handle.get()))),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(op.head_dim)))),
        kv_len(static_cast<std::int32_t>(op.kv_len)),
        q_len(static_cast<std::int32_t>(op.q_len)) {
    std::int64_t bytes = 0;
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                   &bytes));
    workspace = Bytes(bytes);
    scalar_ids = {CudnnAttentionGraph::scale};
    if (op.causal) scalar_ids.push_back(CudnnAttentionGraph::hidden);
    if (op.causal && op.q_len != op.kv_len)
      scalar_ids.insert(scalar_ids.end(), {CudnnAttentionGraph::kv_len, CudnnAttentionGraph::q_len});
  }

  void* scalar(std::int64_t id) const {
    switch (id) {
      case CudnnAttentionGraph::scale: return &scale;
      case CudnnAttentionGraph::hidden: return &hidden;
      case CudnnAttentionGraph::kv_len: return &kv_len;
      default: return &q_len;
    }
  }
};

CudnnAttention::CudnnAttention(const Attention& op) {
  attention::require(op, name());
  plan_ = std::make_shared<const Plan>(op);
}

bool CudnnAttention::built() { return true; }

Bytes CudnnAttention::workspace() const { return plan_->workspace; }

void CudnnAttention::operator()(const AttentionOperands& operands, cudaStream_t stream) const {
  std::vector<std::int64_t> ids{CudnnAttentionGraph::q, CudnnAttentionGraph::k, CudnnAttentionGraph::v,
                                CudnnAttentionGraph::out};
  std::vector<void*> addresses{const_cast<void*>(operands.q), const_cast<void*>(operands.k),
                               const_cast<void*>(operands.v), operands.out};
  for (const std::int64_t id : plan_->scalar_ids) {
    ids.push_back(id);
    addresses.push_back(plan_->scalar(id));
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span(&operands.workspace, 1))
      .finalise();
  check(cudnnSetStream(plan_->handle.get(), stream));
  check(cudnnBackendExecute(plan_->handle.get(), plan_->plan.get(), pack.get()));
}

}  // namespace vlmest::kernels

#else

namespace vlmest::kernels {

struct CudnnAttention::Plan {};

CudnnAttention::CudnnAttention(const Attention&) {
  throw Error("attention/cudnn", "this build has no cuDNN", "install cuDNN 9 beside the CUDA toolkit and build again");
}

bool CudnnAttention::built() { return false; }

Bytes CudnnAttention::workspace() const { return {}; }

void CudnnAttention::operator()(const AttentionOperands&, cudaStream_t) const {}

}  // namespace vlmest::kernels

#endif
