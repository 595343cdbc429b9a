// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/quantization.hpp>
#include <vlmest/json/quantization_file.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {

VLMEST_INLINE bool wants_quantization_file(const nlohmann::json& config, const std::string& where) {
  return !hf::quantization_section(Reader(config, where));
}

VLMEST_INLINE void read_quantization_file(const nlohmann::json& document, const std::string& where,
                                          const QuantizationFile& file, Vlm& vlm) {
  const Reader r(document, where);
  vlm.quantization = hf::read_quantization_keys(r, r.string("quant_method", std::string(file.method)));
  vlm.quantization->file = file.name;
  if (!vlm.quantization->refused)
    vlm.quantization->notes.insert(vlm.quantization->notes.begin(),
                                   "weights stored as " + where + " says; config.json has no quantization_config");
}

}  // namespace vlmest::json
