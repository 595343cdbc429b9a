// SPDX-License-Identifier: Apache-2.0
// How a layout over GPUs is asked for. tests/launch executes the lines where their libraries are.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/parallel/launch.hpp>

namespace vlmest::parallel::launch_test {
namespace {

/// A tower of two layers and a language model of two, of which one has an expert list inside, and a sequence of
/// linears.
Graph model() {
  Graph g;
  g.scopes.resize(14);
  const auto scope = [&](std::size_t s, ScopeId parent, const char* name, std::int32_t index = none) {
    g.scopes[s].parent = parent;
    g.scopes[s].name = name;
    g.scopes[s].index = index;
  };
  scope(1, 0, "model");
  scope(2, 1, "visual");
  scope(3, 2, "blocks", 0);
  scope(4, 2, "blocks", 1);
  scope(5, 1, "layers", 0);
  scope(6, 1, "layers", 1);
  scope(7, 6, "experts", 3);
  scope(8, 0, "lm_head");
  for (const std::size_t layer : {3, 4, 5}) scope(layer + 6, static_cast<ScopeId>(layer), "mlp");
  scope(12, 2, "merger");
  scope(13, 12, "mlp", 0);
  return g;
}

/// Hosts of eight GPUs.
Network hosts_of_8() { return {"test", {{.name = "host", .gpus = 8}, {.name = "cluster", .gpus = 1024}}}; }

std::string text(const Layout& l, std::string_view tool, const Plan& plan = {}, bool training = true) {
  for (const Launch& x : launch(l, plan, hosts_of_8(), model(), true, training))
    if (x.tool == tool) return x.text;
  return {};
}
bool has(const std::string& where, const char* what) { return where.find(what) != std::string::npos; }

TEST(Launch, ListsOfLayersAreTheOutermost) {
  EXPECT_EQ(layer_lists(model()), (std::vector<std::string>{"model.visual.blocks", "model.layers"}));
}

TEST(Launch, HostsHaveAsManyProcessesAsGpus) {
  EXPECT_TRUE(launch({}, {}, hosts_of_8(), model(), true, true).empty());
  EXPECT_EQ(text({.dp = 4}, "torchrun"), "torchrun --standalone --nproc-per-node 4 train.py");
  EXPECT_EQ(text({.dp = 24}, "torchrun"),
            "torchrun --nnodes 3 --rdzv-backend c10d --rdzv-endpoint HOST:29500 --nproc-per-node 8 train.py");
  EXPECT_TRUE(has(text({.dp = 24}, "accelerate"), "--num_processes 24 --num_machines 3"));
}

TEST(Launch, ShardsAreAskedForAsTheyAreEstimated) {
  const std::string lines = text({.dp = 2, .shard = Shard::fsdp2, .reduce_dtype = DType::fp32}, "python");
  EXPECT_TRUE(has(lines, "[*model.model.visual.blocks, *model.model.layers]")) << lines;
  EXPECT_TRUE(has(lines, "mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.float32)")) << lines;
  EXPECT_TRUE(
      has(text({.dp = 2, .shard = Shard::fsdp2, .param_dtype = DType::bf16, .reduce_dtype = DType::fp32}, "python"),
          "mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)"));
  EXPECT_TRUE(has(text({.dp = 2, .shard = Shard::fsdp2, .reshard_after_forward = false}, "python"),
                  "reshard_after_forward=False"));
  EXPECT_TRUE(has(text({.dp = 2, .bucket_views = true}, "python"), "gradient_as_bucket_view=True"));
  const std::string zero = text({.dp = 2, .shard = Shard::zero2}, "deepspeed", {.batch = 3});
  EXPECT_TRUE(has(zero, "\"train_micro_batch_size_per_gpu\": 3")) << zero;
  EXPECT_TRUE(has(zero, "\"stage\": 2")) << zero;
  EXPECT_TRUE(text({.dp = 2}, "deepspeed").empty());
  EXPECT_TRUE(text({.dp = 2, .shard = Shard::zero2}, "megatron").empty()) << "it has no such stage";
}

/// What a tool cannot be told is not half told.
TEST(Launch, AToolThatCannotIsLeftOut) {
  for (const Layout& l :
       {Layout{.dp = 2, .bucket_views = true}, Layout{.dp = 2, .shard = Shard::fsdp2, .param_dtype = DType::bf16},
        Layout{.dp = 2, .shard = Shard::fsdp2, .reduce_dtype = DType::fp32}}) {
    EXPECT_TRUE(text(l, "accelerate").empty());
    EXPECT_TRUE(text(l, "megatron").empty());
    EXPECT_FALSE(text(l, "python").empty());
  }
  EXPECT_TRUE(text({.dp = 2, .shard = Shard::fsdp2}, "accelerate", {.amp = true}).empty());
  EXPECT_TRUE(text({.pp = 2, .stages = {1, 1}}, "megatron").empty());
  EXPECT_TRUE(text({.pp = 2, .schedule = {ScheduleKind::zero_bubble, 1}}, "python").empty()) << "torch has no ZB-H1";
  EXPECT_TRUE(has(text({.dp = 2, .pp = 2}, "python"), "(2, 2), mesh_dim_names=(\"pp\", \"dp\")"));
  EXPECT_TRUE(has(text({.dp = 2, .pp = 2}, "python"), "DistributedDataParallel(part(rank), process_group="));
  EXPECT_FALSE(has(text({.pp = 2}, "python"), "DistributedDataParallel"));
}

TEST(Launch, DividedLayersAndPipelines) {
  EXPECT_TRUE(has(text({.tp = 2}, "python", {}, false), "DistributedConfig(tp_size=2)"));
  EXPECT_TRUE(has(text({.ep = 4}, "python"), "tp_size=4, enable_expert_parallel=True"));
  EXPECT_TRUE(text({.tp = 2}, "accelerate").empty());
  EXPECT_TRUE(has(text({.pp = 2, .micro_batches = 6}, "python"), "Schedule1F1B(stage, n_microbatches=6"));
  const std::string interleaved = text({.pp = 2, .schedule = {ScheduleKind::interleaved, 3}}, "megatron");
  EXPECT_TRUE(has(interleaved, "--pipeline-model-parallel-size 2")) << interleaved;
  EXPECT_TRUE(has(interleaved, "--num-virtual-stages-per-pipeline-rank 3")) << interleaved;
}

TEST(Launch, PartsOfSequencesAreCutBehindTheTower) {
  const std::string lines = text({.dp = 2, .cp = 4, .shard = Shard::fsdp2}, "python");
  EXPECT_TRUE(has(lines, "(2, 4), mesh_dim_names=(\"dp\", \"cp\")")) << lines;
  EXPECT_TRUE(has(lines, "with context_parallel(mesh[\"cp\"], buffers=[places, shift_labels]")) << lines;
  EXPECT_TRUE(has(lines, "fully_shard(model)\n")) << "over all of them: " << lines;
  EXPECT_LT(lines.find("fully_shard(model)"), lines.find("with context_parallel")) << lines;
  EXPECT_TRUE(has(text({.cp = 2}, "python"), "model = DistributedDataParallel(model)\n"));
  EXPECT_TRUE(text({.cp = 2}, "accelerate").empty()) << "it cuts the token ids";
  EXPECT_TRUE(has(text({.cp = 2}, "megatron"), "--context-parallel-size 2"));
}

TEST(Launch, AMeshHasItsDimensionsFromTheOutermost) {
  const std::string sharded = text({.dp = 4, .tp = 2, .shard = Shard::fsdp2}, "python");
  EXPECT_TRUE(has(sharded, "init_device_mesh(\"cuda\", (4, 2), mesh_dim_names=(\"dp\", \"tp\"))")) << sharded;
  EXPECT_TRUE(has(sharded, "fully_shard(layer, mesh=mesh[\"dp\"])")) << sharded;
  EXPECT_TRUE(has(sharded, "two groups")) << sharded;
  EXPECT_TRUE(has(text({.dp = 4, .tp = 2}, "python"), "DistributedDataParallel(model, device_mesh=mesh[\"dp\"])"));
  EXPECT_FALSE(has(text({.dp = 4, .tp = 2}, "python", {}, false), "DistributedDataParallel"));
  const std::string stages = text({.dp = 2, .tp = 4, .pp = 3}, "python");
  EXPECT_TRUE(has(stages, "(3, 2, 4), mesh_dim_names=(\"pp\", \"dp\", \"tp\")")) << stages;
  EXPECT_TRUE(has(stages, "DistributedDataParallel(part(rank), device_mesh=mesh[\"dp\"])")) << stages;
  EXPECT_TRUE(has(text({.dp = 2, .tp = 4, .pp = 3}, "megatron"),
                  "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 3"));
}

TEST(Launch, StagesDivideTheirStates) {
  const Layout l{.dp = 2, .pp = 2, .shard = Shard::fsdp2, .reduce_dtype = DType::fp32};
  const std::string lines = text(l, "python");
  EXPECT_TRUE(has(lines, "import fully_shard, MixedPrecisionPolicy")) << lines;
  EXPECT_TRUE(has(lines, "fully_shard(layer, mesh=mesh[\"dp\"], mp_policy=")) << lines;
  EXPECT_TRUE(has(lines, "fully_shard(module, mesh=mesh[\"dp\"], mp_policy=")) << lines;
  EXPECT_TRUE(has(lines, "PipelineStage(module, rank, 2, device, group=group)")) << lines;
  EXPECT_FALSE(has(lines, "DistributedDataParallel")) << lines;
  const std::string kept = text({.dp = 2, .pp = 2, .shard = Shard::fsdp2, .reshard_after_forward = false}, "python");
  EXPECT_TRUE(has(kept, "fully_shard(layer, mesh=mesh[\"dp\"], reshard_after_forward=False)")) << kept;
  EXPECT_TRUE(has(kept, "fully_shard(module, mesh=mesh[\"dp\"])")) << "a root's weights stay anyway: " << kept;
  EXPECT_TRUE(text(l, "megatron").empty());
}

TEST(Launch, ExpertsAreDividedInReplicas) {
  const std::string lines = text({.dp = 4, .ep = 2, .shard = Shard::fsdp2}, "python");
  EXPECT_TRUE(has(lines, "(4, 2), mesh_dim_names=(\"dp\", \"tp\")")) << lines;
  EXPECT_TRUE(has(lines, "DistributedConfig(enable_expert_parallel=True)")) << lines;
  EXPECT_LT(lines.find("enable_expert_parallel"), lines.find("apply_tensor_parallelism(model")) << lines;
  EXPECT_TRUE(has(lines, "fully_shard(layer, mesh=mesh[\"dp\"])")) << lines;
  EXPECT_TRUE(has(lines, "two groups")) << lines;
  EXPECT_FALSE(has(text({.dp = 4, .tp = 2}, "python"), "expert"));
  EXPECT_TRUE(text({.dp = 4, .ep = 2}, "megatron").empty()) << "its ranks have tokens of their own";
}

}  // namespace
}  // namespace vlmest::parallel::launch_test
