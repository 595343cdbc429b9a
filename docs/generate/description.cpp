// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/description.md: the keys of a model description, out of docs/reference/description.schema.json,
// and the shipped models of each family, out of models/vlm.
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "schema.hpp"

using generate::Json, generate::load, generate::resolved;

namespace {

std::string target(const Json& s) { return s.contains("$ref") ? s["$ref"].get<std::string>().substr(8) : ""; }

/// "[n, n]" with blanks, and long lists cut.
std::string shown(const Json& v) {
  if (v.is_array() && v.size() > 8) return "`[" + v.front().dump() + ", ... " + v.back().dump() + "]`";
  std::string s;
  for (const char c : v.dump()) s += c == ',' ? std::string(", ") : std::string(1, c);
  return "`" + s + "`";
}

/// What a key may hold, in words, where its description does not say it.
std::string meaning(const Json& root, const Json& s) {
  const Json& type = resolved(root, s);
  std::string text = s.value("description", target(s) == "activation" ? "" : type.value("description", ""));
  if (type.contains("enum") && target(s) != "activation") {
    std::string words;
    for (const auto& v : type["enum"])
      words += (words.empty() ? "`" : ", `") + (v.is_string() ? v.get<std::string>() : v.dump()) + "`";
    text = words + (text.empty() ? "" : "; " + text);
  }
  return text;
}

/// Rows "key | default | meaning" of an object and the objects inside it; parts that have a section of their own are
/// named. `skip` are keys that the section's text speaks of.
void rows(const Json& root, const Json& object, const std::string& path, const std::set<std::string>& sections) {
  for (const auto& [key, value] : object["properties"].items()) {
    if (value.contains("const") && key == "model_type") continue;
    const Json& type = resolved(root, value);
    const std::string name = target(value);
    std::string text = meaning(root, value);
    const bool part = type.contains("properties") || type.contains("anyOf");
    if (part && (sections.contains(name) || type.contains("anyOf"))) {
      std::string which;
      if (name == "tower")
        which = "one of the [vision towers](#vision-towers)";
      else if (name == "decoder")
        which = "one of the [language models](#language-models)";
      else if (sections.contains(name))
        which = "[" + name + "](#" + name + ")";
      else
        for (const auto& option : type["anyOf"])
          which += (which.empty() ? "[" : " or [") + target(option) + "](#" + target(option) + ")";
      std::printf("| `%s%s` | | %s%s |\n", path.c_str(), key.c_str(), which.c_str(),
                  text.empty() ? "" : ("; " + text).c_str());
    } else if (part) {
      rows(root, type, path + key + ".", sections);
    } else {
      std::printf("| `%s%s` | %s | %s |\n", path.c_str(), key.c_str(),
                  value.contains("default") ? shown(value["default"]).c_str() : "", text.c_str());
    }
  }
}

void table(const Json& root, const Json& object, const std::set<std::string>& sections) {
  std::printf("| key | default | meaning |\n|---|---|---|\n");
  rows(root, object, "", sections);
  std::printf("\n");
}

std::set<std::string> alternatives(const Json& root, const char* part) {
  std::set<std::string> r;
  for (const auto& option : root["$defs"][part]["anyOf"]) r.insert(target(option));
  return r;
}

/// Parts that a family alone may have: alternatives of its keys that are no tower, no decoder of others, no family.
std::set<std::string> of_one_family(const Json& root, const std::set<std::string>& towers,
                                    const std::set<std::string>& decoders) {
  std::set<std::string> r, families;
  for (const auto& f : root["properties"]["model"]["properties"]["model_type"]["enum"]) families.insert(f);
  for (const auto& [name, def] : root["$defs"].items()) {
    if (!def.contains("properties")) continue;
    for (const auto& [key, value] : def["properties"].items()) {
      if (!value.contains("anyOf")) continue;
      for (const auto& option : value["anyOf"])
        if (const std::string part = target(option);
            !part.empty() && !towers.contains(part) && !decoders.contains(part) && !families.contains(part))
          r.insert(part);
    }
  }
  return r;
}

/// The rows of blocks or cache layouts: one for each alternative.
void kinds(const Json& list, const char* tag, const std::set<std::string>& common) {
  for (const auto& kind : list) {
    std::set<std::string> needed;
    for (const auto& k : kind["required"]) needed.insert(k);
    std::string keys;
    for (const auto& [key, value] : kind["properties"].items()) {
      if (key == tag || common.contains(key)) continue;
      keys += (keys.empty() ? "`" : ", `") + key + "`";
      if (!needed.contains(key))
        keys += value.contains("default") ? " (" + value["default"].dump() + ")" : " (optional)";
    }
    std::printf("| `%s` | %s | %s |\n", kind["properties"][tag]["const"].get<std::string>().c_str(), keys.c_str(),
                kind["description"].get<std::string>().c_str());
  }
  std::printf("\n");
}

const char* const intro =
    R"(# Descriptions of models

A description is a JSON file that says what a vision-language model is made of, where its numbers come from and how many
parameters it has. This page is printed by `docs/generate/description.cpp` out of the JSON Schema
[description.schema.json](description.schema.json), whose keys and defaults a test holds against the reader's. How to
write one: [the howto](../howto/write-a-description.md). All files in [models/vlm](../../models/vlm) are examples.

```json
{
  "name": "llava-next-7b",
  "source": "where the values and the parameter count come from",
  "expect": {"params": 7063431168},
  "model": {"model_type": "llava_next", "vision_config": {"...": 0}, "text_config": {"...": 0}}
}
```

)";

const char* const more =
    R"(The assembly under `model` is written in the keys of a Hugging Face `config.json`, so that a published one can be pasted
