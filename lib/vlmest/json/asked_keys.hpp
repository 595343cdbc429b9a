// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

namespace vlmest::json {

/// The keys that the readers of one document asked for, by the path of the object that holds them.
class AskedKeys {
 public:
  using Keys = std::set<std::string, std::less<>>;

  /// Those of one object, which counts as read from then on. The reference stays good.
  Keys& of(const std::string& path) { return objects_[path]; }
  /// Nothing where no reader entered the object.
  const Keys* find(const std::string& path) const {
    const auto it = objects_.find(path);
    return it == objects_.end() ? nullptr : &it->second;
  }

 private:
  std::map<std::string, Keys, std::less<>> objects_;
};

}  // namespace vlmest::json
