// SPDX-License-Identifier: Apache-2.0
// What a request is read as where neither settings nor a whole stack explain it: by a source line, a size, or what an
// engine's log has left.
#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/stack/cut_stack.hpp>
#include <vlmest/diagnose/evidence/stack/source_line.hpp>
#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_budget.hpp>
#include <vlmest/diagnose/verdict/judge_run.hpp>
#include <vlmest/diagnose/verdict/likely_tensor.hpp>

#include "files.hpp"

namespace vlmest::likely_reading_test {
namespace {

using namespace diagnose;

constexpr std::int64_t gib = std::int64_t{1} << 30;

TEST(SourceLine, GivesShapeAndType) {
  const auto t = tensor_made_in("buf7 = empty_strided_cuda((151936, 2048), (2048, 1), torch.bfloat16)");
  ASSERT_TRUE(t);
  EXPECT_EQ(to_string(t->shape), "151936x2048");
  EXPECT_EQ(t->dtype, "bf16");
  EXPECT_EQ(t->bytes, Bytes(std::int64_t{151936} * 2048 * 2));
  EXPECT_EQ(tensor_made_in("x = torch.zeros((3, 5), dtype=torch.int64)")->bytes, Bytes(120));
  // The type that it is made in is the first.
  EXPECT_EQ(tensor_made_in("x = torch.zeros((3, 5), dtype=torch.float32).to(torch.bfloat16)")->bytes, Bytes(60));
  EXPECT_EQ(tensor_made_in("x = torch.ones([7], device=torch.device(0), dtype=torch.half)")->dtype, "fp16");
  for (const char* line :
       {"buf0 = empty_strided_cuda((s0, 2048), (2048, 1), torch.float32)", "x = torch.empty((4, 4))",
        "x = torch.empty(4, 4, dtype=torch.float32)", "x = torch.zeros((0, 4), dtype=torch.float32)", "torch.ones((",
        "x = torch.zeros((-3, 4), dtype=torch.float32)", "x = torch.zeros((3, 4), dtype=torch.float8_e4m3fn)",
        "y = x + 1", "x = torch.full((9223372036854775807, 9), 0, dtype=torch.float32)"})
    EXPECT_FALSE(tensor_made_in(line)) << line;
}

OomMessage message(const std::string& text) {
  const auto all = find_oom_messages(text);
  return all.empty() ? OomMessage{} : all.front();
}

TEST(SourceLine, WithoutItsStackIsAFrame) {
  const std::string oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n";
  EXPECT_EQ(message("    attn_weights = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(self.head_dim)\n" + oom).site,
            AllocationSite::score_matrix);
  EXPECT_EQ(message("    logits = logits.float()\n    ^^^^^^^^\n" + oom).site, AllocationSite::logits_upcast);
  EXPECT_EQ(message("our attention_mask( is long and then it fails\n" + oom).site, AllocationSite::unknown);
  EXPECT_EQ(message("logits = logits.float()\nwe changed that line\n" + oom).site, AllocationSite::unknown);
}

TEST(SourceLine, MayStandBehindTheMessageOrInACutListing) {
  EXPECT_EQ(
      message("CUDA out of memory. Tried to allocate 1.25 GiB (GPU 0; 31.75 GiB total capacity) See documentation "
              "for PYTORCH_CUDA_ALLOC_CONFret = input.softmax(dim, dtype=dtype)\n")
          .site,
      AllocationSite::score_matrix);
  EXPECT_EQ(message("│    628 │   │   )    │\n│ ❱  629 │   │   attention_probs = scores.softmax(dim=-1)   │\n"
                    "OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB.\n")
                .site,
            AllocationSite::score_matrix);
}

TEST(OtherAllocators, VulkanAndSharedMemoryAreRead) {
  const OomMessage v = message("ggml_vulkan: Device memory allocation of size 960581632 failed.\n");
  EXPECT_EQ(v.backend, MemoryBackend::ggml);
  ASSERT_TRUE(v.requested);
  EXPECT_EQ(v.requested->value, Bytes(960581632));
  EXPECT_EQ(message("RuntimeError: unable to allocate shared memory(shm) for file </torch_1>\n").reason,
            OomReason::shared_memory);
  EXPECT_EQ(message("ResourceExhaustedError: OOM when allocating tensor with shape[246534,1280] and type float "
                    "[Op:RandomStandardNormal]\n")
                .site,
            AllocationSite::weights);
}

TEST(SourceLine, AMaskIsHandedToAttention) {
  const auto frames = [](const char* code) { return std::vector<Frame>{{"a.py", 1, "forward", code}}; };
  EXPECT_TRUE(attends_with_mask(frames("x = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)")));
  EXPECT_FALSE(attends_with_mask(frames("x = F.scaled_dot_product_attention(q, k, v, attn_mask=None)")));
  EXPECT_FALSE(attends_with_mask(frames("x = F.scaled_dot_product_attention(q, k, v)")));
  EXPECT_FALSE(attends_with_mask(frames("mask = f(x)")));
}

/// What a line makes is its bytes, whatever the allocator rounds them to; a smaller figure is of something else.
TEST(SourceLine, IsTheTensorThatWasAskedFor) {
  const std::string line = "    buf7 = empty_strided_cuda((100000, 5000), (5000, 1), torch.float32)\n";
  const Failure f = failure_of(message(line + "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.88 GiB.\n"));
  const std::string frames = "  File \"/tmp/x.py\", line 1, in call\n";
  const Failure g =
      failure_of(message(frames + line + "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.88 GiB.\n"));
  EXPECT_FALSE(f.made);  // the line alone names no kind of tensor
  ASSERT_TRUE(g.made);
  EXPECT_EQ(g.tensor->value, Bytes(2'000'000'000));
  Verdict v;
  name_tensor(v, g, nullptr, {});
  ASSERT_TRUE(v.tensor);
  EXPECT_NE(v.why.find("100000x5000 in fp32"), std::string::npos) << v.why;
  // No number of divisions rounds it up to these.
  for (const char* asked : {"1.00", "1.85", "3.00", "3.60"})
    EXPECT_FALSE(failure_of(message(frames + line + "OutOfMemoryError: CUDA out of memory. Tried to allocate " + asked +
                                    " GiB.\n"))
                     .made)
        << asked;
}

Failure makes(const std::string& code, const std::string& asked) {
  return failure_of(message("  File \"/tmp/x.py\", line 1, in call\n    " + code +
                            "\nOutOfMemoryError: CUDA out of memory. Tried to allocate " + asked + " GiB.\n"));
}

/// The bytes of 2^30 numbers are those of 16 heads of 8,192 x 8,192 scores, which the line does not make.
TEST(SourceLine, IsNotReadAsScores) {
  const Failure f = makes("x = torch.zeros((1073741824,), dtype=torch.float32)", "4.00");
  ASSERT_TRUE(f.made);
  EXPECT_NE(judge(f, {}).cause, Cause::attention_scores);
  Estimator estimator;
  Settings s{.vlm = tool::find_model("qwen2.5-vl-7b"), .plan = {}, .allocator = {}, .placement = {}};
  const Device device = tool::find_device("h100-sxm");
  EXPECT_NE(judge(f, s, device, Mode::inference, estimator).cause, Cause::attention_scores);
  EXPECT_FALSE(judge_by_size(f, s, device, false));
}

/// A tied matrix of embeddings is the only weight of its shape; one beside its head's is either.
TEST(SourceLine, NamesAWeightThatIsTheOnlyOneOfItsShape) {
  const auto tensor = [](const char* model, const Failure& f) {
    const Settings s{.vlm = tool::find_model(model), .plan = {}, .allocator = {}, .placement = {}};
    Verdict v;
    name_tensor(v, f, &s, tool::find_device("h100-sxm"));
    return v.tensor.value_or(DescribedTensor{});
  };
  const auto line = [](const char* shape) {
    return std::string("b = torch.empty(") + shape + ", dtype=torch.float32)";
  };
  EXPECT_EQ(tensor("gemma-3-4b", makes(line("(262208, 2560)"), "2.56")).scope, "model.language_model.embed_tokens");
  const DescribedTensor untied = tensor("qwen2.5-vl-7b", makes(line("(152064, 3584)"), "2.03"));
  EXPECT_EQ(to_string(untied.shape), "152064x3584");
  EXPECT_EQ(untied.scope, "");
}

/// Frames behind a message are its own up to the next message, whatever allocator words that.
TEST(FramesAfterAMessage, EndAtTheNextOne) {
  const std::string first = "CUDA out of memory. Tried to allocate 3.00 GiB.\n",
                    frames = "  File \"/tmp/x.py\", line 1, in call\n    logits = logits.float()\n";
  EXPECT_EQ(message(first + frames).site, AllocationSite::logits_upcast);
  EXPECT_EQ(message(first +
                    "MPS backend out of memory (MPS allocated: 5.00 GB, other allocations: 1.00 GB, max allowed: "
                    "9.07 GB). Tried to allocate 2.00 GB on private pool.\n" +
                    frames)
                .site,
            AllocationSite::unknown);
  EXPECT_EQ(message(first +
                    "MLX: [metal::malloc] Attempting to allocate 98765432100 bytes which is greater than the "
                    "maximum allowed buffer size of 9534832640 bytes.\n" +
                    frames)
                .site,
            AllocationSite::unknown);
}

TEST(HostAndDecoderFrames, DecodedMediaAreTheHosts) {
  const auto stack = find_cut_stack(
      "Traceback (most recent call last):\n  File \"/x/run.py\", line 3, in load\n    v = io.read_video(path)\n"
      "  File \"/lib/torchvision/io/video.py\", line 323, in read_video\n    frames = [f.to_rgb() for f in all]\n");
  ASSERT_TRUE(stack);
  EXPECT_EQ(allocation_site_of(stack->frames), AllocationSite::decoded_media);
  EXPECT_EQ(stack_cause(AllocationSite::decoded_media, RunPhase::unknown), Cause::host_memory);
  // A decoder that asks a GPU for memory is none of the host's.
  EXPECT_EQ(failure_of(message("  File \"/lib/torchvision/io/video.py\", line 323, in read_video\n    f(x)\n"
                               "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n"))
                .site,
            AllocationSite::unknown);
}

/// Of a package that decodes is what is installed as one, not whatever lies below a folder of its name.
TEST(HostAndDecoderFrames, AFolderOfADecodersName) {
  const auto site = [](const std::string& folder) {
    return allocation_site_of({{folder + "transformers/models/x/modeling_x.py", 1, "forward",
                                "attn_weights = nn.functional.softmax(attn_weights, dim=-1)"},
                               {folder + "torch/nn/functional.py", 2, "softmax", "ret = input.softmax(dim)"}});
  };
  EXPECT_EQ(site("/home/av/lib/python3/site-packages/"), AllocationSite::score_matrix);
  EXPECT_EQ(allocation_site_of({{"/lib/python3/site-packages/av/frame.py", 1, "to_ndarray", "return f(x)"}}),
            AllocationSite::decoded_media);
  EXPECT_EQ(allocation_site_of({{"/usr/lib/python3/dist-packages/PIL/Image.py", 1, "convert", "return f(x)"}}),
            AllocationSite::decoded_media);
}

/// Scaled as decoders scale: the language model's reading is the likely one.
TEST(HostAndDecoderFrames, ADecodersLineIsNotATowers) {
  Failure f;
  f.tensor = PrintedSize::exactly(Bytes(std::int64_t{16} * 8192 * 8192 * 2));
  const std::vector<AttentionHeads> all{{.part = Part::vision, .heads = 16}, {.part = Part::language, .heads = 64}};
  EXPECT_EQ(score_matrices(f, all, {}).front().of.part, Part::vision);
  f.frames = {{"", 0, "", "attn = torch.matmul(query_states, key_states.transpose(2, 3)) / math.sqrt(self.head_dim)"}};
  EXPECT_EQ(score_matrices(f, all, {}).front().of.part, Part::language);
}

std::optional<Verdict> budget(const std::string& text, const std::optional<KvNeed>& need = {}) {
  return judge_engine_budget(read_memory_log(text).facts, need);
}

TEST(EngineBudget, AStackThatEndsWhereTheCacheIsCheckedIsOfTheCache) {
  for (const char* name : {"raise_if_cache_size_invalid", "_check_enough_kv_cache_memory"}) {
    const auto stack =
        find_cut_stack("Traceback (most recent call last):\n  File \"/x/worker.py\", line 3, in init\n    " +
                       std::string(name) + "(blocks,\n");
    ASSERT_TRUE(stack) << name;
    EXPECT_EQ(allocation_site_of(stack->frames), AllocationSite::kv_cache) << name;
  }
}

TEST(EngineBudget, IsTooSmallForARequest) {
  const std::string log =
      "model weights take 10.00GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.00GiB; the "
      "rest of the memory reserved for KV Cache is ";
  EXPECT_FALSE(budget("step 1 loss 2.0\n"));
  EXPECT_EQ(budget(log + "4.00GiB.\n")->cause, Cause::unknown);
  EXPECT_EQ(budget(log + "0.05GiB.\n")->cause, Cause::kv_cache);
  // Whether it is too little is the length's question, where that is known.
  const KvNeed need{.token = Bytes(gib / 16384), .ranks = 2, .seq = 65536};
  EXPECT_EQ(budget(log + "4.00GiB.\n", need)->cause, Cause::unknown);
  const auto v = budget(log + "1.00GiB.\n", need);
  EXPECT_EQ(v->cause, Cause::kv_cache);
  EXPECT_NE(v->why.find("32,768 tokens"), std::string::npos) << v->why;
}

/// The log's weights are a rank's part of the settings', or others.
TEST(EngineBudget, PartsOfTheWeightsAreGpus) {
  Estimator estimator;
  Settings s{.vlm = tool::find_model("qwen2.5-vl-72b"), .plan = {}, .allocator = {}, .placement = {}};
  const Device device = tool::find_device("h100-sxm");
  const auto ranks = [&](const char* weights) {
    const auto n = kv_need(read_memory_log("model weights take " + std::string(weights) + "GiB; the rest is\n").facts,
                           s, device, estimator);
    return n ? n->ranks : 0;
  };
  EXPECT_EQ(ranks("136.74"), 1);
  EXPECT_EQ(ranks("34.43"), 4);
  // Of 4 bits, by the log; of nothing, and of a byte.
  EXPECT_EQ(ranks("38.70"), 0);
  EXPECT_EQ(ranks("0.00"), 1);
  EXPECT_EQ(ranks("0.000000001"), 0);
  s.placement.gpus = 2;
  EXPECT_EQ(ranks("38.70"), 2);
}

Settings of(const char* model, Logits logits = Logits::last) {
  Settings s{.vlm = tool::find_model(model), .plan = {}, .allocator = {}, .placement = {}};
  s.plan.logits = logits;
  return s;
}

Failure asks(const std::string& size, bool early = false) {
  return failure_of(message("CUDA out of memory. Tried to allocate " + size +
                            (early ? " GiB (GPU 0; 39.59 GiB total capacity; 30.00 GiB already allocated; 1.00 GiB "
                                     "free; 31.00 GiB reserved in total by PyTorch)\n"
                                   : " GiB. GPU 0 has a total capacity of 39.49 GiB of which 1.00 GiB is free.\n")));
}

/// Qwen2.5-VL-7B: 16 heads in its tower, 28 in its language model, a vocabulary of 152,064.
TEST(BySize, ScoresUnlessAllLogitsAreComputed) {
  const Device device = tool::find_device("h100-sxm");
  const auto scores = judge_by_size(asks("7.45"), of("qwen2.5-vl-7b"), device, false);
  ASSERT_TRUE(scores);
  EXPECT_EQ(scores->cause, Cause::attention_scores);
  const auto logits = judge_by_size(asks("7.45"), of("qwen2.5-vl-7b", Logits::all), device, false);
  ASSERT_TRUE(logits);
  EXPECT_EQ(logits->cause, Cause::logits);
  EXPECT_EQ(logits->tensor->shape[-1], 152064);
  EXPECT_EQ(logits->tensor->dtype, "fp32");
  // An engine's own kernels make no scores; what is small can be anything.
  EXPECT_FALSE(judge_by_size(asks("7.45"), of("qwen2.5-vl-7b"), device, true));
  EXPECT_FALSE(judge_by_size(asks("0.70"), of("qwen2.5-vl-7b"), device, false));
  // Of the time in which prompts had logits of every position.
  EXPECT_TRUE(asks("2.32", true).early_torch);
  EXPECT_FALSE(asks("2.32").early_torch);
  // torch_npu has kept the words.
  EXPECT_FALSE(
      failure_of(message("NPU out of memory. Tried to allocate 2.32 GiB (NPU 0; 60.97 GiB total capacity; 50.00 "
                         "GiB already allocated; 50.00 GiB current active; 1.00 GiB free; 51.00 GiB reserved in "
                         "total by PyTorch)\n"))
          .early_torch);
}

/// 7168 x 20480 is a weight, its gradient and its moments: which of them, the size does not tell, and not activations.
TEST(BySize, StatesOfATrainingThatDoesNotFit) {
  Settings s = of("llava-next-34b");
  s.plan.checkpointing = Checkpointing::full;
  Estimator estimator;
  Failure f = failure_of(message("CUDA out of memory. Tried to allocate 280.00 MiB\n"));
  const Verdict v = judge(f, s, tool::find_device("a100-40"), Mode::training, estimator);
  EXPECT_EQ(v.cause, Cause::optimizer_state) << v.why;
  EXPECT_LT(v.confidence, 0.5);
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->bytes, Bytes(std::int64_t{280} << 20));
}

}  // namespace
}  // namespace vlmest::likely_reading_test
