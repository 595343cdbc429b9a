// SPDX-License-Identifier: Apache-2.0
// Every era and spelling of out-of-memory messages, from the files of tests/data/oom.
#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/failure/tensor_sizes.hpp>

#include "read_data.hpp"

namespace vlmest::oom_message_test {
namespace {

using namespace diagnose;

constexpr double none = -1;
constexpr double gib = 1024;  // of MiB

/// What a file's only message says, in MiB; what it does not say is `none`.
struct Expected {
  const char* file;
  MemoryBackend backend;
  double requested = none, total = none, free = none, allocated = none, reserved = none, unallocated = none;
  double own = none, allowed = none;
  std::int64_t gpu = -1;
};

/// The figure is the printed one, and the interval that of its last digit.
void expect_size(const std::optional<PrintedSize>& s, double mib, const char* what) {
  if (mib == none) {
    EXPECT_FALSE(s.has_value()) << what;
    return;
  }
  ASSERT_TRUE(s.has_value()) << what;
  EXPECT_NEAR(static_cast<double>(s->value.value()) / (1 << 20), mib, 1e-5) << what;
  EXPECT_TRUE(s->holds(s->value)) << what;
}

OomMessage only_message(const std::string& file) {
  const auto messages = find_oom_messages(read_data("oom/" + file + ".txt"));
  EXPECT_EQ(messages.size(), 1u) << file;
  return messages.empty() ? OomMessage{} : messages.front();
}

TEST(OomMessage, EveryEraAndBackend) {
  using B = MemoryBackend;
  const Expected all[] = {
      {"v0_cached", B::cuda, 1.17 * gib, 11.91 * gib, 725.81, 9.04 * gib, none, 1.48 * gib, none, none, 0},
      {"v1_reserved", B::cuda, 392, 15.9 * gib, 207.75, 14.45 * gib, 14.79 * gib, none, none, none, 3},
      {"v1b_allowed", B::cuda, 20, 7.79 * gib, 2.86 * gib, 3.71 * gib, 3.88 * gib, none, none, 3.9 * gib, 0},
      {"v2_hint", B::cuda, 4.5 * gib, 39.56 * gib, 3.06 * gib, 27.22 * gib, 34.41 * gib, none, none, none, 1},
      {"v3_capacty", B::cuda, 6.1 * gib, 23.69 * gib, 5.83 * gib, 17.05 * gib, none, 274.5, 17.86 * gib, none, 0},
      {"v4_capacity", B::cuda, 28.43 * gib, 15.77 * gib, 9.86 * gib, 5.3 * gib, none, 242.06, 5.91 * gib, none, 2},
      {"v4_allowed_processes", B::cuda, 1024, 79.15 * gib, 11.69 * gib, 37.9 * gib, none, 412.77, 38.85 * gib,
       39.57 * gib, 0},
      {"v4b_private_pools", B::cuda, 512, 79.25 * gib, 321.94, 76.4 * gib, none, 1.29 * gib, 78.93 * gib, none, 0},
      {"v5_alloc_conf", B::cuda, 18.91 * gib, 139.8 * gib, 1.44 * gib, 115.42 * gib, none, 20.5 * gib, 138.35 * gib,
       none, 5},
      {"malloc_async", B::cuda_malloc_async, 567, 15.57 * gib, 8.38, 14.6 * gib, none, none, none, none, 0},
      {"malloc_async_one_line", B::cuda_malloc_async, 1.91 * gib, 8 * gib, 0, 7.03 * gib, none, none, none, none, 0},
      {"malloc_async_cut", B::cuda_malloc_async},
      {"hip", B::hip, 256 * gib, 15.98 * gib, 9.93 * gib, 4.39 * gib, none, 1.31 * gib, none, none, 0},
      {"mps_old", B::mps, 192, none, none, 17.36 * gib, none, none, none, 18.13 * gib},
      {"mps", B::mps, 384, none, none, 42.28 * gib, none, none, none, 42.43 * gib},
      {"xpu", B::xpu, 59.61 * gib, 28.55 * gib, 12.01 * gib, 15.8 * gib, none, 180.25, none, none, 0},
      {"npu", B::npu, 2 * gib, 43.24 * gib, 764.23, 40.39 * gib, 41.06 * gib, none, none, none, 4},
      {"driver", B::cuda_driver},
      {"driver_expandable", B::cuda_driver},
      {"cublas", B::cublas},
      {"cublas_not_initialized", B::cublas},
      {"cudnn", B::cudnn},
      {"nccl", B::nccl},
      {"host", B::host, 65536},
      {"host_numpy", B::host, 7.45 * gib},
      {"host_killer", B::host, none, none, none, none, none, none, 130023424.0 / 1024},
      {"jax", B::jax, 20 * gib},
      {"jax_units", B::jax, 12.5 * gib},
      {"ggml", B::ggml, 18432, none, none, none, none, none, none, none, 0},
      {"mlx", B::mlx, 29696, none, none, none, none, none, none, 27648},
      {"vllm_wrapper", B::hip, 256 * gib, 15.98 * gib, 10.61 * gib, 4.74 * gib, none, 148.11, none, none, 0},
      {"docker", B::cuda, 1.02 * gib, 21.98 * gib, 763.12, 20.55 * gib, none, 389.05, 21.22 * gib, none, 0},
      {"wrapped", B::cuda, 3.45 * gib, 47.53 * gib, 1.01 * gib, 44 * gib, none, 2.12 * gib, 46.51 * gib, none, 1},
      {"html", B::cuda, 734, 7.92 * gib, 566.44, 6.1 * gib, 6.71 * gib, none, none, none, 0},
      {"ansi", B::cuda, 2 * gib, 39.39 * gib, 1.21 * gib, 36.9 * gib, none, 790, 38.17 * gib, none, 0},
      {"json_string", B::cuda, 6.1 * gib, 23.69 * gib, 5.83 * gib, 17.05 * gib, none, 274.5, 17.85 * gib, none, 0},
      {"repr", B::cuda, 160, 44.34 * gib, 80.31, 43.1 * gib, none, 688.2, 44.26 * gib, none, 0},
      {"capacity_only", B::unknown, none, 22.3 * gib, 50, none, none, none, none, none, 0},
      {"lower_case_no_spaces", B::cuda, 2.5 * gib, 10.76 * gib, 2.12 * gib, 7.01 * gib, 8 * gib, none, none, none, 1},
      {"commas", B::cuda, 1536, 23.69 * gib, 1024, 20.01 * gib, 21.98 * gib, none, none, none, 0},
      {"jupyter", B::cuda, 1.27 * gib, 14.75 * gib, 1.05 * gib, 13.12 * gib, none, 452, 13.69 * gib, none, 0},
      {"windows_spill", B::cuda, 512, 12 * gib, 0, 12.12 * gib, none, 1.02 * gib, none, none, 0},
      {"inductor", B::cuda, 14, 22.3 * gib, 4.69, none, none, none, none, none, 0},
      {"more_than_exabyte", B::cuda},
      // TensorRT-LLM issues 1060 and 3636, InternVL 538, bitsandbytes' csrc/pythonInterface.c, torch-xpu-ops 5432
      {"tensorrt_llm", B::cuda_driver},
      {"turbomind", B::cuda_driver},
      {"bitsandbytes", B::cuda_driver},
      {"xpu_driver", B::xpu},
      {"cudnn_algorithm", B::cudnn},
      {"cufft", B::cufft},
      {"comfy_report", B::cuda_malloc_async},  // ComfyUI-TangoFlux issue 18
      {"onnx", B::unknown},                    // onnxruntime issue 22702: more bytes than any machine has
      {"tensorflow", B::jax, 500.0 * 17 * 17 * 4032 * 4 / (1 << 20)},  // tensorflow/models issue 7142
      {"cupy", B::unknown, 25600000.0 / (1 << 20), none, none, 3635267072.0 / (1 << 20)},
      {"paddle", B::unknown, 4, none, 3.3125, 3.630493 * gib, none, none, none, none, 0},
      {"tenstorrent", B::unknown, 44493176832.0 / (1 << 20)},
      {"habana", B::unknown, 384},
      {"metal_buffer", B::mps, 20.25 * gib},
      // llama.cpp issues 16725, 20431 and 9629
      {"ggml_compute", B::ggml, 14822711296.0 / (1 << 20), none, none, none, none, none, none, none, 0},
      {"ggml_weights", B::ggml, 151851674624.0 / (1 << 20), none, none, none, none, none, none, none, 0},
      {"ggml_pinned", B::host, 1900},
      {"unlisted_processes", B::hip, 3.31 * gib, 128 * gib, 780.24, 57.7 * gib, none, 75.82, none, none, 0},
      {"unlisted_processes_old", B::unknown, 216, 7.92 * gib, 24.56, 69.17, 86, none, none, none, 0},
      {"frame_cut", B::cuda, 124.68 * gib, 44.53 * gib, 19.05 * gib, 24.89 * gib, none, 73.93, 25.46 * gib, none, 0},
      {"wrapped_stack", B::cuda, 1.94 * gib, 79.11 * gib, 1.41 * gib, 74.79 * gib, none, 1.57 * gib, 77.69 * gib, none,
       5},
      {"syslog", B::cuda, 20, 23.69 * gib, 11.69, 21.37 * gib, 21.97 * gib, none, none, none, 0},
      {"logging_format", B::cuda, 7.95 * gib, 79.19 * gib, 6.22 * gib, 59.75 * gib, none, 11.6 * gib, 72.96 * gib, none,
       0},
      {"notebook_links", B::cuda, 3.13 * gib, 21.99 * gib, 1.2 * gib, 20.43 * gib, none, 61.02, 20.78 * gib, none, 0},
  };
  for (const auto& e : all) {
    SCOPED_TRACE(e.file);
    const auto m = only_message(e.file);
    EXPECT_EQ(name(m.backend), name(e.backend));
    expect_size(m.requested, e.requested, "requested");
    expect_size(m.total, e.total, "total");
    expect_size(m.free, e.free, "free");
    expect_size(m.allocated, e.allocated, "allocated");
    expect_size(m.reserved, e.reserved, "reserved");
    expect_size(m.reserved_unallocated, e.unallocated, "reserved_unallocated");
    expect_size(m.own_process, e.own, "own_process");
    expect_size(m.allowed, e.allowed, "allowed");
    EXPECT_EQ(m.gpu.value_or(-1), e.gpu);
    EXPECT_EQ(m.has_numbers, e.requested != none || e.total != none || e.allocated != none || e.own != none);
  }
}

// OpenVINO: src/plugins/intel_gpu/src/runtime/ocl/ocl_engine.cpp.
TEST(OomMessage, ABufferBeyondWhatADeviceGives) {
  const auto m = find_oom_messages(
      "[GPU] Exceeded max size of memory object allocation: requested 28666553344 bytes,\n"
      "but max alloc size supported by device is 4294959104 bytes.\n");
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].backend, MemoryBackend::xpu);
  EXPECT_EQ(m[0].requested, PrintedSize::exactly(Bytes(28666553344)));
  EXPECT_EQ(m[0].allowed, PrintedSize::exactly(Bytes(4294959104)));
}

