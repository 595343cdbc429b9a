// SPDX-License-Identifier: Apache-2.0
// models/vlm/*.json: what is shipped is complete, says where it comes from, counts what it promises, and agrees with
// docs/reference/description.schema.json, whose keys and defaults are those of the readers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/families.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/tower.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/report/estimate.hpp>

#include "../sanitizer.hpp"

namespace vlmest::shipped_models_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path root = VLMEST_SOURCE_DIR;

Json load(const fs::path& path) {
  std::ifstream in(path);
  return Json::parse(in);
}

const Json& schema() {
  static const Json s = load(root / "docs" / "reference" / "description.schema.json");
  return s;
}

const std::vector<std::string>& names() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> r;
    for (const auto& e : fs::directory_iterator(root / "models" / "vlm"))
      if (e.path().extension() == ".json") r.push_back(e.path().stem().string());
    std::sort(r.begin(), r.end());
    return r;
  }();
  return list;
}

Json document(const std::string& name) { return load(root / "models" / "vlm" / (name + ".json")); }

const Device& h200() {
  static const Device d = load_device((root / "models" / "device" / "h200-sxm.json").string());
  return d;
}

/// The part of the schema that says what `value` may hold: behind "$ref", and of several the one of its model_type.
const Json& resolve(const Json& node, const Json& value) {
  if (node.contains("$ref")) return resolve(schema()["$defs"][node["$ref"].get<std::string>().substr(8)], value);
  if (!node.contains("anyOf")) return node;
  for (const auto& option : node["anyOf"]) {
    const Json& d = resolve(option, value);
    if (d["properties"]["model_type"]["const"] == value.value("model_type", "")) return d;
  }
  ADD_FAILURE() << "no alternative for " << value.value("model_type", "nothing");
  return node;
}

const Json& family(const Json& model) { return schema()["$defs"][model["model_type"].get<std::string>()]; }

/// Calls visit(path of the object, the object, its properties in the schema) for `object` and all below it that the
/// schema describes.
template <class Visit>
void walk(const Json& object, const Json& described, const std::string& path, Visit visit) {
  const Json& properties = described["properties"];
  visit(path, object, properties);
  for (const auto& [key, value] : object.items()) {
    if (!value.is_object() || !properties.contains(key)) continue;
    const Json& part = resolve(properties[key], value);
    if (part.contains("properties")) walk(value, part, path + "/" + key, visit);  // else its keys are free
  }
}

/// What can be told apart of an estimate, or why there is none.
std::string outcome(const Json& doc) {
  std::ostringstream s;
  try {
    const Vlm vlm = json::read_model(doc, "x");
    Estimator estimator;
    // Longer than any window, and a picture that is cut into tiles.
    Plan plan{.text = 4200, .new_tokens = 2};
    plan.image_height = 700;
    plan.image_width = 1100;
    const Estimate e = estimator(vlm, plan, h200());
    const InferenceEstimate& i = e.inference;
    s << e.params.vision.value() << ' ' << e.params.projector.value() << ' ' << e.params.language.value() << ' '
      << e.sequences.image_tokens << ' ' << i.weights.value() << ' ' << i.kv_cache.value() << ' '
      << i.prefill.memory.peak.value() << ' ' << i.prefill.work.flops.value() << ' ' << i.prefill.work.kernels << ' '
      << i.prefill.gpu.value << ' ' << i.decode.memory.peak.value() << ' ' << i.decode.work.kernels << ' '
      << i.decode.gpu.value;
  } catch (const Error& e) {
    s << e.where << ": " << e.what_happened;
  }
  return s.str();
}

TEST(ShippedModels, CoverTheFamilies) {
  EXPECT_GE(names().size(), 44u);
  std::set<std::string> shipped;
  for (const auto& name : names()) shipped.insert(document(name)["model"]["model_type"]);
  // Of these no public source gives every setting of a released model.
  const std::set<std::string_view> unsourced{"cosmos3_omni", "exaone4_5",    "glmga",
                                             "ovis2",        "paddleocr_vl", "video_llama_3"};
  for (const auto& row : json::families())
    for (const auto& t : row.types) {
      const json::RecorderInputs& inputs = t.recorder;
      if (inputs.layout.empty()) continue;
      EXPECT_NE(shipped.contains(std::string(t.type)), unsourced.contains(t.type)) << t.type;
    }
  EXPECT_TRUE(shipped.contains("internvl_chat"));
}

