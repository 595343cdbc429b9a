// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/families.hpp>

/// The recorder's table of model types (bench/recorder/inputs/table.py), out of the rows of the families.
namespace generate {

inline std::string recorder_table(vlmest::json::FamilyRows rows) {
  std::string s =
      R"(# SPDX-License-Identifier: Apache-2.0
"""Model types and how their images are laid out: the function of this folder as "file.function", and the size of an
image where none is given: None for that of the tower, "canvas" for the largest square of image_grid_pinpoints.

Written by docs/generate/recorder-table.cpp out of the rows of lib/vlmest/family/registry.hpp.
"""

TABLE: dict[str, tuple[str, int | str | None]] = {
)";
  for (const auto& row : rows)
    for (const auto& t : row.types) {
      const vlmest::json::RecorderInputs& inputs = t.recorder;
      if (inputs.layout.empty()) continue;
      s += "    \"" + std::string(t.type) + "\": (\"" + std::string(inputs.layout) + "\", " +
           (inputs.native > 0   ? std::to_string(inputs.native)
            : inputs.native < 0 ? "\"canvas\""
                                : "None") +
           "),\n";
    }
  return s + "}\n";
}

}  // namespace generate