TEST(OomMessage, SentencesAboutMemoryAreNone) {
  EXPECT_TRUE(find_oom_messages(read_data("oom/two_bare_in_prose.txt")).empty());
  EXPECT_TRUE(find_oom_messages("step 3 memory 12 GiB total 80 GiB free; allocated 3 GiB\n").empty());
  EXPECT_TRUE(find_oom_messages("").empty());
}

TEST(OomMessage, LinesOfOneRankAreKeptApart) {
  const auto m = find_oom_messages(read_data("oom/ranks_interleaved.txt"));
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].rank, 0);
  EXPECT_EQ(m[0].line, 19);
  EXPECT_EQ(name(m[0].phase), "backward");
  EXPECT_EQ(m[0].traceback.frames.size(), 4u);
  EXPECT_EQ(m[0].traceback.frames.back().function, "_engine_run_backward");
  EXPECT_EQ(m[1].rank, 3);
  EXPECT_EQ(m[1].gpu, 3);
  EXPECT_EQ(name(m[1].phase), "forward");
  EXPECT_EQ(name(m[1].site), "logits");
}

TEST(OomMessage, RepeatedOnesAreCounted) {
  const auto m = only_message("vllm_wrapper");
  EXPECT_EQ(m.times, 2);
  EXPECT_EQ(m.traceback.exception, "torch.OutOfMemoryError");
  EXPECT_EQ(name(m.phase), "server_profile");
  EXPECT_TRUE(in_vision_tower(m.traceback.frames));
  EXPECT_EQ(name(m.site), "sdpa");
  const std::string one = "CUDA out of memory. Tried to allocate 3.00 GiB\n";
  const auto twice = find_oom_messages(one + "step 1\n" + one);
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].times, 2);
}