class ShippedModel : public testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, SaysWhatItIs) {
  const Json doc = document(GetParam());
  EXPECT_EQ(doc["name"], GetParam());
  EXPECT_EQ(json::read_model(doc, GetParam()).name, GetParam());
  EXPECT_FALSE(doc["source"].get<std::string>().empty());
  if (doc["expect"].contains("published")) {
    EXPECT_EQ(doc["source"].get<std::string>().rfind("https://", 0), 0u);
  }
  for (const auto& [key, value] : doc.items()) EXPECT_TRUE(schema()["properties"].contains(key)) << key;
  for (const auto& key : schema()["required"]) EXPECT_TRUE(doc.contains(key)) << key;
  for (const auto& [key, value] : doc["expect"].items())
    EXPECT_TRUE(schema()["properties"]["expect"]["properties"].contains(key)) << key;
}

TEST_P(ShippedModel, CountsAndRuns) {
  const Json doc = document(GetParam());
  const Vlm vlm = json::read_model(doc, GetParam());
  EXPECT_EQ(vlm.type, doc["model"]["model_type"]);
  Estimator estimator;
  const Estimate e = estimator(vlm, {}, h200());
  EXPECT_EQ(e.params.total().value(), doc["expect"]["params"]);
  if (doc["expect"].contains("published")) {
    EXPECT_EQ(e.params.total().value(), doc["expect"]["published"]);
  }
  EXPECT_GT(e.sequences.image_tokens, 0);
  EXPECT_GE(e.inference.weights, Bytes(2 * e.params.total().value()));
  EXPECT_GT(e.inference.prefill.memory.peak, e.inference.weights);
  EXPECT_GT(e.inference.decode.memory.peak, e.inference.weights);
  EXPECT_EQ(e.inference.fits, e.inference.peak <= h200().usable_bytes);
}

TEST_P(ShippedModel, IsWrittenOut) {
  const Json model = document(GetParam())["model"];
  walk(model, family(model), GetParam(), [](const std::string& path, const Json& object, const Json& properties) {
    for (const auto& [key, value] : object.items())
      EXPECT_TRUE(properties.contains(key)) << path << "/" << key << " is not in the schema";
    for (const auto& [key, property] : properties.items())
      if (property.contains("default") || property.contains("properties")) {
        EXPECT_TRUE(object.contains(key)) << path << "/" << key << " is left to the class";
      }
  });
}

/// Calls visit(pointer) for every value below `object` that is no object itself.
template <class Visit>
void leaves(const Json& object, const std::string& pointer, Visit visit) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object())
      leaves(value, pointer + "/" + key, visit);
    else
      visit(pointer + "/" + key);
  }
}

