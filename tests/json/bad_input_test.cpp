// SPDX-License-Identifier: Apache-2.0
// What is no model description is refused with one line that names file and key, and a hint: every family, every
// dimension, every kind of fault.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include <vlmest/json/model.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::bad_input_test {
namespace {

using nlohmann::json;

struct Document {
  std::string file;
  json value;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// One shipped description of each model_type.
const std::map<std::string, Document>& families() {
  static const auto all = [] {
    std::map<std::string, Document> r;
    for (const auto& e : std::filesystem::directory_iterator(VLMEST_SOURCE_DIR "/models/vlm")) {
      const json j = json::parse(read(e.path()));
      const std::string type = j.at("model").at("model_type");
      if (auto& d = r[type]; d.file.empty() || e.path().filename() < d.file) d = {e.path().filename(), j};
    }
    return r;
  }();
  return all;
}

Device device() {
  return {.name = "d",
          .sm = 90,
          .multiprocessors = 132,
          .memory_bytes = Bytes(80) * (1 << 30),
          .usable_bytes = Bytes(79) * (1 << 30),
          .dram = {3e12},
          .l2 = Bytes(50 << 20),
          .host_link = {5e10},
          .peaks = {{6e13}, {4e14}, {8e14}, {8e14}, {1e15}, {1e15}},
          .launch = {5e-6},
          .kernel_floor = {1e-6}};
}

/// The error that reading and estimating a text ends in; nothing where it is accepted.
std::optional<Error> refusal(const std::string& text) {
  try {
    const Vlm vlm = vlmest::json::parse_model(text, "file.json");
    Estimator()(vlm, {}, device());
    return std::nullopt;
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    EXPECT_FALSE(e.what_happened.empty());
    EXPECT_FALSE(e.hint.empty()) << e.what();
    return e;
  }
}
void expect_refused_at(const std::string& text, const std::string& place, const std::string& about) {
  const auto e = refusal(text);
  ASSERT_TRUE(e) << about << " was accepted";
  EXPECT_EQ(e->where, place) << about << ": " << e->what();
}

TEST(BadInput, WhatIsNoJson) {
  for (const std::string text : {"", " \n", "hello", "{\"model_type\": ", "{\"a\": 1,}", "{'a': 1}", "\xff\xfe{}",
                                 "{\"a\": nan}", "{\"a\": -NaN}", "{\"a\": +Infinity}"})
    expect_refused_at(text, "file.json", "'" + text + "'");
  const auto zeros = refusal(std::string(100, '\0'));
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->what_happened, "not JSON at line 1, column 1");
}

/// What Python's json writes of numbers without end, as files of Mamba-2 models hold one: a key that is read refuses
/// it.
TEST(BadInput, PythonsNumbersAreNoNumbers) {
  const auto document =
      vlmest::json::parse(R"({"a \" Infinity": [0.0, Infinity, -Infinity, NaN], "b": "NaN\\"})", "file.json");
  EXPECT_EQ(document.at("b"), "NaN\\");
  EXPECT_EQ(document.at("a \" Infinity").size(), 4u);
  for (const std::string word : {"NaN", "Infinity", "-Infinity"}) {
    expect_refused_at(R"({"model_type": "llava", "text_config": {"hidden_size": )" + word + "}}",
                      "file.json.text_config.hidden_size", word);
    EXPECT_EQ(refusal("{\"a\": " + word + ",}")->what_happened,
              "not JSON at line 1, column " + std::to_string(8 + word.size()));
  }
}

TEST(BadInput, JsonThatIsNoDescription) {
  for (const std::string text : {"null", "3", "\"llava\"", "[]", "[{}]", "true"})
    expect_refused_at(text, "file.json", text);
  for (const std::string text : {"{}", "{\"model_type\": null}", "{\"hidden_size\": 4096}"})
    expect_refused_at(text, "file.json.model_type", text);
  expect_refused_at("{\"model\": 3}", "file.json.model", "model");
}

TEST(BadInput, DeeplyNested) {
  for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"model\":", "}"}}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    const auto cut = refusal(text);
    ASSERT_TRUE(cut);
    EXPECT_EQ(cut->what_happened, "nested more than 64 levels deep");
    for (int i = 0; i < 100'000; ++i) text += close;
    EXPECT_EQ(refusal(text)->what_happened, "nested more than 64 levels deep");
  }
}

TEST(BadInput, TruncatedAnywhere) {
  for (const auto& [type, d] : families()) {
    const std::string text = d.value.dump(1);
    for (std::size_t n = 0; n + 1 < text.size(); n += 1 + text.size() / 64) {
      const auto e = refusal(text.substr(0, n));
      ASSERT_TRUE(e) << type << " cut at " << n;
      EXPECT_EQ(e->where, "file.json");
      EXPECT_TRUE(e->what_happened.starts_with("not JSON at line ") || e->what_happened == "the file is empty")
          << e->what();
    }
  }
}