TEST(OomMessage, NumbersThatACutLeftAreNone) {
  EXPECT_TRUE(find_oom_messages("CUDA out of memory. Tried to allocate 1").empty() ||
              !find_oom_messages("CUDA out of memory. Tried to allocate 1").at(0).requested);
  const auto m =
      find_oom_messages(".50 GiB already allocated; 386.21 MiB free; 58.12 GiB reserved in total by PyTorch)");
  for (const auto& x : m) EXPECT_FALSE(x.allocated);
  const auto whole = find_oom_messages("failed to allocate CUDA0 buffer of size 19327352832");
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].requested->value, Bytes(19327352832));
}

TEST(OomMessage, DifferentOnesInARowAreTwo) {
  const auto m = find_oom_messages(
      "CUDA out of memory. Tried to allocate 3.00 GiB (GPU 0; 8.00 GiB total capacity)\n"
      "CUDA out of memory. Tried to allocate 5.00 GiB (GPU 1; 8.00 GiB total capacity)\n");
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].gpu, 0);
  EXPECT_EQ(m[1].gpu, 1);
  EXPECT_EQ(m[1].requested->value, Bytes(std::int64_t{5} << 30));
  EXPECT_EQ(m[1].line, 2);
}

TEST(OomMessage, OtherProcesses) {
  const auto m = only_message("v4_allowed_processes");
  ASSERT_EQ(m.processes.size(), 2u);
  EXPECT_EQ(m.processes[0].pid, 901);
  EXPECT_NEAR(static_cast<double>(m.processes[0].in_use.value.value()), 28.11 * (1 << 30), 1);
  EXPECT_EQ(m.processes[1].pid, 902);
  EXPECT_FALSE(m.own_process_guessed);
  // 79.15 - 11.69 - 38.85: the two processes, to the printed digits.
  const auto others = other_processes(m);
  ASSERT_TRUE(others);
  EXPECT_TRUE(others->holds(Bytes(static_cast<std::int64_t>(28.61 * (1 << 30)))));
}