as it is: keys that change no parameter, no shape and no kernel (`rope_theta`, `torch_dtype`, token ids) are passed over.
A key that is left out has the default below, which is that of transformers 5.17. Shipped files leave nothing out.

What a `config.json` cannot say stands beside `model`:

- [`image`](#image): the settings of the checkpoint's image processor, which decide how many tokens a picture becomes;
- [`blocks`](#blocks): layers that the family does not have, such as a spectral filter between tower and projector;
- [`kv`](#kv): how keys and values are kept, such as in pages or as one compressed vector a token.

A model of another family can be described where it is made of known parts: choose the family that joins tower, projector
and language model in the same way, write the dimensions of the parts, and add what is missing as blocks.
[llava-next-7b-fft.json](../../models/vlm/llava-next-7b-fft.json) is LLaVA-NeXT with a learned filter over the spectrum of
each tile and a fourfold reduction of its tokens:

```json
"blocks": [
  {"type": "spectral_filter", "after": "vision_tower", "grid": [24, 24], "channels": 1024, "norm": "layer_norm", "residual": true},
  {"type": "spectral_crop", "after": "vision_tower", "from": [24, 24], "to": [12, 12]}
]
```

)";

void print(const Json& root) {
  std::map<std::string, std::string> shipped;
  std::set<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator("models/vlm"))
    if (e.path().extension() == ".json") files.insert(e.path());
  for (const auto& file : files) {
    std::string& list = shipped[load(file)["model"]["model_type"].get<std::string>()];
    list += (list.empty() ? "" : ", ") + file.stem().string();
  }
  const std::set<std::string> towers = alternatives(root, "tower"), decoders = alternatives(root, "decoder");
  const std::set<std::string> own = of_one_family(root, towers, decoders);
  std::set<std::string> sections = towers;
  sections.insert(decoders.begin(), decoders.end());
  sections.insert(own.begin(), own.end());
  std::vector<std::string> families;  // without decoders alone, which stand among the language models
  for (const auto& f : root["properties"]["model"]["properties"]["model_type"]["enum"])
    if (!decoders.contains(f.get<std::string>())) families.push_back(f);

  std::printf("%s| key | needed | meaning |\n|---|---|---|\n", intro);
  std::set<std::string> needed;
  for (const auto& k : root["required"]) needed.insert(k);
  for (const auto& [key, value] : root["properties"].items()) {
    std::printf("| `%s` | %s | %s |\n", key.c_str(), needed.contains(key) ? "yes" : "",
                value.value("description", "").c_str());
    if (key == "expect")
      for (const auto& [k, v] : value["properties"].items())
        std::printf("| `expect.%s` | %s | %s |\n", k.c_str(), k == "params" ? "yes" : "",
                    v["description"].get<std::string>().c_str());
  }
  std::printf("\n%s## Families\n\n| `model_type` | shipped |\n|---|---|\n", more);
  for (const auto& name : families)
    std::printf("| [%s](#%s) | %s |\n", name.c_str(), name.c_str(), shipped[name].c_str());
  std::printf("\n");
  for (const auto& name : families) {
    std::printf("### %s\n\n", name.c_str());
    table(root, root["$defs"][name], sections);
  }
  for (const auto& [title, all] : {std::pair{"Vision towers", &towers}, std::pair{"Language models", &decoders}}) {
    const std::set<std::string>& parts = *all;
    std::printf("## %s\n\nThe heading is the `model_type` of the part%s.\n\n", title,
                std::string(title) == "Vision towers"
                    ? " (`pixtral` for pixtral_vision)"
                    : ", or, under `model` itself, of a language model alone, which takes no images");
    for (const auto& [name, def] : root["$defs"].items()) {
      const bool inside = own.contains(name) && &parts == &decoders;
      if (!parts.contains(name) && !inside) continue;
      std::printf("### %s\n\n", name.c_str());
      if (inside) std::printf("Not alone: inside the family that names it.\n\n");
      table(root, def, sections);
    }
  }
  std::printf("Activations: ");
  for (const auto& a : root["$defs"]["activation"]["enum"])
    std::printf("%s`%s`", &a == &root["$defs"]["activation"]["enum"][0] ? "" : ", ", a.get<std::string>().c_str());
  std::printf(".\n\n## image\n\n%s\n\n", "Which keys there are depends on the family; others are refused by name.");
  std::printf("| key | families, meaning |\n|---|---|\n");
  for (const auto& [key, value] : root["properties"]["image"]["properties"].items())
    std::printf("| `%s` | %s |\n", key.c_str(), meaning(root, value).c_str());
  std::printf(
      "\n## blocks\n\nA list, in the order in which the blocks run. Every block has a `type` and says what it stands "
      "`after`:\n"
      "`vision_tower`, `vision_tower.layers.N` (from 0) or `projector`. `norm` (`layer_norm` or `rms_norm`) puts a "
      "norm before\n"
      "it, `residual` adds what went into it.\n\n| `type` | keys | what it is |\n|---|---|---|\n");
  kinds(root["properties"]["blocks"]["items"]["anyOf"], "type", {"after", "norm", "residual"});
  std::printf(
      "## kv\n\nEvery layout takes `dtype`: `bf16`, `fp16`, `fp32`, `fp8`, `int8` or `int4`; `--kv` on the command "
      "line wins.\n\n"
      "| `layout` | keys | what it is |\n|---|---|---|\n");
  kinds(root["properties"]["kv"]["anyOf"], "layout", {"dtype"});
}

}  // namespace

int main() {
  try {
    print(load("docs/reference/description.schema.json"));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
