// SPDX-License-Identifier: Apache-2.0
// Tensors that no estimate names: by a shape that the text prints, a bucket's size, a vocabulary that is told, a
// weight's size, or what the failed line calls them.
#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/evidence/text/printed_shape.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/failure/stack_cause.hpp>
#include <vlmest/diagnose/verdict/judge.hpp>
#include <vlmest/diagnose/verdict/judge_batch.hpp>
#include <vlmest/diagnose/verdict/likely_tensor.hpp>
#include <vlmest/diagnose/verdict/weight_shape.hpp>

#include "files.hpp"

namespace vlmest::diagnose::unnamed_tensor_test {
namespace {

std::string asked(const std::string& size) { return "CUDA out of memory. Tried to allocate " + size + ".\n"; }

Failure failure_in(const std::string& text) {
  const auto all = find_oom_messages(text);
  if (all.empty()) return {};
  Failure f = failure_of(all.front());
  take_printed_shape(f, all.front(), find_printed_shapes(text));
  return f;
}

TEST(PrintedShape, IsReadWithItsTypeAndLine) {
  const auto all = find_printed_shapes(
      "x\nlogits have torch.Size([30688, 151936])\nOOM when allocating tensor with shape[246534,1280] and type half\n"
      "k.shape = (2, 16, 64, 64) torch.bfloat16\n");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].shape, (Shape{30688, 151936}));
  EXPECT_EQ(all[0].line, 2);
  EXPECT_FALSE(all[0].dtype);
  EXPECT_EQ(all[1].shape, (Shape{246534, 1280}));
  EXPECT_EQ(all[1].dtype, DType::fp16);
  EXPECT_EQ(all[2].dtype, DType::bf16);
  for (const char* none : {"torch.Size([7])", "shape (n, 4)", "torch.Size([", "the shape of it (see 3, 4)",
                           "shape[9223372036854775807,9]", "shape[-1,4]", "shape[0,4]", ""})
    EXPECT_TRUE(find_printed_shapes(none).empty()) << none;
}

TEST(PrintedShape, IsTheTensorWhereItHasTheSize) {
  const Failure f = failure_in("it has torch.Size([30688, 151936])\n" + asked("17.37 GiB"));
  ASSERT_TRUE(f.made);
  EXPECT_EQ(f.made->dtype, "fp32");
  EXPECT_EQ(f.shape_line, 1);
  EXPECT_EQ(judge(f).cause, Cause::logits);
  // Of another size, and of two that have it, none is taken.
  EXPECT_FALSE(failure_in("it has torch.Size([30688, 151936])\n" + asked("16.37 GiB")).made);
  EXPECT_FALSE(failure_in("torch.Size([4096, 65536]) torch.Size([65536, 4096])\n" + asked("1.00 GiB")).made);
}

TEST(PrintedShape, TellsLogitsAndScores) {
  EXPECT_EQ(shape_cause({30688, 151936}), Cause::logits);
  EXPECT_EQ(shape_cause({1, 16, 4096, 4096}), Cause::attention_scores);
  EXPECT_EQ(shape_cause({9000, 9000}), Cause::attention_scores);
  EXPECT_EQ(shape_cause({4096, 4096}), Cause::unknown);  // a weight
  EXPECT_EQ(shape_cause({246534, 1280}), Cause::unknown);
  EXPECT_EQ(shape_cause({7}), Cause::unknown);
}