TEST(OomMessage, OwnProcessOfAContainer) {
  const auto m = only_message("v3_capacty");
  EXPECT_TRUE(m.own_process_guessed);
  EXPECT_TRUE(m.processes.empty());
  const auto context = non_torch(m);  // 17.86 - 17.05 - 0.268
  ASSERT_TRUE(context);
  EXPECT_NEAR(static_cast<double>(context->value.value()) / (1 << 20), 554.94, 0.1);
  // A process of another size is another one.
  const auto other = find_oom_messages(
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is "
      "free. Process 5 has 60.00 GiB memory in use. Of the allocated memory 15.00 GiB is allocated by PyTorch, and "
      "1.00 GiB is reserved by PyTorch but unallocated.");
  ASSERT_EQ(other.size(), 1u);
  EXPECT_FALSE(other[0].own_process_guessed);
  EXPECT_EQ(other[0].processes.size(), 1u);
}

TEST(OomMessage, PrivatePoolsAreNotTensors) {
  const auto m = only_message("v4b_private_pools");
  ASSERT_TRUE(m.private_pools);
  EXPECT_NEAR(static_cast<double>(allocated(m)->value.value()) / (1 << 30), 76.40 - 22.70, 1e-6);
  EXPECT_NEAR(static_cast<double>(unallocated_everywhere(m)->value.value()) / (1 << 30), 1.29 + 22.70, 1e-6);
  EXPECT_NEAR(static_cast<double>(unallocated(m)->value.value()) / (1 << 30), 1.29, 1e-6);
  EXPECT_NEAR(static_cast<double>(reserved(m)->value.value()) / (1 << 30), 76.40 + 1.29, 1e-6);
}

