// SPDX-License-Identifier: Apache-2.0
// The estimate's JSON: the keys that others read, what adds up, and what the flags change.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_json_test {
namespace {

TEST(EstimateJson, HasWhatOthersRead) {
  const Json e = Json::parse(good(model + "--json --per-layer"));
  has(e,
      "/schema_version:int /model/name:string /model/family:string /model/params/total:int /model/params/vision:int "
      "/model/params/projector:int /model/params/language:int /model/trainable:int /inputs/batch:int /inputs/seq:int "
      "/inputs/text_tokens:int /inputs/image_tokens:int /inputs/images:int /inputs/image_size/0:int "
      "/inputs/image_size/1:int "
      "/device/name:string /device/memory_bytes:int /inference/weights_bytes:int /inference/kv_cache_bytes:int "
      "/inference/fft_bytes:int /inference/prefill/peak_bytes:int /inference/prefill/reserved_bytes:int "
      "/inference/prefill/flops:int /inference/prefill/flops_causal:int /inference/prefill/gpu_ms:number "
      "/inference/prefill/wall_ms:number /inference/prefill/kernels:int /inference/prefill/bound:string "
      "/inference/decode/kv_len:int /inference/decode/peak_bytes:int /inference/decode/flops:int "
      "/inference/decode/gpu_ms:number "
      "/inference/decode/wall_ms:number /inference/decode/kernels:int /inference/decode/bound:string "
      "/inference/decode/tokens_per_s:number /inference/peak/phase:string /inference/peak/bytes:int "
      "/inference/peak/tensors:array "
      "/inference/fits:boolean /training:object /layers:array");
  for (const auto& t : e["inference"]["peak"]["tensors"])
    has(t, "/name:string /scope:string /role:string /shape:array /dtype:string /bytes:int");
  for (const auto& l : e["layers"])
    has(l,
        "/scope:string /params:int /weights_bytes:int /kv_bytes:int /fft_bytes:int /flops_forward:int "
        "/forward_us:number "
        "/intensity:number /bound:string");
  EXPECT_EQ(e["schema_version"], 1);
  EXPECT_EQ(e["model"]["name"], "llava-next-7b");
  EXPECT_EQ(e["model"]["family"], "llava_next");
  EXPECT_EQ(e["model"]["params"],
            Json({{"total", 7063431168}, {"vision", 303507456}, {"projector", 20983808}, {"language", 6738939904}}));
  EXPECT_EQ(e["model"]["trainable"], 7063431168);
  EXPECT_EQ(e["device"]["name"], "h200-sxm");
}

TEST(EstimateJson, AddsUp) {
  const Json e = Json::parse(good(model + "--json --per-layer --top 4 --batch 2"));
  const Json& peak = e["inference"]["peak"];
  EXPECT_EQ(peak["tensors"].size(), 5u);
  EXPECT_EQ(peak["tensors"].back()["name"], "other");
  std::int64_t sum = 0, last = INT64_MAX;
  for (const auto& t : peak["tensors"]) {
    sum += t["bytes"].get<std::int64_t>();
    if (t["name"] == "other") continue;
    EXPECT_LE(t["bytes"].get<std::int64_t>(), last);
    last = t["bytes"];
  }
  EXPECT_EQ(peak["bytes"], sum);
  EXPECT_EQ(peak["bytes"], std::max(e["inference"]["prefill"]["peak_bytes"], e["inference"]["decode"]["peak_bytes"]));
  std::int64_t params = 0, kv = 0, flops = 0;
  for (const auto& l : e["layers"]) {
    params += l["params"].get<std::int64_t>();
    kv += l["kv_bytes"].get<std::int64_t>();
    flops += l["flops_forward"].get<std::int64_t>();
  }
  EXPECT_EQ(e["model"]["params"]["total"], params);
  EXPECT_EQ(e["inference"]["kv_cache_bytes"], kv);
  EXPECT_EQ(e["inference"]["prefill"]["flops"], flops);
  // 2 sequences, 32 layers, keys and values, 4,096 channels of 2 bytes.
  EXPECT_EQ(kv, 2 * 32 * 2 * 4096 * 2 * e["inputs"]["seq"].get<std::int64_t>());
}

TEST(EstimateJson, FollowsTheFlags) {
  const auto inputs = [](const std::string& flags) { return Json::parse(good(model + "--json " + flags))["inputs"]; };
  EXPECT_EQ(inputs(""), Json({{"batch", 1},
                              {"seq", 3184},
                              {"text_tokens", 256},
                              {"image_tokens", 2928},
                              {"marker_tokens", 0},
                              {"images", 1},
                              {"image_size", {672, 672}},
                              {"image_sizes", {{672, 672}}},
                              {"padding_tokens", 0},
                              {"vision_chunk", 0},
                              {"target_tokens", 0}}));
  EXPECT_EQ(inputs("--batch 8 --seq 4096"), Json({{"batch", 8},
                                                  {"seq", 4096},
                                                  {"text_tokens", 1168},
                                                  {"image_tokens", 2928},
                                                  {"marker_tokens", 0},
                                                  {"images", 1},
                                                  {"image_size", {672, 672}},
                                                  {"image_sizes", {{672, 672}}},
                                                  {"padding_tokens", 0},
                                                  {"vision_chunk", 0},
                                                  {"target_tokens", 0}}));
  EXPECT_EQ(inputs("--text 100 --images 2 --image-size 336x336")["image_tokens"],
            2 * inputs("--image-size 336x336")["image_tokens"].get<int>());
  EXPECT_EQ(inputs("--text 7 --images 0")["seq"], 7);
  EXPECT_EQ(inputs("--image-size 336x672")["image_size"], Json({336, 672}));
  EXPECT_EQ(inputs("--vision-chunk 3")["vision_chunk"], 3);
  const Json mixed = inputs("--batch 3 --image-size 336x336,672x672");
  const int small = inputs("--image-size 336x336")["seq"], large = inputs("--image-size 672x672")["seq"];
  EXPECT_EQ(mixed["seq"], large);
  EXPECT_EQ(mixed["padding_tokens"], 2 * (large - small));
  EXPECT_EQ(mixed["image_size"], Json({336, 336}));
  EXPECT_EQ(mixed["image_sizes"], Json({{336, 336}, {672, 672}}));
  const Json base = Json::parse(good(model + "--json"));
  EXPECT_FALSE(base.contains("layers"));
  EXPECT_EQ(base["inference"]["decode"]["kv_len"], 3184 + 128);
  const Json one = Json::parse(good(model + "--json --phase inference --new-tokens 1"));
  EXPECT_FALSE(one.contains("training"));
  EXPECT_EQ(one["inference"]["decode"]["kv_len"], 3184 + 1);
  const Json train = Json::parse(good(model + "--json --phase train --freeze vision,language"));
  EXPECT_FALSE(train.contains("inference"));
  EXPECT_EQ(train["model"]["trainable"], 20983808);
  EXPECT_EQ(Json::parse(good(model + "--json --freeze vision --freeze language"))["model"]["trainable"], 20983808);
  const Json fp32 = Json::parse(good(model + "--json --dtype fp32"));
  EXPECT_EQ(fp32["inference"]["kv_cache_bytes"], 2 * base["inference"]["kv_cache_bytes"].get<std::int64_t>());
  EXPECT_GT(Json::parse(good(model + "--json --logits all"))["inference"]["prefill"]["flops"],
            base["inference"]["prefill"]["flops"]);
  EXPECT_LT(Json::parse(good(model + "--json --profile fused"))["inference"]["prefill"]["kernels"],
            base["inference"]["prefill"]["kernels"]);
  EXPECT_GT(Json::parse(good(model + "--json --attention eager"))["inference"]["prefill"]["peak_bytes"],
            base["inference"]["prefill"]["peak_bytes"]);
  EXPECT_LT(Json::parse(good(model + "--json --phase inference --weights int4"))["inference"]["weights_bytes"],
            base["inference"]["weights_bytes"]);
}

}  // namespace
}  // namespace cli::cli_json_test
#endif
