// SPDX-License-Identifier: Apache-2.0
// Training estimates as others read them: keys, sums, flags, and what happens where none can be made.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_training_test {
namespace {

const std::string small = "--config smolvlm-256m ";

Json train(const std::string& flags) { return Json::parse(good(small + "--json --phase train " + flags)); }
std::int64_t number(const Json& v) { return v.get<std::int64_t>(); }

TEST(TrainingJson, HasWhatOthersRead) {
  const Json e = train("--per-layer");
  EXPECT_FALSE(e.contains("inference"));
  has(e["training"],
      "/weights_bytes:int /gradients_bytes:int /optimizer_bytes:int /saved_activations_bytes:int "
      "/checkpointed_tensors:int "
      "/fft_bytes:int /forward/peak_bytes:int /forward/end_bytes:int /backward/peak_bytes:int /step/peak_bytes:int "
      "/peak_bytes:int "
      "/reserved_bytes:int /reserved_in_loop_bytes:int /flops:int /gpu_ms:number /wall_ms:number /kernels:int "
      "/bound:string /peak/phase:string "
      "/peak/bytes:int /peak/tensors:array /fits:boolean");
  for (const auto& t : e["training"]["peak"]["tensors"])
    has(t, "/name:string /scope:string /role:string /shape:array /dtype:string /bytes:int");
  for (const auto& l : e["layers"])
    has(l,
        "/scope:string /params:int /weights_bytes:int /saved_bytes:int /kv_bytes:int /fft_bytes:int "
        "/flops_forward:int /flops_backward:int /forward_us:number /intensity:number /bound:string");
}

TEST(TrainingJson, AddsUp) {
  for (const std::string flags :
       {"", "--optimizer sgd --batch 2", "--checkpointing full", "--lora 8", "--freeze vision"}) {
    const Json e = train("--per-layer --top 5 " + flags), &t = e["training"];
    EXPECT_EQ(t["peak_bytes"],
              std::max({t["forward"]["peak_bytes"], t["backward"]["peak_bytes"], t["step"]["peak_bytes"]}));
    EXPECT_EQ(t["peak"]["bytes"], t["peak_bytes"]);
    EXPECT_EQ(t["peak_bytes"], t[t["peak"]["phase"].get<std::string>()]["peak_bytes"]);
    std::int64_t sum = 0, saved = 0, forward = 0, backward = 0, params = 0;
    for (const auto& x : t["peak"]["tensors"]) sum += number(x["bytes"]);
    EXPECT_EQ(sum, number(t["peak_bytes"])) << flags;
    EXPECT_LE(number(t["peak_bytes"]), number(t["reserved_bytes"]));
    for (const auto& l : e["layers"]) {
      saved += number(l["saved_bytes"]);
      forward += number(l["flops_forward"]);
      backward += number(l["flops_backward"]);
      params += number(l["params"]);
    }
    EXPECT_EQ(saved, number(t["saved_activations_bytes"])) << flags;
    EXPECT_EQ(forward, number(t["forward"]["flops"])) << flags;
    EXPECT_EQ(backward, number(t["backward"]["flops"])) << flags;
    EXPECT_EQ(params, number(e["model"]["params"]["total"])) << flags;
    EXPECT_EQ(number(t["forward"]["end_bytes"]), number(t["backward"]["start_bytes"]));
    EXPECT_EQ(number(t["step"]["end_bytes"]), number(t["forward"]["start_bytes"])) << flags;
  }
}

TEST(TrainingJson, SomeLayersAreCheckpointed) {
  const auto saved = [](const std::string& flags) {
    return number(train(flags)["training"]["saved_activations_bytes"]);
  };
  const auto none = saved(""), some = saved("--checkpointing full --checkpoint-layers 10"),
             all = saved("--checkpointing full");
  EXPECT_LT(some, none);
  EXPECT_LT(all, some);
  for (const std::string flags : {"--checkpoint-layers 10", "--checkpointing vision --checkpoint-layers 10"}) {
    const Called r = run(small + "--phase train " + flags);
    EXPECT_EQ(r.code, 2) << flags;
    EXPECT_NE(r.err.find("--checkpointing full or selective"), std::string::npos) << r.err;
  }
}

TEST(TrainingJson, FollowsTheAllocatorsSettings) {
  const Json plain = train("--batch 2")["training"],
             expandable = train("--batch 2 --alloc-conf expandable_segments:True")["training"];
  EXPECT_LT(number(expandable["reserved_bytes"]), number(plain["reserved_bytes"]));
  for (const Json* t : {&plain, &expandable}) {
    const Json& f = (*t)["peak"]["fragmentation"];
    EXPECT_EQ(number(f["reserved_bytes"]),
              number((*t)["peak_bytes"]) + number(f["releasable_bytes"]) + number(f["split_bytes"]));
    EXPECT_GE(number(f["releasable_bytes"]) + number(f["split_bytes"]), number(f["largest_free_bytes"]));
  }
  const Called r = run(small + "--phase train --alloc-conf expandable_segment:True");
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.err.rfind("error: --alloc-conf: ", 0), 0u) << r.err;
  EXPECT_NE(r.err.find("expandable_segments"), std::string::npos) << r.err;
}

