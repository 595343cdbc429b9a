// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/json/processor/square.hpp>

/// LLaVA-NeXT and LLaVA-OneVision: the model splits the features by its own list of canvases, so that the processor's
/// must be the same.
namespace vlmest::json {

template <class Rule>
void read_anyres_keys(ProcessorKeys& k, const Rule& rule) {
  k.must_be("do_resize", true);
  k.boolean("do_center_crop", true);
  const ProcessorSize size = k.size("size"), crop = k.size("crop_size");
  k.square("crop_size", crop, rule.image_size);
  if (!crop.height)
    k.square("size", {.height = size.shortest_edge ? size.shortest_edge : size.height}, rule.image_size);
  if (!k.given("image_grid_pinpoints")) return;
  const nlohmann::json& list = k.value("image_grid_pinpoints");
  if (!list.is_array() || list.size() > 65536) k.fail("image_grid_pinpoints", "expected a list of [height, width]");
  std::vector<ImageSize> said;
  for (const auto& e : list) {
    if (!e.is_array() || e.size() != 2 || !e[0].is_number_unsigned() || !e[1].is_number_unsigned())
      k.fail("image_grid_pinpoints", "expected a list of [height, width]");
    said.push_back({e[0].template get<std::int64_t>(), e[1].template get<std::int64_t>()});
  }
  if (said != rule.pinpoints)
    k.differs("image_grid_pinpoints", "a list of " + std::to_string(said.size()),
              "image_grid_pinpoints of config.json is another one, of " + std::to_string(rule.pinpoints.size()));
}

}  // namespace vlmest::json
