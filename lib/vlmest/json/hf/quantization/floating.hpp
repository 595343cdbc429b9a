// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/quantization/common.hpp>
#include <vlmest/library/rules.hpp>

/// quant_method bitsandbytes, fp8, fbgemm_fp8, mxfp4: transformers 5 utils/quantization_config.py (BitsAndBytesConfig,
/// FineGrainedFP8Config, FbgemmFp8Config, Mxfp4Config). Where modules that stay wide are listed, the output head is
/// one of them only if it is named; where none are, it is (quantizers/base.py, get_modules_to_not_convert).
namespace vlmest::json::hf {

inline Quantization read_bitsandbytes(const Reader& r) {
  const auto flag = [&](const char* key) { return r.boolean(key, r.boolean((std::string("_") + key).c_str(), false)); };
  const bool four = flag("load_in_4bit"), eight = flag("load_in_8bit");
  if (four == eight)
    r.fail("load_in_4bit", four ? "both 4 and 8 bits are asked for" : "neither 4 nor 8 bits are asked for",
           "one of load_in_4bit and load_in_8bit is true");
  const std::string type = r.string("bnb_4bit_quant_type", "fp4");
  if (type != "nf4" && type != "fp4")
    r.fail("bnb_4bit_quant_type", "unknown '" + type.substr(0, 64) + "'", "nf4 or fp4");
  Bnb4Weight w{.twice = r.boolean("bnb_4bit_use_double_quant", false)};
  std::string compute = r.string("bnb_4bit_compute_dtype", "float32");
  if (compute.starts_with("torch.")) compute = compute.substr(6);
  if (compute != "float32" && compute != "bfloat16" && compute != "float16")
    r.fail("bnb_4bit_compute_dtype", "unknown '" + compute.substr(0, 64) + "'", "float32, float16 or bfloat16");
  w.compute = parse_dtype(compute);
  Quantization q =
      four ? one_storage("bitsandbytes", "bitsandbytes " + type + (w.twice ? " with doubly quantised scales" : ""), w)
           : one_storage("bitsandbytes", "bitsandbytes int8", Bnb8Weight{});
  // The weights stay in 16 bits and are quantised for each product.
  if (eight && r.boolean("llm_int8_has_fp16_weight", false))
    r.fail("llm_int8_has_fp16_weight", "8-bit products of 16-bit weights are not known", "set it to false");
  q.head = r.given("llm_int8_skip_modules");
  add_skips(q.skipped, r, "llm_int8_skip_modules");
  note_unknown(q, r,
               {"load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant",
                "bnb_4bit_compute_dtype", "llm_int8_skip_modules", "llm_int8_has_fp16_weight"},
               {"bnb_4bit_quant_storage", "llm_int8_threshold", "llm_int8_enable_fp32_cpu_offload"});
  return q;
}

/// weight_block_size [rows, columns]: null is one scale for a whole weight (integrations/finegrained_fp8.py,
/// FP8Linear), and a section without the key has blocks of 128 x 128 (FineGrainedFP8Config's default, which from_dict
/// leaves). ignored_layers is what serving engines call modules_to_not_convert, and match by whole names (vLLM
/// quant_utils.py, is_layer_skipped).
inline Quantization read_fp8(const Reader& r) {
  Fp8Weight w{.rows = 128, .columns = 128};
  if (r.given("weight_block_size")) {
    const auto b = r.integers("weight_block_size", {});
    if (!r.value()["weight_block_size"].is_array() || b.size() != 2 || b[0] < 1 || b[1] < 1 || b[0] > 1 << 20 ||
        b[1] > 1 << 20)
      r.fail("weight_block_size", "expected two positive integers", "like [128, 128]");
    w.rows = b[0];
    w.columns = b[1];
  }
  w.scales = r.is_null("weight_block_size") ? Fp8Weight::Scales::tensor : Fp8Weight::Scales::block;
  std::string summary = "fp8";
  if (w.scales == Fp8Weight::Scales::block)
    summary += " in blocks of " + std::to_string(w.rows) + "x" + std::to_string(w.columns);
  const std::string scheme = r.string("activation_scheme", "dynamic");
  if (scheme != "dynamic" && scheme != "static")
    r.fail("activation_scheme", "unknown '" + scheme.substr(0, 64) + "'", "dynamic or static");
  w.static_activations = scheme == "static";
  const std::string format = r.string("scale_fmt", "float");
  if (format != "float" && format != "ue8m0")
    r.fail("scale_fmt", "unknown '" + format.substr(0, 64) + "'", "float or ue8m0");
  if (format == "ue8m0" && w.scales == Fp8Weight::Scales::block) w.scale = DType::uint8;
  Quantization q = one_storage("fp8", summary, w);
  q.experts = true;
  q.dequantised_below = lowest(ArchitectureRule::stored_fp8);
  if (r.boolean("dequantize", false)) {
    q.linears = q.experts = false;
    q.summary += ", dequantised when loaded";
  }
  q.head = r.given("modules_to_not_convert") || r.given("ignored_layers");
  add_skips(q.skipped, r, "modules_to_not_convert");
  add_rules(q.skipped, r, "ignored_layers");
  note_unknown(
      q, r,
      {"weight_block_size", "activation_scheme", "modules_to_not_convert", "ignored_layers", "dequantize", "scale_fmt"},
      {"fmt", "weight_per_tensor", "act_per_tensor", "use_deep_gemm"});
  return q;
}

/// A scale for every output, and for the rows of x: integrations/fbgemm_fp8.py, FbgemmFp8Linear.
inline Quantization read_fbgemm_fp8(const Reader& r) {
  Quantization q =
      one_storage("fbgemm_fp8", "fbgemm fp8 with a scale for each output",
                  Fp8Weight{.scales = Fp8Weight::Scales::channel, .upper_bound = true, .scale_name = "weight_scale"});
  q.head = r.given("modules_to_not_convert");
  add_skips(q.skipped, r, "modules_to_not_convert");
  note_unknown(q, r, {"modules_to_not_convert"}, {"activation_scale_ub"});
  return q;
}

/// The experts alone: blocks of 32 values with an exponent of one byte (integrations/mxfp4.py,
/// replace_with_mxfp4_linear).
inline Quantization read_mxfp4(const Reader& r) {
  Quantization q = one_storage("mxfp4", "mxfp4 experts", Fp4Weight{.group = 32, .nv = false});
  q.linears = false;
  q.dequantised_below = lowest(ArchitectureRule::stored_mxfp4);
  q.experts = !r.boolean("dequantize", false);
  if (!q.experts) q.summary += ", dequantised when loaded";
  add_skips(q.skipped, r, "modules_to_not_convert");
  note_unknown(q, r, {"modules_to_not_convert", "dequantize"}, {});
  return q;
}

}  // namespace vlmest::json::hf
