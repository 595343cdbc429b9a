// SPDX-License-Identifier: Apache-2.0
// What a description says beyond a config.json: blocks, the image processor, the layout of the cache. Every damaged
// value is refused by its path; the shipped example with spectral blocks counts what it promises.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/family/gemma3/rule.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/family/llava/family.hpp>
#include <vlmest/family/qwen2_vl/rule.hpp>
#include <vlmest/json/block.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::description_test {
namespace {

using Json = nlohmann::json;

std::string text(const std::string& path) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/" + path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}
Json shipped(const std::string& name) { return Json::parse(text("models/vlm/" + name + ".json")); }

/// Reads `document` and expects an Error at `where` whose message or hint holds `says`.
void refused(const Json& document, const std::string& where, const std::string& says) {
  try {
    json::read_model(document, "file");
    ADD_FAILURE() << where << " was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.where, where);
    EXPECT_NE((e.what_happened + " | " + e.hint).find(says), std::string::npos) << e.what_happened << " | " << e.hint;
  }
}

Json with(Json document, const char* key, const Json& value) {
  document[key] = value;
  return document;
}

const Json filter = {{"type", "spectral_filter"}, {"after", "vision_tower"}, {"grid", {24, 24}}, {"channels", 1024}};
const Json crop = {{"type", "spectral_crop"}, {"after", "vision_tower"}, {"from", {24, 24}}, {"to", {12, 12}}};

TEST(Description, NamesTheNearestKey) {
  const Json base = shipped("llava-next-7b");
  refused(with(base, "block", 1), "file.block", "did you mean 'blocks'");
  refused(with(base, "kvs", 1), "file.kvs", "did you mean 'kv'");
  refused(with(base, "blocks", Json::array({with(filter, "chanels", 3)})), "file.blocks[0].chanels",
          "did you mean 'channels'");
  refused(with(base, "blocks", Json::array({with(filter, "type", "spectral_filtr")})), "file.blocks[0].type",
          "did you mean 'spectral_filter'");
  refused(with(base, "image", {{"max_tile", 3}}), "file.image.max_tile", "known: native_size");
  refused(with(base, "kv", {{"layout", "page"}}), "file.kv.layout", "did you mean 'paged'");
  refused(with(base, "kv", {{"layout", "dense"}, {"block_size", 16}}), "file.kv.block_size", "known: layout, dtype");
}

TEST(Description, SchemaKnowsTheBlocks) {
  const Json schema = Json::parse(text("docs/reference/description.schema.json"));
  std::vector<std::string> described;
  for (const auto& option : schema["properties"]["blocks"]["items"]["anyOf"])
    described.push_back(option["properties"]["type"]["const"]);
  EXPECT_EQ(described, std::vector<std::string>(json::block_types.begin(), json::block_types.end()));
}

TEST(Description, RefusesDamagedBlocks) {
  const Json base = shipped("llava-next-7b");
  refused(with(base, "blocks", 3), "file.blocks", "list");
  refused(with(base, "blocks", Json::array({3})), "file.blocks[0]", "object");
  refused(with(base, "blocks", Json::array({Json::object()})), "file.blocks[0].type", "missing");
  for (const char* key : {"after", "grid", "channels"}) {
    Json b = filter;
    b.erase(key);
    refused(with(base, "blocks", Json::array({b})), std::string("file.blocks[0].") + key, "missing");
    refused(with(base, "blocks", Json::array({with(filter, key, Json::object())})),
            std::string("file.blocks[0].") + key, "expected");
  }
  refused(with(base, "blocks", Json::array({with(filter, "after", "vision_tower.layers.x")})), "file.blocks[0].after",
          "unknown point");
  refused(with(base, "blocks", Json::array({with(filter, "after", "vision_tower.layers.-1")})), "file.blocks[0].after",
          "unknown point");
  refused(with(base, "blocks", Json::array({with(filter, "grid", {24, 0})})), "file.blocks[0].grid", "between");
  refused(with(base, "blocks", Json::array({with(filter, "dims", 3)})), "file.blocks[0].dims", "between");
  refused(with(base, "blocks", Json::array({with(filter, "norm", "batch_norm")})), "file.blocks[0].norm", "layer_norm");
  refused(with(base, "blocks", Json::array({with(crop, "to", {25, 12})})), "file.blocks[0].to", "larger");
  refused(with(base, "blocks", Json::array({with(crop, "residual", true)})), "file.blocks[0].residual", "shape");
  refused(with(base, "blocks", Json::array({with(crop, "norm", "rms_norm")})), "file.blocks[0].channels", "missing");
  refused(with(base, "blocks", Json::array({with(crop, "from", {20, 20})})), "file.blocks[0].from", "24x24");
  refused(with(base, "blocks", Json::array({crop, crop})), "file.blocks[1].from", "12x12");
  refused(with(shipped("qwen2-vl-2b"), "blocks", Json::array({crop})), "file.blocks[0]", "cannot be resampled");
  const Json attention = {{"type", "attention"}, {"after", "projector"}, {"width", 4096}, {"heads", 3}};
  refused(with(base, "blocks", Json::array({attention})), "file.blocks[0].heads", "divide");
}

/// A block that the family has no place for is refused when the model is built.
TEST(Description, RefusesBlocksWithoutAPlace) {
  const Json linear = {{"type", "linear"}, {"after", "vision_tower"}, {"in", 1536}, {"out", 1536}};
  const Vlm vlm = json::read_model(with(shipped("qwen2-vl-2b"), "blocks", Json::array({linear})), "file");
  Plan plan{.text = 4};
  Builder b;
  Context c{b, plan, stack_of(plan)};
  EXPECT_THROW(build_inference(c, vlm, make_sequences(vlm, plan), 0), Error);
}

TEST(Description, SetsTheImageProcessor) {
  const auto read = [](const char* name, const Json& image) {
    return json::read_model(with(shipped(name), "image", image), "file");
  };
  const Vlm qwen = read("qwen2-vl-2b", {{"min_pixels", 784}, {"max_pixels", 78400}, {"native_size", {100, 200}}});
  EXPECT_EQ(get<image_processor::Qwen2Vl>(qwen.image_processor).budget.max_pixels, 78400);
  EXPECT_EQ(qwen.native, (ImageSize{100, 200}));
  EXPECT_EQ(
      get<image_processor::InternVl>(read("internvl3-2b", {{"max_tiles", 6}, {"tiling", "never"}}).image_processor)
          .tiling,
      image_processor::Tiling::never);
  EXPECT_TRUE(get<image_processor::Gemma3>(read("gemma-3-4b", {{"pan_and_scan", true}}).image_processor).pan_and_scan);
  EXPECT_EQ(get<image_processor::Pixtral>(read("pixtral-12b", {{"longest_edge", 512}}).image_processor).longest_edge,
            512);
  refused(with(shipped("qwen2-vl-2b"), "image", {{"min_pixels", 2000}, {"max_pixels", 1000}}), "file.image.min_pixels",
          "larger");
  refused(with(shipped("internvl3-2b"), "image", {{"tiling", "sometimes"}}), "file.image.tiling", "known: automatic");
  refused(with(shipped("pixtral-12b"), "image", {{"longest_edge", -3}}), "file.image.longest_edge", "between");
  refused(with(shipped("llava-1.5-7b"), "image", {{"native_size", Json::array({3})}}), "file.image.native_size",
          "two integers");
}

TEST(Description, LaysOutTheCache) {
  const auto kv = [](const Json& layout) {
    return json::read_model(with(shipped("llava-1.5-7b"), "kv", layout), "file");
  };
  EXPECT_EQ(kv({{"layout", "paged"}, {"block_size", 32}, {"dtype", "fp8"}}).kv->block, 32);
  const auto llama = [](const Vlm& v) { return std::get<LlamaConfig>(get<LlavaFamily>(v.family).language); };
  EXPECT_EQ(llama(kv({{"layout", "sliding"}, {"window", 512}})).window, 512);
  EXPECT_EQ(llama(kv({{"layout", "mla"}, {"latent_dim", 512}, {"rope_dim", 64}})).latent->rope_dim, 64);
  refused(with(shipped("llava-1.5-7b"), "kv", {{"layout", "mla"}, {"latent_dim", 512}}), "file.kv.rope_dim", "missing");
  refused(with(shipped("llava-1.5-7b"), "kv", {{"layout", "mla"}, {"latent_dim", 512}, {"rope_dim", 63}}),
          "file.kv.rope_dim", "even");
  refused(with(shipped("gemma-3-4b"), "kv", {{"layout", "sliding"}, {"window", 512}}), "file.kv.layout", "own layout");
  EXPECT_THROW(kv({{"dtype", "nf4"}}), Error);

  // As a whole: 32 layers, 4096 channels of keys and of values, 2 x 608 tokens of one sequence in pages of 32.
  const Device device = load_device(std::string(VLMEST_SOURCE_DIR) + "/models/device/h200-sxm.json");
  Estimator estimator;
  const Estimate e =
      estimator(kv({{"layout", "paged"}, {"block_size", 32}, {"dtype", "fp8"}}), {.batch = 2, .seq = 607}, device);
  EXPECT_EQ(e.inference.kv_cache, Bytes(32 * 2 * (2 * 608 * 4096 + 4)));
}

// LLaVA-NeXT-7B with a filter of 24 x 13 complex weights per channel and 12 x 12 of 24 x 24 features kept.
TEST(LlavaNextFft, CountsWhatItsBlocksAdd) {
  const Device device = load_device(std::string(VLMEST_SOURCE_DIR) + "/models/device/h200-sxm.json");
  const Vlm plain = json::read_model(shipped("llava-next-7b"), "file");
  const Vlm fft = json::read_model(shipped("llava-next-7b-fft"), "file");
  Estimator estimator;
  const Estimate without = estimator(plain, {.text = 40}, device);
  const Estimate e = estimator(fft, {.text = 40}, device);
  EXPECT_EQ(e.params.projector - without.params.projector, Elements(24 * 13 * 1024 * 2 + 2 * 1024));
  EXPECT_EQ(e.params.total(), without.params.total() + Elements(24 * 13 * 1024 * 2 + 2 * 1024));
  EXPECT_EQ(without.sequences.image_tokens, 576 + 48 * 48 + 48);
  EXPECT_EQ(e.sequences.image_tokens, 144 + 24 * 24 + 24);
  EXPECT_EQ(without.inference.fft, Bytes(0));

  // Five tiles of 1024 channels. At the inverse transform of the filter: product, result, clone and contiguous copy.
  constexpr std::int64_t real = 5 * 4 * 24 * 24 * 1024, half = 5 * 8 * 24 * 13 * 1024;
  EXPECT_EQ(e.inference.fft, Bytes(3 * half + real));
  const auto buffers = fft_buffers(estimator.graph());
  ASSERT_EQ(buffers.size(), 2U);
  EXPECT_EQ(buffers[0].bytes, Bytes(3 * half + real));
  // The crop's largest moment is its forward transform: fp32 copy, contiguous copy, half spectrum.
  EXPECT_EQ(buffers[1].bytes, Bytes(2 * real + half));
}

TEST(LlavaNextFft, RunsInEveryTypeAndProfile) {
  const Vlm fft = json::read_model(shipped("llava-next-7b-fft"), "file");
  const Device device = load_device(std::string(VLMEST_SOURCE_DIR) + "/models/device/h200-sxm.json");
  Estimator estimator;
  constexpr std::int64_t real = 5 * 4 * 24 * 24 * 1024, half = 5 * 8 * 24 * 13 * 1024;
  for (const Runtime runtime : runtimes)
    for (const DType type : {DType::bf16, DType::fp16, DType::fp32}) {
      const Estimate e = estimator(fft, {.batch = 1, .text = 40, .dtype = type, .runtime = runtime}, device);
      EXPECT_EQ(e.inference.fft, Bytes(3 * half + real)) << name(type);
    }
  Plan odd{.batch = 3, .images = 2, .image_height = 333, .image_width = 500, .text = 40};
  EXPECT_GT(estimator(fft, odd, device).inference.fft, Bytes(0));
}

}  // namespace
}  // namespace vlmest::description_test
