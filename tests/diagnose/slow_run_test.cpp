// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/trace/traced_device.hpp>
#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>
#include <vlmest/json/device.hpp>

namespace vlmest::slow_run_test {
namespace {

using namespace diagnose;

const Device& h200() {
  static const Device d = load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json");
  return d;
}

constexpr Ns us = 1000, ms = 1000 * us;

/// A run on one device, written call by call: the host goes on as it calls, the device runs what it is given in order.
class Written {
 public:
  ProfileTrace t;
  Ns host = 0, device = 0;
  std::int64_t id = 0;

  void kernel(const std::string& name, Ns length, Ns launch = 5 * us, std::int32_t stream = 7) {
    ++id;
    t.calls.push_back({{host, host + launch}, id, 1, t.names.intern("cudaLaunchKernel"), HostCallKind::launch});
    device = std::max(device, host + launch);
    t.kernels.push_back({{device, device + length}, id, op_, t.names.intern(name), 0, stream});
    device += length;
    host += launch;
  }
  /// At a time of its own, beside what the stream runs.
  void kernel_at(const std::string& name, Interval at, std::int32_t stream) {
    ++id;
    t.calls.push_back({{at.begin - 10 * us, at.begin - 5 * us}, id, 1, 0, HostCallKind::launch});
    t.kernels.push_back({at, id, 0, t.names.intern(name), 0, stream});
  }
  void copy(CopyKind kind, Bytes bytes, Ns length, bool pageable) {
    ++id;
    device = std::max(device, host + 5 * us);
    t.copies.push_back({{device, device + length}, bytes, id, 0, 0, 7, kind, pageable});
    device += length;
    const Ns end = pageable ? device + 2 * us : host + 5 * us;
    t.calls.push_back({{host, end}, id, 1, t.names.intern("cudaMemcpyAsync"), HostCallKind::copy});
    host = end;
  }
  void synchronise() {
    const Ns end = std::max(device, host) + 3 * us;
    t.calls.push_back({{host, end}, 0, 1, t.names.intern("cudaStreamSynchronize"), HostCallKind::synchronise});
    host = end;
  }
  void call(HostCallKind kind, Ns length) {
    t.calls.push_back({{host, host + length}, 0, 1, 0, kind});
    host += length;
  }
  void mark(const std::string& name, AnnotationKind kind, Ns length) {
    t.annotations.push_back({{host, host + length}, 1, t.names.intern(name), kind});
    host += length;
  }
  void step(Ns begin, Ns end) {
    t.annotations.push_back({{begin, end}, 1, t.names.intern("ProfilerStep#1"), AnnotationKind::step});
  }
  /// One kernel inside an operator with these arguments.
  void op(const std::string& name, std::vector<OpInput> inputs, const std::string& kernel_name, Ns length) {
    t.with_shapes = true;
    t.signatures.push_back(std::move(inputs));
    call_again(name, kernel_name, length);
  }
  void call_again(const std::string& name, const std::string& kernel_name, Ns length) {
    const Ns begin = host;
    host += us;
    op_ = 1'000'000 + ++id;
    const auto inner = op_;
    kernel(kernel_name, length);
    t.ops.push_back(
        {{begin, host + us}, inner, 1, t.names.intern(name), static_cast<std::int32_t>(t.signatures.size() - 1)});
    host += us;
    op_ = 0;
  }
  OpInput tensor(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides = {},
                 const std::string& type = "c10::BFloat16") {
    return {std::move(sizes), std::move(strides), t.names.intern(type), 0};
  }
  OpInput value(const std::string& v) { return {{}, {}, t.names.intern("Scalar"), t.names.intern(v)}; }