TEST(TrainingJson, FrozenLayersHandGradientsOn) {
  // A frozen tower gets a backward of its own only where its embeddings' results collect gradients.
  const std::string frozen = "--freeze vision --checkpointing full --input-gradients ";
  const Json off = train(frozen + "off")["training"], on = train(frozen + "on")["training"];
  EXPECT_LT(number(off["backward"]["flops"]), number(on["backward"]["flops"]));
  EXPECT_EQ(train("--freeze vision --checkpointing full")["training"]["flops"], on["flops"]);
}

TEST(TrainingJson, FollowsTheFlags) {
  const Json base = train(""), &t = base["training"];
  const std::int64_t params = number(base["model"]["params"]["total"]);
  EXPECT_EQ(number(base["model"]["trainable"]), params);
  EXPECT_EQ(number(t["optimizer_bytes"]), 2 * 2 * params);  // two moments in bf16
  const auto training = [](const std::string& flags) { return train(flags)["training"]; };
  EXPECT_EQ(training("--optimizer sgd")["optimizer_bytes"], 0);
  EXPECT_EQ(number(training("--optimizer sgd-momentum")["optimizer_bytes"]), 2 * params);
  EXPECT_LT(number(training("--optimizer adafactor")["optimizer_bytes"]), params / 10);

  const Json full = training("--checkpointing full"), selective = training("--checkpointing selective");
  EXPECT_LT(number(full["saved_activations_bytes"]), number(selective["saved_activations_bytes"]));
  EXPECT_LT(number(selective["saved_activations_bytes"]), number(t["saved_activations_bytes"]));
  EXPECT_GT(number(full["flops"]), number(t["flops"]));
  EXPECT_EQ(number(t["checkpointed_tensors"]), 0);
  EXPECT_GT(number(full["checkpointed_tensors"]), 1000);
  EXPECT_EQ(full["checkpointed_tensors"], selective["checkpointed_tensors"]) << "which are saved is the same";

  const Json frozen = train("--freeze vision,projector");
  EXPECT_EQ(frozen["model"]["trainable"], base["model"]["params"]["language"]);
  EXPECT_LT(number(frozen["training"]["flops"]), number(t["flops"]));

  // Rank 8 on q, k, v, o of 30 layers of width 576 with 9 and 3 heads of 64.
  const Json lora = train("--lora 8");
  const std::int64_t adapters = 30 * 8 * (2 * (576 + 576) + 2 * (576 + 192));
  EXPECT_EQ(number(lora["model"]["trainable"]), adapters);
  EXPECT_EQ(lora["model"]["params"], base["model"]["params"]);
  EXPECT_EQ(train("--lora 8 --lora-targets q_proj,k_proj,v_proj,o_proj"), lora);
  EXPECT_EQ(train("--lora 8 --lora-targets q,k,v,o"), lora);
  EXPECT_EQ(number(train("--lora 8 --lora-targets q")["model"]["trainable"]), 30 * 8 * (576 + 576));
  EXPECT_GT(number(train("--lora 8 --lora-dropout 0.1")["training"]["saved_activations_bytes"]),
            number(lora["training"]["saved_activations_bytes"]));
  EXPECT_EQ(Json::parse(good(small + "--json --lora 8"))["model"]["trainable"], adapters);

  const Json four = training("--gradient-accumulation 4");
  EXPECT_EQ(number(four["flops"]), 4 * number(t["flops"]));
  EXPECT_EQ(four["micro_batches"], 4);
  EXPECT_GE(number(four["forward"]["peak_bytes"]), number(t["forward"]["peak_bytes"]));
}

