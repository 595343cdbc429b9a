// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/graph/graph.hpp>
#include <vlmest/nn/quantization/pattern.hpp>
#include <vlmest/nn/quantization/storage.hpp>

/// Which modules of a checkpoint are stored how: its quantization_config as a value.
namespace vlmest {

/// Names modules: a name or a pattern.
class ModuleRule {
 public:
  enum class Kind : std::uint8_t {
    exact,    ///< the whole name (compressed-tensors)
    name,     ///< the name, its beginning or its end, or dotted parts of it
    pattern,  ///< from the beginning of the name
    skip,  ///< as transformers 5 reads modules_to_not_convert (quantizers_utils.py, should_convert_module): a pattern
           ///< from the beginning of the name, of which it need not be all, or the name's last characters
    part,  ///< anywhere in the name, as AutoAWQ wrote checkpoints (exclude_layers_to_not_quantize) and engines read
           ///< them (vLLM and SGLang, is_layer_skipped_awq); or as transformers reads a skip
    wildcard,  ///< the whole name, in which `*` stands for anything
  };
  ModuleRule(std::string_view text, Kind kind, const std::string& where) : text_(text), where_(where), kind_(kind) {
    const bool plain = text.find_first_of("*+?^$[](){}|\\") == std::string_view::npos;
    if (kind == Kind::name && !plain) kind_ = Kind::pattern;
    if (kind_ == Kind::pattern || ((kind == Kind::skip || kind == Kind::part) && !plain)) pattern_.emplace(text, where);
    if (kind == Kind::wildcard) pattern_.emplace(as_pattern(text), where);
  }
  /// `renamed`: a name that the checkpoint has for the module, and the library has not. What is skipped by such a name
  /// is skipped with all below it (quantizers/finegrained/base.py, _normalize_modules_to_not_convert).
  bool names(std::string_view module, bool renamed = false) const {
    if (kind_ == Kind::pattern || kind_ == Kind::wildcard) return pattern_->matches(module);
    if (kind_ == Kind::exact) return module == text_;
    if (kind_ == Kind::part && !text_.empty() && module.find(text_) != std::string_view::npos) return true;
    if (kind_ == Kind::skip || kind_ == Kind::part) return skips(module) || (renamed && skips_above(module));
    if (text_.empty()) return false;
    for (std::size_t at = module.find(text_); at != std::string_view::npos; at = module.find(text_, at + 1)) {
      const std::size_t end = at + text_.size();
      if ((at == 0 || module[at - 1] == '.') && (end == module.size() || module[end] == '.')) return true;
    }
    return false;
  }
  const std::string& text() const { return text_; }
  const std::string& where() const { return where_; }  ///< the key that it stands under

 private:
  static std::string as_pattern(std::string_view wildcards) {
    std::string pattern;
    for (const char c : wildcards)
      pattern += c == '*' ? std::string(".*") : c == '.' ? std::string("\\.") : std::string(1, c);
    return pattern + "$";
  }
  /// A text without other signs is a pattern too: its dots are any character.
  bool begins(std::string_view module) const {
    return text_.size() <= module.size() &&
           std::equal(text_.begin(), text_.end(), module.begin(), [](char t, char m) { return t == '.' || t == m; });
  }
  bool skips(std::string_view module) const {
    return module.ends_with(text_) || (pattern_ ? pattern_->matches(module) : begins(module));
  }
  /// One of the modules that this one is in; where one begins so, this one does.
  bool skips_above(std::string_view module) const {
    for (std::size_t at = module.find('.'); at != std::string_view::npos; at = module.find('.', at + 1)) {
      const std::string_view above = module.substr(0, at);
      if (above.ends_with(text_) || (pattern_ && pattern_->matches(above))) return true;
    }
    return false;
  }