 private:
  std::int64_t op_ = 0;
};

const std::string gemm = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT";
const std::string pointwise = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)";

TEST(Intervals, Sets) {
  const TimeSet a = united({{5, 8}, {0, 2}, {2, 3}, {7, 7}, {6, 9}});
  EXPECT_EQ(a, (TimeSet{{0, 3}, {5, 9}}));
  EXPECT_EQ(length(a), 7);
  const TimeSet b{{1, 2}, {4, 6}, {8, 20}};
  EXPECT_EQ(intersection(a, b), (TimeSet{{1, 2}, {5, 6}, {8, 9}}));
  EXPECT_EQ(difference(a, b), (TimeSet{{0, 1}, {2, 3}, {6, 8}}));
  EXPECT_EQ(difference(TimeSet{{0, 10}}, a), (TimeSet{{3, 5}, {9, 10}}));
  EXPECT_EQ(gaps({-1, 12}, a), (TimeSet{{-1, 0}, {3, 5}, {9, 12}}));
  EXPECT_TRUE(gaps({3, 3}, a).empty());
}

TEST(KernelTraits, FamiliesByName) {
  const auto family = [](std::string_view n) { return kernel_traits(n).family; };
  EXPECT_EQ(family(gemm), KernelFamily::matmul);
  EXPECT_EQ(family("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align2>(Params)"),
            KernelFamily::matmul);
  EXPECT_EQ(family("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64"),
            KernelFamily::attention);
  EXPECT_EQ(family("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            KernelFamily::communication);
  EXPECT_EQ(family("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::...>"),
            KernelFamily::optimizer);
  EXPECT_EQ(family("void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<...>"), KernelFamily::copy);
  EXPECT_EQ(family("void implicit_convolve_sgemm<__nv_bfloat16, 1024, 5>"), KernelFamily::convolution);
  EXPECT_EQ(family("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >"), KernelFamily::reduction);
  EXPECT_EQ(family("void (anonymous namespace)::softmax_warp_forward<float>"), KernelFamily::softmax);
  EXPECT_EQ(family(pointwise), KernelFamily::elementwise);
  EXPECT_EQ(family("void regular_fft<256u>"), KernelFamily::fft);
  EXPECT_EQ(family("void cudnn::fusion::compute_dot_do_o_specialized<true, 128>(void const*)"),
            KernelFamily::attention);
  EXPECT_EQ(family("fused_moe_kernel"), KernelFamily::matmul);
  EXPECT_EQ(family("void vllm::act_and_mul_kernel<c10::BFloat16>"), KernelFamily::elementwise);
}

TEST(KernelTraits, OfAmdAndOfOlderLibraries) {
  const auto family = [](std::string_view n) { return kernel_traits(n).family; };
  EXPECT_EQ(family("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN"), KernelFamily::matmul);
  EXPECT_EQ(family("attn_fwd"), KernelFamily::attention);
  EXPECT_EQ(family("igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16"), KernelFamily::convolution);
  EXPECT_EQ(family("MIOpenBatchNormFwdTrainSpatialMeanVariance"), KernelFamily::norm);
  EXPECT_EQ(family("SubTensorOpWithCastTensor1d"), KernelFamily::elementwise);
  EXPECT_EQ(family("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>"), KernelFamily::norm);
  EXPECT_EQ(family("volta_scudnn_128x64_relu_interior_nn_v1"), KernelFamily::convolution);
  EXPECT_EQ(family("void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>"), KernelFamily::convolution);
  EXPECT_EQ(family("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3"), KernelFamily::matmul);
  EXPECT_EQ(family("void at::native::(anonymous namespace)::max_pool_forward_nchw<float>"), KernelFamily::reduction);
  EXPECT_EQ(
      family("multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<int, long, 2, 1, 1>, Copy<int, long> >"),
      KernelFamily::copy)
      << "torch._foreach_copy_ is no optimizer";
  // Inductor's names hold operators that the kernel is only fused to.
  EXPECT_EQ(family("triton_poi_fused__scaled_dot_product_flash_attention_addmm_gelu_view_15"),
            KernelFamily::elementwise);
  EXPECT_EQ(family("triton_red_fused_addmm_native_layer_norm_view_3"), KernelFamily::norm);
  EXPECT_EQ(family("triton__0d1d2d3d"), KernelFamily::elementwise) << "torch 2.0";
  EXPECT_EQ(family("triton_tem_fused_mm_5"), KernelFamily::matmul);
  EXPECT_TRUE(kernel_traits("kernel_unified_attention_3d").decode);
  EXPECT_FALSE(kernel_traits("kernel_unified_attention_2d").decode);
}

TEST(KernelTraits, AlignmentAndDecodeByName) {
  const auto misaligned = [](std::string_view n) { return kernel_traits(n).misaligned; };
  EXPECT_TRUE(misaligned("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align2"));
  EXPECT_FALSE(misaligned("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align8"));
  EXPECT_TRUE(misaligned("ampere_fp16_s16816gemm_fp16_64x64_ldg2_f2f_stages_64x5_tn_half"));
  EXPECT_FALSE(misaligned("ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn_half"));
  EXPECT_FALSE(misaligned("cutlass_80_simt_sgemm_128x32_8x5_nn_align1"));  // fp32 needs no more
  EXPECT_TRUE(kernel_traits("void gemv2T_kernel_val<int, int, __nv_bfloat16>").decode);
  EXPECT_TRUE(kernel_traits("void vllm::paged_attention_v2_kernel<unsigned short>").decode);
  EXPECT_TRUE(kernel_traits("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128> >").decode);
  EXPECT_FALSE(kernel_traits("void flash_fwd_kernel<Flash_fwd_kernel_traits<128> >").decode);
}

TEST(TracedDevice, IsKnownByWhatItIs) {
  const TracedDevice h200_seen{
      .id = 0, .name = "NVIDIA H200", .memory = Bytes(150109880320), .multiprocessors = 132, .sm = 90};
  const Device h100 = load_device(VLMEST_SOURCE_DIR "/models/device/h100-sxm.json");
  EXPECT_TRUE(describes(h200(), h200_seen));
  EXPECT_FALSE(describes(h100, h200_seen));
  TracedDevice without_sm = h200_seen;
  without_sm.sm = 0;
  EXPECT_TRUE(describes(h200(), without_sm));
  without_sm.multiprocessors = 131;
  EXPECT_FALSE(describes(h200(), without_sm));
  EXPECT_FALSE(describes(h200(), TracedDevice{}));
}

TEST(HostCalls, KindsByName) {
  EXPECT_EQ(host_call_kind("cudaLaunchKernel"), HostCallKind::launch);
  EXPECT_EQ(host_call_kind("cudaLaunchKernelExC_v11060"), HostCallKind::launch);
  EXPECT_EQ(host_call_kind("cuLaunchKernelEx"), HostCallKind::launch);
  EXPECT_EQ(host_call_kind("cudaGraphLaunch_v10000"), HostCallKind::graph_launch);
  EXPECT_EQ(host_call_kind("cudaStreamSynchronize_v3020"), HostCallKind::synchronise);
  EXPECT_EQ(host_call_kind("cudaMalloc"), HostCallKind::allocate);
  EXPECT_EQ(host_call_kind("cuMemCreate"), HostCallKind::allocate);
  EXPECT_EQ(host_call_kind("cudaFree"), HostCallKind::free);
  EXPECT_EQ(host_call_kind("cudaMallocAsync_v11020"), HostCallKind::other);
  EXPECT_EQ(host_call_kind("cudaMemcpyAsync"), HostCallKind::copy);
  EXPECT_EQ(host_call_kind("cudaStreamIsCapturing"), HostCallKind::other);
  EXPECT_EQ(host_call_kind("custom_op"), HostCallKind::other);
}

TEST(SlowRun, SmallKernelsWaitForLaunches) {
  Written r;
  for (int i = 0; i < 500; ++i) r.kernel(pointwise, 3 * us), r.host += 15 * us;
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_EQ(s.idle.launches.count, 499);  // the first was over when the device began
  EXPECT_EQ(s.idle.launch_interval, 20 * us);
  EXPECT_EQ(s.idle.of(Idle::launch), 499 * 17 * us);
  EXPECT_EQ(s.gpu.busy_time(), 500 * 3 * us);
  EXPECT_NE(s.verdict.why.find("85 % waiting for launches (one every 20 us, a kernel takes 3 us)"), std::string::npos)
      << s.verdict.why;
}

TEST(SlowRun, LargeProductsAreLimitedByArithmetic) {
  Written r;
  for (int i = 0; i < 100; ++i) r.kernel(gemm, 900 * us), r.kernel(pointwise, 100 * us);
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::compute_bound);
  EXPECT_NEAR(s.verdict.confidence, 0.45, 1e-9) << "the products' sizes are not known: what is presumed counts half";
  EXPECT_NE(s.verdict.why.find("as products usually are"), std::string::npos) << s.verdict.why;
  EXPECT_EQ(s.idle.host(), 0);
}

TEST(SlowRun, ElementwiseKernelsAreLimitedByMemory) {
  Written r;
  for (int i = 0; i < 100; ++i) r.kernel(pointwise, 900 * us), r.kernel(gemm, 100 * us);
  EXPECT_EQ(slow_run(r.t).verdict.cause, Cause::bandwidth_bound);
}

TEST(SlowRun, ADataLoaderThatIsTooSlow) {
  Written r;
  for (int i = 0; i < 10; ++i) {
    const Ns begin = r.host;
    r.mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", AnnotationKind::data_loader, 80 * ms);
    for (int k = 0; k < 10; ++k) r.kernel(gemm, 2 * ms);
    r.synchronise();
    r.step(begin, r.host);
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_EQ(s.idle.of(Idle::data_loader), 10 * 80 * ms);
  EXPECT_NE(s.verdict.why.find("80 % waiting for the data loader"), std::string::npos) << s.verdict.why;
  ASSERT_EQ(s.steps.size(), 10u);
  EXPECT_EQ(s.steps[3].busy, 20 * ms);
}

TEST(SlowRun, GapsAfterASynchronisation) {
  Written r;
  for (int i = 0; i < 200; ++i) {
    r.kernel(gemm, 100 * us);
    r.synchronise();
    r.host += 200 * us;  // Python decides what comes next
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_EQ(s.idle.of(Idle::synchronise), 199 * 208 * us);
  EXPECT_EQ(s.idle.of(Idle::launch), 0);
  EXPECT_EQ(s.idle.synchronisations.count, 200);
}

TEST(SlowRun, WhatTheHostDoesAfterItHasWaitedIsItsWork) {
  Written r;
  for (int i = 0; i < 10; ++i) {
    r.kernel(gemm, 1 * ms);
    r.synchronise();
    r.host += 30 * ms;  // the images of the next batch
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_EQ(s.idle.of(Idle::host_work), 9 * (30 * ms + 8 * us));
  EXPECT_EQ(s.idle.of(Idle::synchronise), 0);
}

TEST(SlowRun, OtherRanksOfARecordingAreNotLookedAt) {
  // Two processes, each with its device; the second one waits after every kernel of its own.
  Written r;
  for (int i = 0; i < 100; ++i) r.kernel(gemm, 500 * us);
  for (auto& c : r.t.calls) c.process = 1;
  const auto calls = r.t.calls.size();
  for (std::size_t i = 0; i < calls; ++i) {
    const Ns at = r.t.kernels[i].time.begin;
    r.t.calls.push_back({{at, at + 5 * us}, 1000 + static_cast<std::int64_t>(i), 2, 0, HostCallKind::launch, 2});
    r.t.calls.push_back({{at + 5 * us, at + 400 * us}, 0, 2, 0, HostCallKind::synchronise, 2});
    KernelEvent k = r.t.kernels[i];
    k.correlation = 1000 + static_cast<std::int64_t>(i);
    k.device = 1;
    k.time = {at + 10 * us, at + 30 * us};
    r.t.kernels.push_back(k);
  }
  r.t.annotations.push_back({{-900 * ms, 900 * ms}, 2, r.t.names.intern("step 1"), AnnotationKind::step, 2});
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.gpu.device, 0);
  EXPECT_EQ(s.gpu.hosts, std::vector<std::int64_t>{1});
  EXPECT_EQ(s.gpu.span(), 100 * 500 * us) << "the other rank's step is none of it";
  EXPECT_EQ(s.idle.launches.count, 99);
  EXPECT_EQ(s.idle.synchronisations.count, 0);
  EXPECT_TRUE(s.steps.empty() || s.steps[0].busy == 100 * 500 * us);
}

TEST(SlowRun, AThreadOfAnotherDeviceIsNotLookedAt) {
  // DataParallel: one process, a thread for each device. The second one waits for its own.
  Written r;
  for (int i = 0; i < 100; ++i) r.kernel(gemm, 100 * us), r.host += 195 * us;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Ns at = i * 200 * us;
    r.t.calls.push_back({{at, at + 5 * us}, 1000 + i, 2, 0, HostCallKind::launch});
    r.t.calls.push_back({{at + 5 * us, at + 199 * us}, 0, 2, 0, HostCallKind::synchronise});
    r.t.kernels.push_back({{at + 5 * us, at + 15 * us}, 1000 + i, 0, r.t.names.intern(gemm), 1, 7});
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.gpu.device, 0);
  EXPECT_EQ(s.idle.launches.count, 99);
  EXPECT_EQ(s.idle.synchronisations.count, 0);
  EXPECT_EQ(s.idle.of(Idle::launch), 99 * 100 * us);
}

TEST(SlowRun, IdleTimeThatNothingExplainsIsNotBlamedOnKernels) {
  Written queued;
  for (int i = 0; i < 50; ++i) {
    queued.kernel(pointwise, 1 * ms);
    queued.device += 2 * ms;  // another rank's data is not there yet
  }
  const SlowRun waiting = slow_run(queued.t);
  EXPECT_EQ(waiting.idle.of(Idle::queued), 49 * 2 * ms);
  EXPECT_EQ(waiting.verdict.cause, Cause::unknown);
  EXPECT_EQ(waiting.verdict.confidence, 0);
  EXPECT_NE(waiting.verdict.why.find("already called for"), std::string::npos) << waiting.verdict.why;

  Written orphans = std::move(queued);
  orphans.t.calls.clear();
  const SlowRun unknown = slow_run(orphans.t);
  EXPECT_EQ(unknown.verdict.cause, Cause::unknown);
  EXPECT_NE(unknown.verdict.why.find("not in the trace"), std::string::npos) << unknown.verdict.why;
}

TEST(SlowRun, AFileThatWasCutIsNoIdleDevice) {
  // As Kineto writes it: the host's calls, then the device's kernels, of which the last half is gone.
  Written r;
  for (int i = 0; i < 100; ++i) r.kernel(gemm, 1 * ms);
  r.step(0, 200 * ms);
  ProfileTrace cut = std::move(r.t);
  cut.kernels.resize(50);
  EXPECT_EQ(slow_run(cut).verdict.cause, Cause::host_bound) << "50 of 200 ms";
  cut.truncated = true;
  const SlowRun s = slow_run(cut);
  EXPECT_EQ(s.verdict.cause, Cause::unknown);
  EXPECT_EQ(s.verdict.confidence, 0);
  EXPECT_NE(s.verdict.why.find("of 100 launches, 50 have no kernel"), std::string::npos) << s.verdict.why;
  // As torch 1.8 did: each call with its kernel, in order of time. What is there is whole, up to its last kernel.
  cut.calls.resize(50);
  EXPECT_EQ(slow_run(cut).verdict.cause, Cause::compute_bound);
  EXPECT_EQ(slow_run(cut).gpu.window.end, cut.kernels.back().time.end);
  cut.kernels.clear();
  EXPECT_NE(slow_run(cut).verdict.why.find("the file ends early"), std::string::npos);
  cut.truncated = false;
  EXPECT_NE(slow_run(cut).verdict.why.find("no kernel was recorded of 50 launches"), std::string::npos);
}

TEST(SlowRun, ASingleRowIsNoDecode) {
  // An image model's classifier multiplies one row; its other products do not.
  Written r;
  for (int i = 0; i < 20; ++i) r.kernel(gemm, 1 * ms), r.kernel(pointwise, 100 * us);
  r.kernel("void gemv2T_kernel_val<int, int, __nv_bfloat16>", 5 * us);
  EXPECT_EQ(slow_run(r.t).phase.phase, TracedPhase::unknown);
  EXPECT_EQ(slow_run(r.t).verdict.cause, Cause::compute_bound);
  Written decode;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 7; ++k) decode.kernel("void gemv2T_kernel_val<int, int, __nv_bfloat16>", 20 * us);
    decode.kernel(gemm, 10 * us);
  }
  EXPECT_EQ(slow_run(decode.t).phase.phase, TracedPhase::decode);
  EXPECT_EQ(slow_run(decode.t).verdict.cause, Cause::bandwidth_bound);
}

TEST(SlowRun, WithoutAnyLossAboveItsThresholdTheLargestShareCounts) {
  // A quarter each of waiting, exposed communication, and kernels of two kinds; waiting is a little more.
  Written r;
  for (int i = 0; i < 50; ++i) {
    r.kernel(pointwise, 100 * us);
    r.kernel(gemm, 100 * us);
    r.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 100 * us);
    r.synchronise();
    r.host += 110 * us;
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_LT(s.verdict.confidence, 0.5);
  EXPECT_NE(s.verdict.why.find("the GPU computes 48 %"), std::string::npos) << s.verdict.why;
}

TEST(SlowRun, WaitingForADeviceThatIsBusyCostsNothing) {
  Written r;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 50; ++k) r.kernel(gemm, 100 * us);
    r.synchronise();
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::compute_bound);
  EXPECT_LT(s.gpu.share(s.idle.host()), 0.01);
}