TEST(Bucket, OfDeepSpeedsDefaultsIsOneOfGradients) {
  const Verdict v = judge(failure_in(asked("954.00 MiB")));
  EXPECT_EQ(v.cause, Cause::gradients);
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->shape, (Shape{500'000'000}));
  EXPECT_EQ(v.tensor->bytes, Bytes(1'000'000'000));
  EXPECT_NE(judge(failure_in(asked("956.00 MiB"))).cause, Cause::gradients);
  // Of a figure of 10 MiB it would be one of five.
  EXPECT_NE(judge(failure_in(asked("1.86 GiB"))).cause, Cause::gradients);
}

TEST(LineOfAFailure, NamesWhatItMakes) {
  const auto named = [](const std::string& line, Cause c) {
    const Failure f = failure_in("Traceback (most recent call last):\n  File \"a.py\", line 1, in forward\n    " +
                                 line + "\n" + asked("586.00 MiB"));
    Verdict v{.cause = c};
    name_tensor(v, f, nullptr, {});
    return v.tensor ? v.tensor->name : std::string();
  };
  EXPECT_EQ(named("y = torch.cat([y, x], dim=1)", Cause::activations), "y");
  EXPECT_EQ(named("return F.linear(input, self.weight)", Cause::activations), "F.linear(input, self.weight)");
  EXPECT_EQ(named("state[\"exp_avg\"] = torch.zeros_like(", Cause::optimizer_state), "state[\"exp_avg\"]");
  EXPECT_EQ(named("return torch._C._nn.cross_entropy_loss(input, target)", Cause::logits), "log-softmax of the logits");
  // A module's result, a wrapper's, and what another process holds are none.
  EXPECT_EQ(named("x = self.mlp(x)", Cause::activations), "");
  EXPECT_EQ(named("return func(*args, **kwargs)", Cause::activations), "");
  EXPECT_EQ(named("y = torch.cat([y, x], dim=1)", Cause::other_process), "");
  EXPECT_EQ(named("model = load()", Cause::weights), "");
}

TEST(Vocabulary, GivesLogitsTheirRows) {
  Failure f = failure_in(asked("6.54 GiB"));
  f.vocabulary = 151936;
  Verdict v{.cause = Cause::logits};
  name_tensor(v, f, nullptr, {});
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->shape[1], 151936);
  EXPECT_TRUE(f.tensor->holds(v.tensor->bytes));
}

TEST(WeightShape, IsNamedWhereTheSizeOfTheModelIsTold) {
  const Vlm seven = tool::find_model("llava-1.5-7b"), other = tool::find_model("llava-next-7b"),
            large = tool::find_model("llava-1.5-13b");
  const Failure f = failure_in(asked("86.00 MiB"));
  const auto named = [&](const std::vector<const Vlm*>& models, double parameters) {
    Verdict v{.cause = Cause::weights};
    name_weight(v, f, models, tool::find_device("a100-80"), parameters);
    return v;
  };
  const Verdict v = named({&seven, &other, &large}, 7e9);
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->bytes, Bytes(std::int64_t{11008} * 4096 * 2));
  EXPECT_NE(v.why.find("about 7 billion"), std::string::npos) << v.why;
  // What one model alone has is not named, and what nobody's size supports is spoken of.
  EXPECT_FALSE(named({&seven, &large}, 7e9).tensor);
  const Verdict open = named({&seven, &other}, 0);
  EXPECT_FALSE(open.tensor);
  EXPECT_NE(open.why.find("It may be one of these"), std::string::npos) << open.why;
}

TEST(UntoldBatch, IsReadOffTheMemory) {
  const Vlm vlm = tool::find_model("florence-2-base");
  const Device device = tool::find_device("a100-80");
  Estimator estimator;
  Settings s{.vlm = vlm, .plan = {}, .allocator = {}, .placement = {}};
  s.plan.batch = 6;
  const Bytes six = evaluate(s, device, Mode::training, estimator).peak;
  Failure f = failure_in(asked("108.00 MiB"));
  f.allocated = PrintedSize::exactly(six);
  s.plan.batch = 1;
  const auto v = judge_batch(f, s, device, {}, estimator);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->cause, Cause::activations);
  EXPECT_NE(v->why.find("a batch of about 6"), std::string::npos) << v->why;
  f.allocated = PrintedSize::exactly(Bytes(1 << 20));
  EXPECT_FALSE(judge_batch(f, s, device, {}, estimator));
  f.allocated.reset();
  EXPECT_FALSE(judge_batch(f, s, device, {}, estimator));
}

}  // namespace
}  // namespace vlmest::diagnose::unnamed_tensor_test
