// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>

#include <vlmest/json/hf/quantization/common.hpp>

/// quant_method compressed-tensors (0.16: quantization/quant_config.py, quant_args.py, utils/match.py).
namespace vlmest::json::hf {

/// Rules as compressed-tensors matches them: "re:" and a pattern, or the whole name. A class of modules names none by
/// itself.
inline bool is_class(const std::string& n) {
  return !n.empty() && n[0] >= 'A' && n[0] <= 'Z' && n.find('.') == std::string::npos;
}
inline void add_matches(std::vector<ModuleRule>& rules, const Reader& r, const char* key, bool classes = true) {
  for (const auto& n : names(r, key))
    if (is_class(n) && !classes)
      continue;
    else if (n.starts_with("re:"))
      rules.emplace_back(std::string_view(n).substr(3), ModuleRule::Kind::pattern, r.path() + "." + key);
    else
      rules.emplace_back(n, ModuleRule::Kind::exact, r.path() + "." + key);
}

/// QuantizationArgs of weights: what they are stored as in a format.
inline std::optional<WeightStorage> weight_storage(const Reader& w, const Reader& activations, std::string format) {
  const std::int64_t bits = w.integer("num_bits", 8, 1, 64);
  const std::string type = w.string("type", "int");
  if (type != "int" && type != "float") w.fail("type", "unknown '" + type.substr(0, 64) + "'", "int or float");
  std::string strategy = w.string("strategy", "");
  const std::int64_t group = w.given("group_size") ? group_size(w, "group_size", -1) : 0;
  if (strategy.empty()) strategy = !w.given("group_size") ? "tensor" : group == 0 ? "channel" : "group";
  const bool grouped = strategy == "group" || strategy == "tensor_group";
  if (!grouped && strategy != "tensor" && strategy != "channel" && strategy != "block")
    w.fail("strategy", "unknown '" + strategy.substr(0, 64) + "'", "tensor, channel, group, block or tensor_group");
  if (grouped && group == 0) w.fail("group_size", "groups without a size", "give the inputs that share a scale");
  const bool acts = !activations.value().empty();
  const bool static_acts = acts && activations.given("dynamic") && activations.value()["dynamic"].is_boolean() &&
                           !activations.boolean("dynamic", false);
  std::optional<DType> rounded;
  if (acts) rounded = activations.string("type", "int") == "float" ? DType::fp8 : DType::int8;
  const bool local = acts && activations.given("dynamic") && activations.value()["dynamic"].is_string();
  const auto order = w.given("actorder") && w.value()["actorder"].is_string() ? w.string("actorder", "") : "";
  const bool reordered = order == "group" || order == "dynamic" ||
                         (w.given("actorder") && w.value()["actorder"].is_boolean() && w.boolean("actorder", false));
  if (format.empty() || format == "mixed-precision")  // compressors/format.py, infer_module_format
    format = type == "float" && bits == 4 ? (group == 32 ? "mxfp4-pack-quantized" : "nvfp4-pack-quantized")
             : type == "float"            ? "float-quantized"
             : acts                       ? "int-quantized"
                                          : "pack-quantized";
  if (format == "dense") return std::nullopt;
  if (format == "nvfp4-pack-quantized" || format == "mxfp4-pack-quantized" || format == "mxfp4") {
    if (bits != 4 || type != "float") w.fail("num_bits", "4 bit floats are what " + format + " packs");
    const bool nv = format.starts_with("nv");
    return Fp4Weight{.group = grouped ? group
                              : nv    ? 16
                                      : 32,
                     .nv = nv,
                     .static_activations = static_acts || local,
                     .activations = rounded};
  }
  const bool naive = format == "naive-quantized";
  if (format == "float-quantized" || (naive && type == "float")) {
    if (bits != 8 || type != "float") w.fail("num_bits", "8 bit floats are what " + format + " keeps");
    Fp8Weight f{.scales = strategy == "tensor" ? Fp8Weight::Scales::tensor : Fp8Weight::Scales::channel,
                .scale = DType::bf16,
                .static_activations = static_acts,
                .scale_name = "weight_scale",
                .activations = rounded};
    if (strategy == "block" || grouped) {
      f.scales = Fp8Weight::Scales::block;
      f.rows = grouped ? 1 : 128;
      f.columns = grouped ? group : 128;
      if (w.given("block_structure")) {
        const auto b = w.integers("block_structure", {});
        if (b.size() != 2 || b[0] < 1 || b[1] < 1 || b[0] > 1 << 20 || b[1] > 1 << 20)
          w.fail("block_structure", "expected two positive integers", "like [128, 128]");
        f.rows = b[0];
        f.columns = b[1];
      }
    }
    return f;
  }
  if (format != "pack-quantized" && format != "int-quantized" && !naive)
    w.fail("format", "the format '" + format.substr(0, 64) + "' is not known",
           "known: pack-quantized, int-quantized, float-quantized, naive-quantized, nvfp4-pack-quantized, "
           "mxfp4-pack-quantized, dense");
  if (type != "int" || bits > 8) w.fail("num_bits", "integers of up to 8 bits are what " + format + " keeps");
  if (strategy == "block") w.fail("strategy", "integers in blocks are not known");
  return IntWeight{.bits = static_cast<int>(bits),
                   .group = grouped ? group : 0,
                   .whole = strategy == "tensor",
                   .packed = format == "pack-quantized",
                   .symmetric = w.boolean("symmetric", true),
                   .reordered = reordered,
                   .static_activations = static_acts,
                   .activations = rounded};
}

/// "int 4 bit in groups of 128", "nvfp4", "fp8".
inline std::string storage_words(const WeightStorage& s) {
  if (const auto* w = std::get_if<IntWeight>(&s))
    return "int " + std::to_string(w->bits) + " bit" + in_groups(w->group);
  if (const auto* w = std::get_if<Fp4Weight>(&s)) return w->nv ? "nvfp4" : "mxfp4";
  return "fp8";
}

inline Quantization read_compressed_tensors(const Reader& r) {
  Quantization q{.method = "compressed-tensors", .summary = "compressed-tensors"};
  if (r.given("sparsity_config") && !r.object("sparsity_config").value().empty() &&
      r.object("sparsity_config").string("format", "dense") != "dense")
    r.fail("sparsity_config", "sparse weights are not known", "remove the key for the bytes of dense ones");
  const Reader groups = r.object("config_groups");
  if (groups.value().empty()) r.fail("config_groups", "missing", "it says what the weights are stored in");
  const std::string format = r.string("format", "");
  std::string words;
  for (const auto& [name, value] : groups.value().items()) {
    const Reader g(value, groups.path() + "." + name.substr(0, 64));
    if (!g.given("weights")) continue;  // activations alone
    StorageGroup s{
        .storage = weight_storage(g.object("weights"), g.object("input_activations"), g.string("format", format)),
        .targets = {}};
    const auto targets = names(g, "targets");
    if (std::find(targets.begin(), targets.end(), "Embedding") != targets.end())
      g.fail("targets", "embeddings in fewer bits are not known", "linear layers are: Linear, or names of modules");
    if (std::find(targets.begin(), targets.end(), "Linear") == targets.end()) add_matches(s.targets, g, "targets");
    if (!s.storage) continue;
    const std::string w = storage_words(*s.storage);
    if (words.find(w) == std::string::npos) words += (words.empty() ? " " : ", ") + w;
    q.groups.push_back(std::move(s));
  }
  // Modules that are named come before classes of modules (match.py, match_targets).
  std::stable_partition(q.groups.begin(), q.groups.end(), [](const StorageGroup& g) { return !g.targets.empty(); });
  const std::string status = r.string("quantization_status", "compressed");
  const bool compressed =
      status == "compressed" && !r.boolean("dequantize", false) && r.boolean("run_compressed", true);
  q.linears = q.experts = q.unpacked_by_transformers = compressed;
  q.fp8_kernels = compressed && r.boolean("use_optimized_inference", false);
  q.summary += words + (compressed ? "" : ", stored wide");
  q.head = !q.fp8_kernels;  // get_modules_to_not_convert, without a list
  add_matches(q.skipped, r, "ignore", false);
  const auto ignored = names(r, "ignore");
  if (std::find(ignored.begin(), ignored.end(), "Linear") != ignored.end()) q.linears = q.experts = false;
  if (r.given("kv_cache_scheme"))
    q.notes.push_back(r.path() + ".kv_cache_scheme is not applied; plan.kv says what the cache is kept in");
  note_unknown(q, r,
               {"config_groups", "format", "ignore", "kv_cache_scheme", "quantization_status", "sparsity_config",
                "dequantize", "run_compressed", "use_optimized_inference"},
               {"global_compression_ratio", "version", "packed_modules_mapping"});
  return q;
}

}  // namespace vlmest::json::hf