TEST(SlowRun, AnAllocatorThatGivesBackAndTriesAgain) {
  Written r;
  for (int i = 0; i < 50; ++i) {
    r.synchronise();
    r.call(HostCallKind::free, 1 * ms);
    r.call(HostCallKind::allocate, 1 * ms);
    r.kernel(gemm, 1 * ms);
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_EQ(s.idle.of(Idle::allocation), 49 * 2 * ms);
  EXPECT_NE(s.verdict.why.find("in 49 cudaMalloc and 49 cudaFree calls"), std::string::npos) << s.verdict.why;
}

TEST(SlowRun, CopiesFromPageableMemory) {
  Written r;
  for (int i = 0; i < 20; ++i) {
    r.copy(CopyKind::host_to_device, Bytes(100 << 20), 10 * ms, true);
    r.kernel(gemm, 2 * ms);
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  const CopyTotals& up = s.gpu.copies[static_cast<std::size_t>(CopyKind::host_to_device)];
  EXPECT_EQ(up.count, 20);
  EXPECT_EQ(up.pageable.count, 20);
  EXPECT_EQ(up.bytes, Bytes(100 << 20) * 20);
  EXPECT_EQ(s.gpu.exposed_copies, 20 * 10 * ms);
}

TEST(SlowRun, CommunicationCountsWhereNothingHidesIt) {
  const std::string reduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  Written hidden, exposed;
  for (Written* r : {&hidden, &exposed})
    for (int i = 0; i < 10; ++i) {
      r->host = std::max(r->host, r->device);
      const Ns begin = r->host + 5 * us;
      r->kernel(gemm, 10 * ms);
      const Ns from = r == &hidden ? begin : begin + 10 * ms;
      r->kernel_at(reduce, {from, from + 10 * ms}, 20);
      r->device = std::max(r->device, from + 10 * ms);
    }
  const SlowRun h = slow_run(hidden.t), e = slow_run(exposed.t);
  EXPECT_EQ(h.verdict.cause, Cause::compute_bound);
  EXPECT_EQ(h.gpu.exposed_communication, 0);
  EXPECT_EQ(length(h.gpu.communicating), 100 * ms);
  EXPECT_EQ(e.verdict.cause, Cause::communication);
  EXPECT_EQ(e.gpu.exposed_communication, 100 * ms);
}

TEST(SlowRun, ProductsWithUnalignedRows) {
  Written r;
  const auto product = [&](std::int64_t n) {
    return std::vector<OpInput>{r.tensor({n}), r.tensor({40000, 1280}, {1280, 1}), r.tensor({1280, n}, {1, 1280}),
                                r.value("1"), r.value("1")};
  };
  // As measured on an H200: 1.39 ms for 3420 columns.
  r.op("aten::addmm", product(3420), "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align2", 1389 * us);
  for (int i = 0; i < 30; ++i)
    r.call_again("aten::addmm", "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align2", 1389 * us);
  const SlowRun s = slow_run(r.t, &h200());
  ASSERT_EQ(s.ops.ops.size(), 1u);
  const OpDistance& d = s.ops.ops[0];
  EXPECT_EQ(d.calls, 31);
  EXPECT_EQ(d.kernels, 31);
  ASSERT_TRUE(d.faster.has_value());
  EXPECT_EQ(d.faster->what, "n 3424 for 3420");
  // 2 m n k at the peak of 989 TFLOP/s.
  EXPECT_NEAR(d.roofline.ms() / 31, 2.0 * 40000 * 3420 * 1280 / 989.4e12 * 1e3, 0.002);
  EXPECT_EQ(d.bound, Bound::compute);
  EXPECT_GT(s.padding_saves.value, 0.3 * d.time().value);
  EXPECT_LT(s.padding_saves.value, 0.9 * d.time().value);
  EXPECT_EQ(s.verdict.cause, Cause::misaligned_gemm);
  // Without sizes the kernels' names tell, but not what padding would save.
  r.t.with_shapes = false;
  const SlowRun blind = slow_run(r.t, &h200());
  EXPECT_EQ(blind.gpu.misaligned.count, 31);
  EXPECT_NEAR(blind.misaligned_time.ms(), 31 * 1.389, 1e-6);
}

TEST(SlowRun, AlignedProductsAreNot) {
  Written r;
  r.op("aten::mm", {r.tensor({40000, 1280}, {1280, 1}), r.tensor({1280, 3424}, {1, 1280})}, gemm, 500 * us);
  const SlowRun s = slow_run(r.t, &h200());
  ASSERT_EQ(s.ops.ops.size(), 1u);
  EXPECT_FALSE(s.ops.ops[0].faster.has_value());
  EXPECT_EQ(s.verdict.cause, Cause::compute_bound);
}

TEST(SlowRun, OperatorsAreOpsByTheirSchema) {
  Written r;
  const auto op = [&](const std::string& name, std::vector<OpInput> in) { return op_of(r.t, name, in, &h200()); };
  const auto bmm = op("aten::bmm", {r.tensor({8, 16, 32}), r.tensor({8, 32, 64})});
  ASSERT_TRUE(bmm && std::holds_alternative<Matmul>(*bmm));
  EXPECT_EQ(macs(std::get<Matmul>(*bmm)), Macs(8 * 16 * 32 * 64));
  const auto linear = op("aten::linear", {r.tensor({2, 10, 32}), r.tensor({64, 32}), r.tensor({64})});
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(std::get<Matmul>(*linear).m, 20);
  EXPECT_TRUE(std::get<Matmul>(*linear).bias);
  const auto conv = op("aten::convolution",
                       {r.tensor({8, 3, 336, 336}), r.tensor({1024, 3, 14, 14}), r.tensor({}), r.value("[14, 14]"),
                        r.value("[0, 0]"), r.value("[1, 1]"), r.value("False"), r.value("[0, 0]"), r.value("1")});
  ASSERT_TRUE(conv.has_value());
  EXPECT_EQ(std::get<Convolution>(*conv).out_positions, 24 * 24);
  EXPECT_EQ(cost(*conv).flops, Flops(std::int64_t{2} * 8 * 24 * 24 * 1024 * 3 * 14 * 14));
  const auto attention =
      op("aten::_scaled_dot_product_cudnn_attention",
         {r.tensor({1, 32, 1, 128}), r.tensor({1, 8, 700, 128}), r.tensor({1, 8, 700, 128}), r.tensor({1, 1, 1, 700}),
          r.value("False"), r.value("0."), r.value("True"), r.value("False")});
  ASSERT_TRUE(attention.has_value());
  EXPECT_EQ(std::get<Attention>(*attention).kv_heads, 8);
  EXPECT_EQ(std::get<Attention>(*attention).mask, Bytes(1400));
  EXPECT_TRUE(std::get<Attention>(*attention).causal);
  const auto add = op("aten::add", {r.tensor({8, 1024, 768}), r.tensor({768}), r.value("1")});
  ASSERT_TRUE(add.has_value());
  EXPECT_EQ(cost(*add).written, Bytes(8 * 1024 * 768 * 2));
  EXPECT_EQ(cost(*add).read, Bytes(8 * 1024 * 768 * 2 + 768 * 2));
  // What does not fit its schema is nothing.
  EXPECT_FALSE(op("aten::mm", {r.tensor({2, 3}), r.tensor({4, 5})}));
  EXPECT_FALSE(op("aten::mm", {r.tensor({2, 0}), r.tensor({0, 5})}));
  EXPECT_FALSE(op("aten::mm", {r.tensor({2, 3}, {}, "long int"), r.tensor({3, 5}, {}, "long int")}));
  EXPECT_FALSE(op("aten::mm", {}));
  EXPECT_FALSE(op("aten::embedding", {r.tensor({2, 3})}));
}

TEST(SlowRun, DecodeIsAttentionOfOneQuery) {
  Written r;
  const auto attention = [&](std::int64_t q) {
    return std::vector<OpInput>{r.tensor({32, 40, q, 128}),
                                r.tensor({32, 40, 2630, 128}),
                                r.tensor({32, 40, 2630, 128}),
                                r.value(""),
                                r.value("False"),
                                r.value("0."),
                                r.value("False"),
                                r.value("False")};
  };
  const std::string sdpa = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16";
  for (int i = 0; i < 20; ++i) {
    r.op("aten::_scaled_dot_product_cudnn_attention", attention(1), sdpa, 400 * us);
    r.kernel(gemm, 300 * us);
  }
  const SlowRun decode = slow_run(r.t, &h200());
  EXPECT_EQ(decode.phase.phase, TracedPhase::decode);
  EXPECT_EQ(decode.phase.decode_attentions, 20);
  EXPECT_EQ(decode.verdict.cause, Cause::bandwidth_bound);
  EXPECT_EQ(decode.bound.memory, 20 * 700 * us);  // the products too: a row a sequence
  r.op("aten::_scaled_dot_product_cudnn_attention", attention(2630), sdpa, 20 * ms);
  EXPECT_EQ(slow_run(r.t, &h200()).phase.phase, TracedPhase::prefill_and_decode);
  r.kernel("void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>", 1 * ms);
  EXPECT_EQ(slow_run(r.t, &h200()).phase.phase, TracedPhase::training);
}

TEST(SlowRun, WhatTheProfilerItselfTakesIsTakenOff) {
  // 100 us from launch to launch with six records between them, kernels of 60 us: without the profiler the device is
  // what limits the run, because launches take 14 us (the device's description).
  Written r;
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < 6; ++k) r.t.ops.push_back({{r.host, r.host + us}, 10'000 + 6 * i + k, 1, 0, 0});
    r.host += 95 * us;
    r.kernel(pointwise, 60 * us);
  }
  const SlowRun with = slow_run(r.t), without = slow_run(r.t, &h200());
  EXPECT_EQ(with.verdict.cause, Cause::host_bound);
  ASSERT_TRUE(without.unprofiled.estimated);
  EXPECT_EQ(without.verdict.cause, Cause::bandwidth_bound);
  EXPECT_NEAR(static_cast<double>(without.unprofiled.per_record), (100e3 - 14.2e3) / 7, 300);
  EXPECT_NEAR(static_cast<double>(without.unprofiled.span), 300 * 60e3, 60e3);
  // Kernels of 3 us wait for launches of 14 us all the same.
  for (auto& k : r.t.kernels) k.time.end = k.time.begin + 3 * us;
  const SlowRun small = slow_run(r.t, &h200());
  EXPECT_EQ(small.verdict.cause, Cause::host_bound);
  EXPECT_NEAR(static_cast<double>(small.unprofiled.span), 300 * 14.2e3, 20e3);
}

TEST(SlowRun, LongHostWorkHasTheNameOfItsOperator) {
  Written r;
  for (int i = 0; i < 5; ++i) {
    r.t.ops.push_back({{r.host, r.host + 36 * ms}, 500 + i, 1, r.t.names.intern("aten::_cudnn_attention_forward"), 0});
    r.host += 35 * ms;
    r.kernel(gemm, 10 * ms);
    r.host = std::max(r.host, r.device);
  }
  const SlowRun s = slow_run(r.t);
  EXPECT_EQ(s.verdict.cause, Cause::host_bound);
  EXPECT_EQ(r.t.names[s.idle.working], "aten::_cudnn_attention_forward");
  EXPECT_GT(s.idle.of(Idle::host_work), 4 * 34 * ms);
}

TEST(SlowRun, ATraceWithoutAGpu) {
  Written r;
  r.t.ops.push_back({{0, 5}, 1, 1, 0, 0});
  const SlowRun s = slow_run(r.t, &h200());
  EXPECT_EQ(s.verdict.cause, Cause::unknown);
  EXPECT_EQ(s.verdict.confidence, 0);
  EXPECT_EQ(slow_run(ProfileTrace{}).verdict.cause, Cause::unknown);
}

}  // namespace
}  // namespace vlmest::slow_run_test
