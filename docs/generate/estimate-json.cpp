// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/estimate-json.md: the keys of an estimate, out of docs/reference/estimate.schema.json.
#include <cstdio>
#include <stdexcept>

#include "schema.hpp"

using generate::Json, generate::load, generate::resolved;

namespace {

/// A key's own description, else that of the type it refers to.
std::string about(const Json& s, const Json& type) {
  std::string text = s.value("description", type.value("description", ""));
  if (type.contains("enum"))
    for (const auto& v : type["enum"])
      text += (&v == &type["enum"][0] ? (text.empty() ? "One of `" : " One of `") : ", `") + v.get<std::string>() + "`";
  return text;
}

void rows(const Json& root, const Json& object, const std::string& path) {
  for (const auto& [key, value] : object["properties"].items()) {
    const Json& type = resolved(root, value);
    const std::string at = path + key,
                      kind = type.contains("const") ? type["const"].dump() : type.at("type").get<std::string>();
    const Json* items = type.contains("items") ? &resolved(root, type["items"]) : nullptr;
    std::printf("| `%s%s` | %s | %s |\n", at.c_str(), items ? "[]" : "",
                items ? ("list of " + items->at("type").get<std::string>()).c_str() : kind.c_str(),
                about(value, type).c_str());
    if (type.contains("properties")) rows(root, type, at + ".");
    if (items && items->contains("properties")) rows(root, *items, at + "[].");
  }
}

}  // namespace

int main() {
  try {
    const Json root = load("docs/reference/estimate.schema.json");
    std::printf(
        "# The JSON of an estimate\n\nWhat `vlmest --config FILE --json` prints. This page is printed by "
        "`docs/generate/estimate-json.cpp` out of the JSON\n"
        "Schema [estimate.schema.json](estimate.schema.json), which tests hold against real outputs. %s\n\n| key | "
        "type | meaning |\n|---|---|---|\n",
        root.at("description").get<std::string>().c_str());
    rows(root, root, "");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
