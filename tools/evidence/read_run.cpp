// SPDX-License-Identifier: Apache-2.0
#include "evidence/read_run.hpp"

#include <algorithm>
#include <cctype>

#include <vlmest/diagnose/evidence/text/log_text.hpp>
#include <vlmest/diagnose/evidence/text/told_settings.hpp>

#include "catalogue.hpp"

namespace vlmest::tool {
namespace {

using diagnose::ReadSetting;

/// In lower case, with dashes for blanks and '_'; as long as what it is of.
std::string dashed(std::string_view s) {
  std::string r(s);
  for (char& c : r) c = c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return r;
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

struct Named {
  std::size_t at = std::string::npos, length = 0;
  std::string name;
  bool by_key = false;  ///< on a line that gives a model
};

/// A log may name its model in every line: the first of a name's places tell.
constexpr std::size_t most_places = 256;

/// Where a name stands by itself: what follows may be more of a file's name, but no further digit of a version.
void find_name(const std::string& text, const std::string& word, const std::string& name, std::vector<Named>& found) {
  const auto known = found.size();
  for (auto at = text.find(word); at != std::string::npos && found.size() < known + most_places;
       at = text.find(word, at + 1)) {
    if (at > 0 && in_name(text[at - 1])) continue;
    const auto end = at + word.size();
    if (end < text.size() &&
        (in_name(text[end]) || (text[end] == '.' && end + 1 < text.size() && in_name(text[end + 1]) &&
                                std::isdigit(static_cast<unsigned char>(text[end + 1])) != 0)))
      continue;
    found.push_back({at, word.size(), name, false});
  }
}

std::int64_t line_of(std::string_view text, std::size_t at) { return 1 + diagnose::line_ends(text, at); }

/// Its line, of at most 2 KiB on either side.
std::string_view line_around(std::string_view text, std::size_t at) {
  constexpr std::size_t side = 2048;
  const auto least = at > side ? at - side : 0;
  const auto begin = text.substr(least, at - least).rfind('\n');
  const auto from = begin == std::string_view::npos ? least : least + begin + 1;
  return text.substr(from, std::min(text.substr(at, side).find('\n'), side) + at - from);
}

/// The model that a text names: on a line that gives one, else the first; of two at one place the longer name.
std::optional<Named> model_of(std::string_view text, const std::string& low) {
  std::vector<Named> found;
  for (const ShippedFile& f : catalogue("vlm")) {
    find_name(low, dashed(f.name), f.name, found);
    for (const std::string& id : f.aliases) {
      const std::string word = dashed(id.substr(id.rfind('/') + 1));
      if (word != dashed(f.name)) find_name(low, word, f.name, found);
    }
  }
  if (found.empty()) return std::nullopt;
  for (Named& n : found) {
    const std::string line = dashed(line_around(text, n.at));
    for (const char* key : {"model", "from-pretrained", "llm(", "vllm-serve", "gguf"})
      n.by_key = n.by_key || line.find(key) != std::string::npos;
  }
  return *std::min_element(found.begin(), found.end(), [](const Named& a, const Named& b) {
    if (a.by_key != b.by_key) return a.by_key;
    return a.at != b.at ? a.at < b.at : a.length > b.length;
  });
}

/// Bits that the rest of a checkpoint's name tells of: "-Instruct-AWQ", "-Q4_K_M.gguf", "-8bit".
std::string weights_of(const std::string& rest) {
  const auto has = [&](const char* w) { return rest.find(w) != std::string::npos; };
  if (has("bnb-4bit")) return "nf4";
  if (has("-awq") || has("gptq-int4") || has("-int4") || has("-4bit") || has("-q4-") || has("w4a16")) return "int4";
  if (has("-int8") || has("-8bit") || has("-q8-")) return "int8";
  return has("-fp8") ? "fp8" : "";
}

std::optional<Named> device_of(const std::string& low) {
  std::vector<Named> found;
  for (const ShippedFile& f : catalogue("device")) {
    std::vector<std::string> words = f.aliases;
    words.push_back(f.name);
    for (const std::string& word : words) {
      if (std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c) != 0; })) continue;
      // "t4" and "l4" are also parts of other things.
      if (word.size() < 4) {
        for (const char* maker : {"nvidia-", "tesla-", "geforce-"}) find_name(low, maker + word, f.name, found);
        continue;
      }
      find_name(low, word, f.name, found);
    }
  }
  if (found.empty()) return std::nullopt;
  return *std::min_element(found.begin(), found.end(), [](const Named& a, const Named& b) {
    return a.length != b.length ? a.length > b.length : a.at < b.at;
  });
}