TEST(OomMessage, FragmentationByItsFigures) {
  const auto yes = fragmentation(only_message("v5_alloc_conf"));
  ASSERT_TRUE(yes);
  EXPECT_TRUE(yes->fragmented);
  EXPECT_TRUE(yes->together_enough);
  const auto no = fragmentation(only_message("v4_capacity"));
  ASSERT_TRUE(no);
  EXPECT_FALSE(no->fragmented);
  EXPECT_NEAR(static_cast<double>(no->shortage.value()) / (1 << 30), 28.43 - 9.86 - 242.06 / 1024, 1e-6);
  const auto old = fragmentation(only_message("v2_hint"));  // reserved 34.41 - allocated 27.22 = 7.19
  ASSERT_TRUE(old);
  EXPECT_TRUE(old->fragmented);
  EXPECT_FALSE(fragmentation(only_message("driver")));
}

/// Several ranks wrote into one line without a break between them (Video-LLaVA issue 66).
TEST(OomMessage, MessagesGluedTogether) {
  const auto m = find_oom_messages(read_data("oom/glued_ranks.txt"));
  ASSERT_EQ(m.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(m[i].gpu, std::vector<std::int64_t>({2, 1, 3})[i]);
    expect_size(m[i].requested, 6.3 * gib, "requested");
    expect_size(m[i].free, i == 2 ? 1.56 * gib : 1.49 * gib, "free");
  }
}

TEST(OomMessage, StacksThatWereBrokenCutAndPrefixed) {
  const auto wrapped = only_message("wrapped_stack");  // a terminal of 80 columns
  ASSERT_EQ(wrapped.traceback.frames.size(), 3u);
  EXPECT_EQ(wrapped.traceback.frames[0].line, 3318);
  EXPECT_EQ(wrapped.traceback.frames[1].file,
            "/usr/local/lib/python3.10/site-packages/deepspeed/runtime/zero/parameter_offload.py");
  EXPECT_EQ(wrapped.traceback.frames[2].function, "all_gather_coalesced");
  EXPECT_EQ(name(wrapped.phase), "module_gather");
  const auto cut = only_message("frame_cut");  // VLMEvalKit issue 1021: the first frame begins within its path
  EXPECT_EQ(name(cut.site), "score_matrix");
  EXPECT_EQ(name(only_message("syslog").site), "optimizer_state");
  EXPECT_EQ(name(only_message("logging_format").phase), "backward");
  const auto linked = only_message("notebook_links");  // vLLM issue 9163
  ASSERT_EQ(linked.traceback.frames.size(), 2u);
  EXPECT_EQ(linked.traceback.frames[1].file,
            "/opt/conda/lib/python3.12/site-packages/vllm/model_executor/models/mllama.py");
  EXPECT_EQ(linked.traceback.frames[1].line, 529);
  EXPECT_EQ(name(linked.phase), "vision_forward");
}