/// Nothing stands in a shipped file that the reader does not look at.
TEST_P(ShippedModel, IsReadToTheLastKey) {
  const Json doc = document(GetParam());
  const Json read{{"model", doc["model"]}, {"image", doc.value("image", Json::object())}};
  leaves(read, "", [&](const std::string& pointer) {
    Json damaged = doc;
    Json& leaf = damaged[Json::json_pointer(pointer)];
    // Where a null stands, an object may too.
    leaf = leaf.is_null() ? Json::array({Json::array()}) : Json::object({{"not", "a value"}});
    std::string where = "file" + pointer;
    std::replace(where.begin(), where.end(), '/', '.');
    try {
      json::read_model(damaged, "file");
      ADD_FAILURE() << pointer << " is not read";
    } catch (const Error& e) {
      EXPECT_EQ(e.where, where) << e.what_happened;
      EXPECT_FALSE(e.hint.empty()) << pointer;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Models, ShippedModel, testing::ValuesIn(names()), [](const auto& model) {
  std::string s = model.param;
  std::replace_if(
      s.begin(), s.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return s;
});

TEST(DescriptionSchema, KnowsTheFamiliesOfTheReader) {
  std::set<std::string> read, described;
  for (const auto t : json::known_types(json::families())) read.emplace(t);
  for (const auto& t : schema()["properties"]["model"]["properties"]["model_type"]["enum"]) described.insert(t);
  EXPECT_EQ(described, read);
  for (const auto& t : described) EXPECT_EQ(schema()["$defs"][t]["properties"]["model_type"]["const"], t);
  const auto alternatives = [](const char* part) {
    std::set<std::string> types;
    for (const auto& option : schema()["$defs"][part]["anyOf"])
      types.insert(schema()["$defs"][option["$ref"].get<std::string>().substr(8)]["properties"]["model_type"]["const"]);
    return types;
  };
  std::set<std::string> towers, decoders;
  for (const auto& e : json::hf::towers) towers.emplace(e.type);
  for (const auto& e : json::hf::decoders) decoders.emplace(e.type);
  EXPECT_EQ(alternatives("tower"), towers);
  EXPECT_EQ(alternatives("decoder"), decoders);
}

/// A key that is left out means what the schema gives as its default: tried once for every key of every part.
TEST(DescriptionSchema, DefaultsAreThoseOfTheReader) {
  std::set<const Json*> tried;
  const auto all = names();
  for (const auto& name : all) {
    const Json doc = document(name);
    walk(doc["model"], family(doc["model"]), "/model",
         [&](const std::string& path, const Json& object, const Json& properties) {
           for (const auto& [key, property] : properties.items()) {
             if (!property.contains("default") || !object.contains(key) || !tried.insert(&property).second) continue;
             if (tried.size() % one_in(4) != 0) continue;
             Json absent = doc, set = doc;
             absent[Json::json_pointer(path)].erase(key);
             set[Json::json_pointer(path)][key] = property["default"];
             EXPECT_EQ(outcome(absent), outcome(set)) << name << path << "/" << key;
           }
         });
  }
  EXPECT_GT(tried.size(), 200u);
}

/// The words behind "known: " in the hint that reading `doc` gives, at the place `where`.
std::set<std::string> known(const Json& doc, const std::string& where) {
  std::set<std::string> words;
  try {
    json::read_model(doc, "x");
    ADD_FAILURE() << where << " is not looked at";
  } catch (const Error& e) {
    EXPECT_EQ(e.where, where);
    const auto from = e.hint.find("known: ");
    if (from == std::string::npos)
      ADD_FAILURE() << e.hint;
    else {
      std::istringstream list(e.hint.substr(from + 7));
      for (std::string w; list >> w;) words.insert(w.substr(0, w.find(',')));
    }
  }
  return words;
}

std::set<std::string> keys(const Json& properties) {
  std::set<std::string> r;
  for (const auto& [key, value] : properties.items()) r.insert(key);
  return r;
}

TEST(DescriptionSchema, KnowsTheKeysOfADescription) {
  Json doc = document("llava-next-7b");
  doc["zzz"] = 1;
  EXPECT_EQ(known(doc, "x.zzz"), keys(schema()["properties"]));
}

TEST(DescriptionSchema, KnowsTheKeysOfImageProcessors) {
  std::set<std::string> all;
  for (const auto& name : names()) {
    Json doc = document(name);
    if (doc.contains("blocks")) continue;
    doc["image"]["zzz"] = 1;
    all.merge(known(doc, "x.image.zzz"));
  }
  EXPECT_EQ(all, keys(schema()["properties"]["image"]["properties"]));
}

TEST(DescriptionSchema, KnowsTheBlocks) {
  Json doc = document("llava-next-7b");
  doc["blocks"] = {{{"type", "zzz"}}};
  std::set<std::string> types;
  for (const auto& block : schema()["properties"]["blocks"]["items"]["anyOf"]) {
    const std::string type = block["properties"]["type"]["const"];
    types.insert(type);
    Json with = doc;
    with["blocks"] = {{{"type", type}, {"after", "vision_tower"}, {"zzz", 1}}};
    EXPECT_EQ(known(with, "x.blocks[0].zzz"), keys(block["properties"])) << type;
  }
  EXPECT_EQ(known(doc, "x.blocks[0].type"), types);
}

TEST(DescriptionSchema, KnowsTheLayoutsOfTheCache) {
  Json doc = document("llava-next-7b");
  doc["kv"]["layout"] = "zzz";
  std::set<std::string> layouts;
  for (const auto& kv : schema()["properties"]["kv"]["anyOf"]) {
    const std::string layout = kv["properties"]["layout"]["const"];
    layouts.insert(layout);
    Json with = doc;
    with["kv"] = {{"layout", layout}, {"zzz", 1}};
    EXPECT_EQ(known(with, "x.kv.zzz"), keys(kv["properties"])) << layout;
    for (const auto& [key, property] : kv["properties"].items()) {
      if (!property.contains("default")) continue;
      Json set = doc;
      set["kv"] = {{"layout", layout}, {key, property["default"]}};
      with["kv"] = {{"layout", layout}};
      EXPECT_EQ(outcome(with), outcome(set)) << layout << ' ' << key;
    }
  }
  EXPECT_EQ(known(doc, "x.kv.layout"), layouts);
}

}  // namespace
}  // namespace vlmest::shipped_models_test