TEST(TrainingJson, StandsBesideInference) {
  const Json all = Json::parse(good(small + "--json --per-layer"));
  EXPECT_EQ(all["training"], train("")["training"]);
  EXPECT_EQ(all["inference"], Json::parse(good(small + "--json --phase inference"))["inference"]);
  std::int64_t backward = 0;
  for (const auto& l : all["layers"]) backward += number(l["flops_backward"]);
  EXPECT_EQ(backward, number(all["training"]["backward"]["flops"]));
}

TEST(TrainingJson, NamesWhatTensorsBelongTo) {
  const Json e = Json::parse(good("--config llava-next-7b --json --phase train --top 100000"));
  std::set<std::string> names, scopes;
  for (const auto& x : e["training"]["peak"]["tensors"]) {
    if (x["role"] != "gradient" && x["role"] != "optimizer_state") continue;
    names.insert(x["name"]);
    scopes.insert(x["scope"]);
    EXPECT_NE(x["name"].get<std::string>().find(" of "), std::string::npos) << x;
  }
  EXPECT_TRUE(names.contains("gradient of weight"));
  EXPECT_TRUE(names.contains("exp_avg_sq of weight"));
  EXPECT_TRUE(scopes.contains("model.language_model.layers.17.mlp.gate_proj"));
}

TEST(Training, ThatCannotBeEstimatedLeavesInference) {
  const std::string frozen = small + "--freeze vision,projector,language ";
  const Called all = run(frozen + "--json");
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.err.rfind("note: training is not estimated: ", 0), 0u);
  EXPECT_FALSE(Json::parse(all.out).contains("training"));
  EXPECT_TRUE(Json::parse(all.out).contains("inference"));
  const Called text = run(frozen);
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("\ntraining is not estimated: "), std::string::npos);
  const Called alone = run(frozen + "--phase train");
  EXPECT_EQ(alone.code, 3);
  EXPECT_EQ(alone.out, "");
  EXPECT_EQ(alone.err.rfind("error: ", 0), 0u);
}

TEST(Training, ReportShowsPhasesStatesCurveAndCause) {
  const std::string text = good(small + "--images 0 --phase train --verbose", "", "LC_ALL=C");
  for (const char* part :
       {"fits: peak ", "\ntraining: adamw; ", "\n  forward ", "\n  backward ", "\n  step ", "\n  states of adamw ",
        "\n  activations saved for the backward ", "\n  |forward", "\npeak of ", "gradient of weight"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_NE(text.find("\n  at the peak of  during "), std::string::npos);
  // The curve reaches its scale's both ends and stays within 80 columns, its phases below it.
  const std::size_t at = text.find("\n", text.find("\nallocated over the step, ") + 1) + 1;
  const std::string curve = text.substr(at, text.find('\n', at) - at);
  EXPECT_LE(curve.size(), 80u);
  EXPECT_NE(curve.find('_'), std::string::npos);
  EXPECT_NE(curve.find('@'), std::string::npos);
  EXPECT_EQ(text.substr(at + curve.size() + 1, 11), "  |forward ");
  EXPECT_EQ(text.find("▁"), std::string::npos);
  EXPECT_NE(good(small + "--phase train --verbose", "", "LC_ALL=C.UTF-8").find("▁"), std::string::npos);
  EXPECT_NE(good(small + "--phase train --format markdown").find("\n## Training\n"), std::string::npos);
  EXPECT_EQ(good(small + "--phase inference").find("training"), std::string::npos);
  // Equal tensors of the layers stand in one line.
  EXPECT_NE(good(small + "--phase train --top 100").find("text_model.layers.0-29.mlp.down_proj "), std::string::npos);
}

}  // namespace
}  // namespace cli::cli_training_test
#endif