TEST(OomMessage, TracebacksOfPythonAndNotebooks) {
  const auto step = only_message("optimizer_step");
  EXPECT_EQ(name(step.phase), "optimizer_step");
  EXPECT_EQ(name(step.site), "optimizer_state");
  EXPECT_EQ(step.traceback.frames.back(),
            (Frame{"/py/torch/optim/adamw.py", 171, "_init_group", R"(state["exp_avg_sq"] = torch.zeros_like()"}));
  const auto loss = only_message("logits_float");
  EXPECT_EQ(name(loss.phase), "loss");
  EXPECT_EQ(name(loss.site), "logits_upcast");
  const auto cell = only_message("jupyter");
  EXPECT_EQ(name(cell.phase), "vision_forward");
  EXPECT_EQ(name(cell.site), "score_matrix");
  ASSERT_EQ(cell.traceback.frames.size(), 3u);
  EXPECT_EQ(cell.traceback.frames[2].line, 291);
  const auto json = only_message("json_string");
  EXPECT_EQ(name(json.site), "score_matrix");
  EXPECT_EQ(json.traceback.frames.at(0).file, "/w/m.py");
  const auto after = only_message("malloc_async");
  ASSERT_EQ(after.traceback.frames.size(), 2u);
  EXPECT_EQ(after.traceback.frames[0].file, R"(G:\next\nodes\execution.py)");
}

TEST(TensorSizes, RoundingOfTheCachingAllocator) {
  const auto sizes = [](const char* printed, const char* words = "CUDA out of memory. Tried to allocate ") {
    const auto m = find_oom_messages(words + std::string(printed));
    EXPECT_EQ(m.size(), 1u) << printed;
    return m.at(0);
  };
  const Bytes mib(1 << 20);
  const auto small = sizes("2.00 MiB");
  EXPECT_EQ(tensor_sizes(small)->rule, SizeRule::small_segment);
  EXPECT_EQ(tensor_sizes(small)->high, mib);
  const auto large = sizes("20.00 MiB");
  EXPECT_EQ(tensor_sizes(large)->rule, SizeRule::large_segment);
  EXPECT_TRUE(tensor_allowed(large, mib * 2));
  EXPECT_TRUE(tensor_allowed(large, mib * 19));
  EXPECT_FALSE(tensor_allowed(large, mib * 12));  // would open a segment of 12 MiB
  const auto exact = sizes("14.00 MiB");
  EXPECT_FALSE(tensor_allowed(exact, mib * 12));
  EXPECT_TRUE(tensor_allowed(exact, mib * 12 + Bytes(512)));
  EXPECT_TRUE(tensor_allowed(exact, mib * 14));
  EXPECT_FALSE(tensor_allowed(exact, mib * 14 + Bytes(512)));
  // 16 heads x 14308^2 patches x 2 bytes is "6.10 GiB".
  const auto scores = sizes("6.10 GiB");
  EXPECT_TRUE(tensor_allowed(scores, Bytes(std::int64_t{16} * 14308 * 14308 * 2)));
  EXPECT_FALSE(tensor_allowed(scores, Bytes(std::int64_t{16} * 14400 * 14400 * 2)));
  // 16 x 65536^2 x 4 bytes is "256.00 GiB".
  EXPECT_TRUE(tensor_allowed(sizes("256.00 GiB"), Bytes(std::int64_t{16} * 65536 * 65536 * 4)));
  const auto bytes = sizes("68719476736 bytes", "DefaultCPUAllocator: can't allocate memory: you tried to allocate ");
  EXPECT_EQ(tensor_sizes(bytes)->rule, SizeRule::exact_bytes);
  EXPECT_TRUE(tensor_allowed(bytes, Bytes(std::int64_t{1} << 36)));
  EXPECT_FALSE(tensor_allowed(bytes, Bytes((std::int64_t{1} << 36) - 1)));
  EXPECT_EQ(tensor_sizes(only_message("malloc_async"))->rule, SizeRule::as_printed);
  EXPECT_FALSE(tensor_sizes(only_message("driver")));
}

}  // namespace
}  // namespace vlmest::oom_message_test
