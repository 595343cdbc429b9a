// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vlmest/json/reader.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/unit/error.hpp>

/// Checkpoints whose config.json does not say that their weights are quantised: the tool that quantised them says so in
/// a file of its own beside it. Serving engines look for it (vLLM's get_config_filenames of each method,
/// model_executor/layers/quantization/).
namespace vlmest::json {

struct QuantizationFile {
  std::string_view name;
  std::string_view method;  ///< where the file names none
};
inline constexpr std::array quantization_files{
    QuantizationFile{"hf_quant_config.json", "modelopt"},  // modelopt/torch/export/unified_export_hf.py
    QuantizationFile{"quant_config.json", "awq"},          // AutoAWQ, and llm-awq before it
    QuantizationFile{"quantize_config.json", "gptq"},      // AutoGPTQ, auto_gptq/modeling/_const.py
};

/// Whether the model's config.json leaves the word to such a file.
bool wants_quantization_file(const nlohmann::json& config, const std::string& where);

/// Sets how the model's weights are stored as the document says, with a note that it does. A method or a setting that
/// is not known is told where the storage is asked for, as with quantization_config. Throws Error for a document that
/// is not an object.
void read_quantization_file(const nlohmann::json& document, const std::string& where, const QuantizationFile& file,
                            Vlm& vlm);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/quantization_file.hpp>
#endif
