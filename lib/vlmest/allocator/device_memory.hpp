// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <vlmest/allocator/address_space.hpp>
#include <vlmest/allocator/heap.hpp>

namespace vlmest::allocator {

/// The driver's side of an allocator: so many bytes of memory, and addresses for them. Address ranges of expandable
/// segments lie above all cudaMalloc segments.
class DeviceMemory {
 public:
  explicit DeviceMemory(const AllocatorConfig& c) : capacity_(c.capacity.value()) {}

  /// cudaMalloc: no value where memory is short.
  std::optional<std::int64_t> take(std::int64_t size) {
    if (size > capacity_ - used_) return std::nullopt;
    const auto address = segments_.take(size);
    used_ += size;
    return address;
  }
  void give_back(std::int64_t address, std::int64_t size) {
    segments_.give_back(address, size);
    used_ -= size;
  }
  /// cuMemAddressReserve and cuMemAddressFree: costs no memory.
  std::int64_t reserve(std::int64_t size) { return checked_add(ranges_above, ranges_.take(size)); }
  void unreserve(std::int64_t base, std::int64_t size) { ranges_.give_back(base - ranges_above, size); }
  /// cuMemCreate and cuMemMap for a stretch of pages: all of them or none.
  std::optional<std::int64_t> map(std::int64_t address, std::int64_t size) {
    if (size > capacity_ - used_) return std::nullopt;
    used_ += size;
    return address;
  }
  void unmap(std::int64_t, std::int64_t size) { used_ -= size; }
  /// The blocks whose streams have caught up once the device is synchronised, in order: all.
  std::vector<std::int32_t> synchronize(const Heap& h) { return h.awaiting; }

  void clear() {
    segments_.clear();
    ranges_.clear();
    used_ = 0;
  }

 private:
  static constexpr std::int64_t ranges_above = std::int64_t{1} << 62;
  AddressSpace segments_, ranges_;
  std::int64_t capacity_, used_ = 0;
};

}  // namespace vlmest::allocator
