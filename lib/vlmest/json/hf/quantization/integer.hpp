// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>

#include <vlmest/json/hf/quantization/common.hpp>

/// quant_method awq, gptq, auto-round, eetq: transformers 5 utils/quantization_config.py (AwqConfig, GPTQConfig,
/// AutoRoundConfig, EetqConfig).
namespace vlmest::json::hf {

/// The output head is never among an AWQ checkpoint's converted modules (quantizer_awq.py, add_default_skips).
inline Quantization read_awq(const Reader& r) {
  AwqWeight w;
  w.bits = bits(r, r.given("w_bit") ? "w_bit" : "bits", 4, {4, 8});
  w.group = group_size(r, r.given("q_group_size") ? "q_group_size" : "group_size", 128);
  std::string version = r.string(r.given("version") ? "version" : "format", "gemm");
  std::transform(version.begin(), version.end(), version.begin(), [](unsigned char c) { return std::tolower(c); });
  if (version != "gemm" && version != "gemv" && version != "exllama" && version != "marlin" && version != "ipex")
    r.fail("version", "the layout '" + version.substr(0, 64) + "' is not known", "known: gemm, gemv");
  w.gemv = version == "gemv";
  Quantization q = one_storage("awq", "awq " + std::to_string(w.bits) + " bit" + in_groups(w.group), w);
  q.experts = true;
  add_skips(q.skipped, r, "modules_to_not_convert", ModuleRule::Kind::part);
  note_unknown(q, r, {"bits", "w_bit", "group_size", "q_group_size", "version", "format", "modules_to_not_convert"},
               {"zero_point", "backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config", "sym",
                "desc_act", "checkpoint_format", "meta", "pack_dtype", "quantizer", "damp_percent", "true_sequential",
                "static_groups", "lm_head"});
  return q;
}

/// One entry's storage over what all others have: {"bits": 8, "group_size": 32}.
inline GptqWeight gptq_weight(const Reader& r, GptqWeight absent) {
  GptqWeight w = absent;
  w.bits = bits(r, "bits", absent.bits, {2, 3, 4, 8});
  w.group = r.given("group_size") ? group_size(r, "group_size", 128) : absent.group;
  w.reordered = r.boolean("desc_act", absent.reordered);
  w.symmetric = r.boolean("sym", absent.symmetric);
  return w;
}

/// optimum's gptq/quantizer.py replaces the linears of the language model's layers, or those of one block; gptqmodel's
/// `dynamic` gives modules storage of their own ("+:pattern", or without a sign) or none ("-:pattern").
inline Quantization read_gptq(const Reader& r) {
  const GptqWeight w = gptq_weight(r, {});
  const std::string format = r.string(r.given("checkpoint_format") ? "checkpoint_format" : "format", "gptq");
  if (format != "gptq" && format != "gptq_v2")
    r.fail("checkpoint_format", "the layout '" + format.substr(0, 64) + "' is not known", "known: gptq, gptq_v2");
  if (r.string("pack_dtype", "int32") != "int32") r.fail("pack_dtype", "only int32 words are known");
  Quantization q{.method = "gptq", .summary = "gptq " + std::to_string(w.bits) + " bit" + in_groups(w.group)};
  if (r.given("dynamic")) {
    const Reader dynamic = r.object("dynamic");
    for (const auto& [key, value] : dynamic.value().items()) {
      const bool signed_ = key.starts_with("+:") || key.starts_with("-:");
      const std::string where = dynamic.path();
      ModuleRule rule(std::string_view(key).substr(signed_ ? 2 : 0), ModuleRule::Kind::pattern, where);
      if (key.starts_with("-:"))
        q.skipped.push_back(std::move(rule));
      else
        q.groups.push_back(
            {.storage = gptq_weight(Reader(value, where + "." + key.substr(0, 64)), w), .targets = {std::move(rule)}});
    }
    if (!q.groups.empty()) q.summary += ", some layers otherwise";
  }
  q.groups.push_back({.storage = w, .targets = {}});
  q.head = r.boolean("lm_head", false);
  q.experts = true;
  q.language_layers_only = true;
  if (r.given("block_name_to_quantize")) {
    q.language_layers_only = false;
    add_rules(q.only, r, "block_name_to_quantize");
  }
  if (r.given("modules_in_block_to_quantize")) {
    const auto& lists = r.value()["modules_in_block_to_quantize"];
    if (!lists.is_array() || lists.size() > 4096) r.fail("modules_in_block_to_quantize", "expected a list of lists");
    for (const auto& list : lists)
      for (const auto& n : list.is_array() ? list : nlohmann::json::array({list})) {
        if (!n.is_string()) r.fail("modules_in_block_to_quantize", "expected names");
        q.only.emplace_back(n.get<std::string>(), ModuleRule::Kind::name, r.path());
      }
  }
  add_rules(q.skipped, r, "modules_to_not_convert");
  note_unknown(q, r,
               {"bits", "group_size", "desc_act", "sym", "dynamic", "lm_head", "format", "checkpoint_format",
                "pack_dtype", "block_name_to_quantize", "modules_in_block_to_quantize", "modules_to_not_convert"},
               {"damp_percent",
                "damp_auto_increment",
                "true_sequential",
                "static_groups",
                "meta",
                "model_name_or_path",
                "model_file_base_name",
                "tokenizer",
                "dataset",
                "use_exllama",
                "exllama_config",
                "max_input_length",
                "batch_size",
                "pad_token_id",
                "module_name_preceding_first_block",
                "use_cuda_fp16",
                "model_seqlen",
                "cache_block_outputs",
                "is_marlin_format",
                "disable_exllama",
                "act_group_aware",
                "mse",
                "quantizer",
                "backend",
                "offload_to_disk",
                "offload_to_disk_path",
                "v2",
                "rotation",
                "hyb_act",
                "gptaq",
                "version",
                "quant_type",
                "parallel_packing",
                "is_distributed"});
  return q;
}

/// Intel's AutoRound packs as GPTQ or AWQ do. Layers in `extra_config` have bits of their own; 16 are left wide.
inline Quantization read_auto_round(const Reader& r) {
  const std::string packing = r.string("packing_format", "auto_round:gptq");
  const bool awq = packing.find("awq") != std::string::npos;
  if (!awq && packing.find("gptq") == std::string::npos)
    r.fail("packing_format", "the layout '" + packing.substr(0, 64) + "' is not known",
           "known: auto_round:auto_gptq, auto_round:auto_awq");
  if (r.string("data_type", "int") != "int") r.fail("data_type", "only int is known");
  const GptqWeight w = gptq_weight(r, {});
  const auto storage = [&](const GptqWeight& g) -> WeightStorage {
    if (awq) return AwqWeight{.bits = g.bits, .group = g.group};
    return g;
  };
  Quantization q{.method = "auto-round",
                 .summary = "auto-round " + std::to_string(w.bits) + " bit" + in_groups(w.group)};
  if (r.given("extra_config")) {
    const Reader extra = r.object("extra_config");
    for (const auto& [key, value] : extra.value().items()) {
      const Reader e(value, extra.path() + "." + key.substr(0, 64));
      ModuleRule rule(key, ModuleRule::Kind::name, extra.path());
      if (e.integer("bits", w.bits, 1, 64) >= 16)
        q.skipped.push_back(std::move(rule));
      else
        q.groups.push_back({.storage = storage(gptq_weight(e, w)), .targets = {std::move(rule)}});
    }
  }
  q.groups.push_back({.storage = storage(w), .targets = {}});
  q.experts = true;
  q.head = r.boolean("quant_lm_head", false);
  for (const char* key : {"block_name_to_quantize", "to_quant_block_names"})
    for (const auto& list : names(r, key))
      for (std::size_t at = 0; at <= list.size();) {  // names with commas between them
        const std::size_t to = std::min(list.find(',', at), list.size());
        if (to > at) q.only.emplace_back(list.substr(at, to - at), ModuleRule::Kind::name, r.path());
        at = to + 1;
      }
  q.language_layers_only = q.only.empty();
  note_unknown(q, r,
               {"bits", "group_size", "sym", "desc_act", "packing_format", "data_type", "extra_config",
                "block_name_to_quantize", "to_quant_block_names", "quant_lm_head"},
               {"act_bits",
                "act_data_type",
                "act_dynamic",
                "act_group_size",
                "act_sym",
                "amp",
                "autoround_version",
                "batch_size",
                "dataset",
                "enable_minmax_tuning",
                "enable_norm_bias_tuning",
                "enable_quanted_input",
                "gradient_accumulate_steps",
                "iters",
                "low_gpu_mem_usage",
                "lr",
                "minmax_lr",
                "nsamples",
                "quant_block_list",
                "scale_dtype",
                "seqlen",
                "super_bits",
                "super_group_size",
                "backend",
                "damp_percent",
                "true_sequential",
                "supported_types"});
  return q;
}

inline Quantization read_eetq(const Reader& r) {
  if (r.string("weights", "int8") != "int8") r.fail("weights", "only int8 is known");
  Quantization q =
      one_storage("eetq", "eetq 8 bit", IntWeight{.bits = 8, .group = 0, .packed = false, .transposed = true});
  q.head = r.given("modules_to_not_convert");
  add_skips(q.skipped, r, "modules_to_not_convert");
  note_unknown(q, r, {"weights", "modules_to_not_convert"}, {});
  return q;
}

}  // namespace vlmest::json::hf
