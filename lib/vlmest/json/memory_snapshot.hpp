// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/allocator/memory_snapshot.hpp>
#include <vlmest/unit/error.hpp>

/// torch.cuda.memory._snapshot() written as JSON: json.dump(torch.cuda.memory._snapshot(), file). Keys are torch's
/// (torch/csrc/cuda/Module.cpp, THCPModule_memorySnapshot); stack frames and times are not looked at.
namespace vlmest::json {

namespace snapshot_json {

using nlohmann::json;

[[noreturn]] inline void fail(const std::string& at, const std::string& what) {
  throw Error(at, what, "write torch.cuda.memory._snapshot() with json.dump");
}

inline const json& member(const json& o, const std::string& at, const char* key) {
  if (!o.is_object()) fail(at, "is not an object");
  const auto i = o.find(key);
  if (i == o.end()) fail(at, std::string("has no ") + key);
  return *i;
}
inline const json& list(const json& o, const std::string& at, const char* key) {
  const json& l = member(o, at, key);
  if (!l.is_array()) fail(at + "." + key, "is not a list");
  return l;
}
inline std::int64_t integer(const json& v, const std::string& at) {
  if (!v.is_number_integer()) fail(at, "is not an integer");
  if (v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    fail(at, "is too large");
  return v.get<std::int64_t>();
}
/// Of bytes; at most what the allocator itself would hand out, so that sums of them stay in range.
inline Bytes bytes(const json& o, const std::string& at, const char* key) {
  const auto n = integer(member(o, at, key), at + "." + key);
  if (n < 0 || n >= allocator::max_request) fail(at + "." + key, "is not a size in bytes");
  return Bytes(n);
}
inline std::int64_t address(const json& o, const std::string& at, const char* key) {
  const auto n = integer(member(o, at, key), at + "." + key);
  if (n < 0 || n >= std::int64_t{1} << 62) fail(at + "." + key, "is not an address");
  return n;
}
inline std::string text(const json& o, const std::string& at, const char* key) {
  const json& v = member(o, at, key);
  if (!v.is_string()) fail(at + "." + key, "is not a word");
  return v.get<std::string>();
}
inline allocator::Stream stream(const json& o, const std::string& at) {
  return integer(member(o, at, "stream"), at + ".stream");
}

inline allocator::BlockState state(const std::string& word, const std::string& at) {
  if (word == "active_allocated") return allocator::BlockState::allocated;
  if (word == "active_awaiting_free" || word == "active_pending_free") return allocator::BlockState::awaiting;
  if (word != "inactive") fail(at, "'" + word + "' is no state of a block");
  return allocator::BlockState::cached;
}

allocator::Segment segment(const json& o, const std::string& at);

allocator::TraceEvent event(const json& o, const std::string& at);

/// The settings that were in force; the text of PYTORCH_ALLOC_CONF knows some that the table does not hold.
allocator::AllocatorConfig settings(const json& o, const std::string& at, allocator::AllocatorConfig c);

}  // namespace snapshot_json

/// One device of a snapshot. `base` gives what a snapshot does not tell: the device's memory and the fraction of it
/// that the process may use. Throws Error naming the entry that is missing or malformed.
allocator::MemorySnapshot read_memory_snapshot(const nlohmann::json& j, std::int64_t device = 0,
                                               const allocator::AllocatorConfig& base = {});

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/memory_snapshot.hpp>
#endif