std::optional<std::int64_t> whole(const std::string& s) {
  if (s.empty() || s.size() > 9 || !std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); }))
    return std::nullopt;
  return std::stoll(s);
}

}  // namespace

ReadRun read_run(std::string_view text) {
  ReadRun run;
  constexpr std::size_t most = 1 << 20;
  const std::string_view head = text.substr(0, most);
  const std::string low = dashed(head);
  const auto add = [&](const char* flag, const std::string& value, const Named& n) {
    run.settings.push_back({flag, value, std::string(head.substr(n.at, n.length)), line_of(head, n.at)});
  };
  std::string weights;
  if (const auto model = model_of(head, low)) {
    add("--config", model->name, *model);
    const auto end = model->at + model->length;
    const auto stop = low.find_first_of("\"' \n\t,)/", end);
    const std::string rest = low.substr(end, std::min(stop, low.size()) - end);
    weights = weights_of(rest.substr(0, 60));
    if (!weights.empty()) add("--weights", weights, {model->at, model->length + rest.size(), "", false});
  }
  if (const auto device = device_of(low)) add("--device", device->name, *device);
  for (ReadSetting& s : diagnose::read_settings(text)) {
    if (s.flag == "--weights" && !weights.empty()) continue;
    run.settings.push_back(std::move(s));
  }
  for (diagnose::ReadSetting& s : diagnose::told_settings(text))
    if (std::none_of(run.settings.begin(), run.settings.end(), [&](const auto& r) { return r.flag == s.flag; }))
      run.told.push_back(std::move(s));
  run.training = diagnose::training_words(text);
  return run;
}

std::vector<ReadSetting> take_settings(const ReadRun& run, bool training, bool and_told,
                                       const std::vector<std::string>& given, EstimateArgs& args,
                                       parallel::Strategy& placement) {
  std::vector<ReadSetting> all = run.settings, taken;
  if (and_told) all.insert(all.end(), run.told.begin(), run.told.end());
  const auto has = [&](const char* flag) { return std::find(given.begin(), given.end(), flag) != given.end(); };
  for (const ReadSetting& s : all) {
    if (has(s.flag.c_str())) continue;
    const auto n = whole(s.value);
    const std::string& f = s.flag;
    if (f == "--config")
      args.config = s.value;
    else if (f == "--device")
      args.device = s.value;
    else if (f == "--batch" && n && training)
      args.plan.batch = *n;
    else if (f == "--images" && n && *n > 0)
      args.images = n;
    else if (f == "--image-size" && args.image_size.empty())
      args.image_size = s.value;
    else if (f == "--frames" && n && !args.images)
      args.frames = n;
    else if (f == "--dtype")
      args.dtype = s.value;
    else if (f == "--weights" && !(training && s.value != "nf4"))
      args.weights = s.value;
    else if (f == "--attention")
      args.attention = s.value;
    else if (!training)
      continue;
    else if (f == "--seq" && n && *n <= 32768 && !has("--text"))
      args.seq = n;
    else if (f == "--gradient-accumulation" && n)
      args.plan.gradient_accumulation = *n;
    else if (f == "--optimizer")
      args.optimizer = s.value;
    else if (f == "--lora" && n)
      args.plan.lora.rank = *n;
    else if (f == "--lora-targets")
      args.lora_targets = {s.value};
    else if (f == "--freeze")
      args.freeze.push_back(s.value);
    else if (f == "--checkpointing")
      args.checkpointing = s.value;
    else if (f == "--gpus" && n)
      placement.gpus = static_cast<int>(*n);
    else if (f == "sharding")
      placement.sharding = s.value == "zero-1"                                 ? diagnose::Sharding::optimizer
                           : s.value == "zero-2" || s.value == "shard-grad-op" ? diagnose::Sharding::gradients
                                                                               : diagnose::Sharding::parameters;
    else if (f == "offload")
      placement.offload = s.value == "parameters" ? diagnose::Offload::parameters : diagnose::Offload::optimizer;
    else
      continue;
    taken.push_back(s);
  }
  // Adapters leave the tower alone anyway.
  if (args.plan.lora.rank > 0 && !has("--freeze")) args.freeze.clear();
  return taken;
}

}  // namespace vlmest::tool
