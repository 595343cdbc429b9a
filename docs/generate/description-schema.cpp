// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/description.schema.json: docs/generate/description.schema.json with the families' parts.
#include <cstdio>
#include <exception>

#include "description_schema.hpp"

int main() {
  try {
    const generate::Json schema = generate::description_schema(generate::load("docs/generate/description.schema.json"),
                                                               vlmest::json::families(), "lib/vlmest/family");
    std::printf("%s\n", generate::text(schema).c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
