// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <cudnn.h>
#include <kernels/cuda/check_cudnn.hpp>

/// What of cuDNN's backend API (cudnn_graph.h) the attention graph needs.
namespace vlmest::kernels::attention {

/// How a value is announced to cudnnBackendSetAttribute.
template <class T>
constexpr cudnnBackendAttributeType_t cudnn_type = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type<cudnnBackendDescriptor_t> = CUDNN_TYPE_BACKEND_DESCRIPTOR;

/// A backend descriptor: attributes are set, then it is finalised, then used.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    cuda::check(cudnnBackendCreateDescriptor(type, &descriptor_));
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~CudnnDescriptor() {
    if (descriptor_) static_cast<void>(cudnnBackendDestroyDescriptor(descriptor_));
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T, std::size_t N>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const T, N> values,
                       std::source_location where = std::source_location::current()) {
    cuda::check(cudnnBackendSetAttribute(descriptor_, name, cudnn_type<T>, static_cast<std::int64_t>(values.size()),
                                         values.data()),
                where);
    return *this;
  }
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const T& value,
                       std::source_location where = std::source_location::current()) {
    return set(name, std::span<const T, 1>(&value, 1), where);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other,
                       std::source_location where = std::source_location::current()) {
    return set(name, other.descriptor_, where);
  }
  /// Addresses of data: descriptors are void* as well, so these need a name of their own.
  CudnnDescriptor& set_addresses(cudnnBackendAttributeName_t name, std::span<void* const> values,
                                 std::source_location where = std::source_location::current()) {
    cuda::check(cudnnBackendSetAttribute(descriptor_, name, CUDNN_TYPE_VOID_PTR,
                                         static_cast<std::int64_t>(values.size()), values.data()),
                where);
    return *this;
  }
  CudnnDescriptor& finalise(std::source_location where = std::source_location::current()) {
    cuda::check(cudnnBackendFinalize(descriptor_), where);
    return *this;
  }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// One tensor of four dimensions.
struct CudnnTensor {
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{1, 1, 1, 1};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;   ///< exists between two operations only
  bool is_by_value = false;  ///< a scalar that is read from the host at each call

  CudnnDescriptor described(std::int64_t id) const {
    CudnnDescriptor r(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    constexpr std::int64_t alignment = 16;
    r.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(sizes))
        .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(strides))
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, is_by_value)
        .finalise();
    return r;
  }
};

}  // namespace vlmest::kernels::attention