  std::string text_, where_;
  Kind kind_;
  std::optional<Pattern> pattern_;
};

/// One way to store weights, and the linears that it is for; neither targets nor modules: all.
struct StorageGroup {
  std::optional<WeightStorage> storage;  ///< none: as the other weights
  std::vector<ModuleRule> targets;
  std::vector<std::string> modules;  ///< sorted: the whole names of modules, or of what is in them (one of the experts)
  std::string where;                 ///< the key that the modules stand under
};

struct Quantization {
  std::string method;                ///< quant_method
  std::string summary;               ///< "awq 4 bit in groups of 128"
  std::string file = "config.json";  ///< that says so
  std::vector<StorageGroup> groups;  ///< the first that names a module counts
  std::vector<ModuleRule> skipped;
  std::vector<ModuleRule> only;  ///< where not empty, no other modules
  bool linears = true;           ///< linear layers are stored so
  bool experts = false;          ///< the fused weights of experts too
  bool language_layers_only = false;
  bool head = false;  ///< the output head too, unless it is skipped by name
  /// transformers unpacks all weights at the first forward and computes with them (compressed-tensors).
  bool unpacked_by_transformers = false;
  /// Of these it keeps fp8 ones as they are (ArchitectureRule::row_wise_fp8).
  bool fp8_kernels = false;
  /// Compute capability below which transformers makes wide weights of them when it loads them; 0: none.
  int dequantised_below = 0;
  std::vector<std::string> notes;  ///< what the config says besides and has no effect here, a line each
  std::optional<Error> refused;    ///< why its storage is not known: thrown where it is asked for
};

/// The names that one module goes by: in transformers 5, and in checkpoints written before it renamed modules
/// (conversion_mapping.py): without `model.` before the parts; a decoder's layers at the top, or below
/// `language_model.model`; a tower below `vision_model`; InternVL's projector as `mlp1`
/// (convert_internvl_weights_to_hf.py).
inline std::vector<std::string> module_names(const Graph& g, ScopeId s) {
  std::vector<std::string> r{path(g, s)};
  const auto add = [&](std::string name) {
    if (std::find(r.begin(), r.end(), name) == r.end()) r.push_back(std::move(name));
  };
  const Part part = g.scopes[static_cast<std::size_t>(s)].part;
  const std::string full = r.front(), model = "model.";
  if (!full.starts_with(model)) {
    if (part == Part::language) add("language_model." + full);
    return r;
  }
  const std::string below = full.substr(model.size());
  add(below);
  if (constexpr std::string_view projector = "multi_modal_projector"; below.starts_with(projector))
    add("mlp1" + below.substr(projector.size()));
  const std::size_t dot = below.find('.');
  if (dot == std::string::npos) return r;
  const std::string rest = below.substr(dot + 1);
  if (part == Part::language) {
    add(model + rest);
    add("language_model." + model + rest);
  }
  if (part == Part::vision)
    for (const char* tower : {"visual.", "vision_model.", "vision_tower.", "vision_tower.vision_model."})
      add(tower + rest);
  return r;
}

/// Whether the rule is for the module of these names, of which the first is its own.
inline bool names_any(const ModuleRule& rule, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& n) { return rule.names(n, &n != &names.front()); });
}
inline bool names_any(const std::vector<ModuleRule>& rules, const std::vector<std::string>& names) {
  return std::any_of(rules.begin(), rules.end(), [&](const ModuleRule& r) { return names_any(r, names); });
}

/// Whether one of the group's modules is the one of these names, or in it.
inline bool holds(const StorageGroup& group, const std::vector<std::string>& names) {
  const auto holds_one = [&](const std::string& name) {
    if (std::binary_search(group.modules.begin(), group.modules.end(), name)) return true;
    const auto within = std::lower_bound(group.modules.begin(), group.modules.end(), name + ".");
    return within != group.modules.end() && within->starts_with(name + ".");
  };
  return !group.modules.empty() && std::any_of(names.begin(), names.end(), holds_one);
}

/// What kind of module asks; fixed: one whose weight its parent multiplies by itself, which no method replaces.
enum class StoredModule : std::uint8_t { linear, head, experts, fixed };

/// How the weight of module s is stored; null: as the others are.
inline const WeightStorage* storage_of(const Quantization& q, const Graph& g, ScopeId s, StoredModule kind) {
  const Part part = g.scopes[static_cast<std::size_t>(s)].part;
  if (kind == StoredModule::fixed || (kind == StoredModule::experts ? !q.experts : !q.linears)) return nullptr;
  if (kind == StoredModule::head && !q.head) return nullptr;
  if (kind == StoredModule::linear && q.language_layers_only && part != Part::language) return nullptr;
  const std::vector<std::string> names = module_names(g, s);
  if (names_any(q.skipped, names)) return nullptr;
  if (!q.only.empty() && !names_any(q.only, names)) return nullptr;
  for (const StorageGroup& group : q.groups)
    if ((group.targets.empty() && group.modules.empty()) || names_any(group.targets, names) || holds(group, names))
      return group.storage ? &*group.storage : nullptr;
  return nullptr;
}

}  // namespace vlmest
