// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace vlmest::diagnose {

/// A word of a NameTable. 0 is the empty one.
using NameId = std::int32_t;

/// Every different name of a trace once: a trace of millions of kernels has some hundred names.
class NameTable {
 public:
  NameTable() { intern(""); }
  // The index looks into the strings of this very table.
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;
  NameTable(NameTable&&) = default;
  NameTable& operator=(NameTable&&) = default;

  NameId intern(std::string_view name) {
    if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
    const auto id = static_cast<NameId>(names_.size());
    names_.emplace_back(name);
    ids_.emplace(names_.back(), id);
    return id;
  }
  std::string_view operator[](NameId id) const { return names_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::deque<std::string> names_;  // a deque leaves them where they are
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace vlmest::diagnose