TEST(BadInput, UnknownTypesAreNamedWithTheKnownOnes) {
  const auto e = refusal(R"({"model_type": "flamingo"})");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->where, "file.json.model_type");
  EXPECT_NE(e->what_happened.find("flamingo"), std::string::npos);
  for (const auto& [type, d] : families()) EXPECT_NE(e->hint.find(type), std::string::npos) << type;
  EXPECT_NE(e->hint.find("description format"), std::string::npos);
  for (const char* part : {"vision_config", "text_config"}) {
    json j = families().at("llava").value;
    j["model"][part]["model_type"] = "mamba";
    const auto inner = refusal(j.dump());
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner->where, std::string("file.json.model.") + part + ".model_type");
    EXPECT_NE(inner->hint.find(part == std::string("text_config") ? "llama" : "clip_vision_model"), std::string::npos);
  }
}

/// Calls f(pointer, path) for every dimension of a description.
template <class F>
void for_each_dimension(const json& document, F&& f) {
  static const std::vector<std::string> names{
      "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "patch_size",
      "depth",       "num_heads",         "embed_dim",         "num_key_value_heads"};
  for (const auto& [part, inner] : document.at("model").items()) {
    if (!inner.is_object()) continue;
    for (const auto& name : names)
      if (inner.contains(name) && inner[name].is_number_integer())
        f(json::json_pointer("/model/" + part + "/" + name), "file.json.model." + part + "." + name);
  }
}

TEST(BadInput, WrongTypesAndImpossibleDimensions) {
  const std::vector<json> bad{"x", "4096", true,  1.5,       json::object(), json::array(),         json::array({"a"}),
                              0,   -1,     -4096, INT64_MIN, INT64_MAX,      std::int64_t{1} << 40, UINT64_MAX,
                              1e30};
  int tried = 0;
  for (const auto& [type, d] : families())
    for_each_dimension(d.value, [&, &type = type, &d = d](const json::json_pointer& at, const std::string& path) {
      for (const auto& v : bad) {
        json j = d.value;
        j[at] = v;
        expect_refused_at(j.dump(), path, type + ": " + at.to_string() + " = " + v.dump());
        ++tried;
      }
    });
  EXPECT_GT(tried, 1500);
}

TEST(BadInput, HeadsThatDoNotDivide) {
  int tried = 0;
  for (const auto& [type, d] : families())
    for_each_dimension(d.value, [&, &type = type, &d = d](const json::json_pointer& at, const std::string& path) {
      // Where key-value heads are given too, theirs is the count that does not divide.
      const bool kv = path.ends_with("num_key_value_heads"),
                 vision = path.find("vision_config.num_") != std::string::npos && path.ends_with("heads") &&
                          !d.value.contains(at.parent_pointer() / "num_key_value_heads");
      if (!kv && !vision) return;
      json j = d.value;
      j[at] = 13;
      expect_refused_at(j.dump(), path, type + ": " + at.to_string() + " = 13");
      ++tried;
    });
  EXPECT_GT(tried, 20);
}

TEST(BadInput, TheLargestDimensionsEndQuickly) {
  for (const auto& [type, d] : families()) {
    json j = d.value;
    for_each_dimension(d.value, [&](const json::json_pointer& at, const std::string& path) {
      if (path.ends_with("layers") || path.ends_with("depth")) j[at] = 1024;
      if (path.ends_with("vocab_size")) j[at] = std::int64_t{1} << 31;
      if (path.ends_with("hidden_size") || path.ends_with("intermediate_size")) j[at] = 1 << 20;
    });
    const auto begin = std::chrono::steady_clock::now();
    refusal(j.dump());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << type;
  }
}

TEST(BadInput, PlansThatNoRunHas) {
  const Vlm vlm = vlmest::json::read_model(families().at("llava").value, "file.json");
  const std::vector<std::pair<std::string, Plan>> bad{{"plan.batch", {.batch = 0}},
                                                      {"plan.batch", {.batch = std::int64_t{1} << 31}},
                                                      {"plan.images", {.images = -1}},
                                                      {"plan.images", {.batch = 1 << 10, .images = 1 << 10}},
                                                      {"plan.seq", {.seq = 0}},
                                                      {"plan.seq", {.seq = std::int64_t{1} << 40}},
                                                      {"plan.text", {.text = -1}},
                                                      {"plan.new_tokens", {.new_tokens = -1}},
                                                      {"image size", {.image_height = -1, .image_width = 4}},
                                                      {"image size", {.image_height = 5, .image_width = 0}}};
  for (const auto& [where, plan] : bad) {
    try {
      Estimator()(vlm, plan, device());
      ADD_FAILURE() << where << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.where, where) << e.what();
    }
  }
}

TEST(BadInput, AnErrorIsOneLineWhateverItQuotes) {
  const Error e("a\nb", "c\x1b[31m", "d\r\te");
  EXPECT_EQ(std::string(e.what()), "a b: c [31m");
  EXPECT_EQ(e.where + e.what_happened + e.hint, "a bc [31md  e");
}

}  // namespace
}  // namespace vlmest::bad_input_test
