// SPDX-License-Identifier: Apache-2.0
// Weights of models that are not known, by the widths of public ones.
#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/reader.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/name_by_widths.hpp>

namespace vlmest::diagnose::public_widths_test {
namespace {

Verdict named(Cause cause, const std::string& size, const ToldModel& told) {
  const auto all = find_oom_messages("CUDA out of memory. Tried to allocate " + size + ".\n");
  Verdict v{.cause = cause};
  name_by_widths(v, failure_of(all.front()), told);
  return v;
}

TEST(PublicWidths, AreThoseOfTheModelThatIsTold) {
  const Verdict v = named(Cause::weights, "68.00 MiB", {.parameters = 13e9});
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->shape, (Shape{13824, 5120}));
  EXPECT_EQ(v.tensor->dtype, "int8");
  EXPECT_NE(v.why.find("MLP weight of LLaMA 13B, 13824x5120 in int8 = 67.50 MiB"), std::string::npos) << v.why;
  // A name of 14 billion is of the model that has as many.
  EXPECT_EQ(named(Cause::weights, "134.00 MiB", {.parameters = 14e9}).tensor->shape, (Shape{13696, 5120}));
}

TEST(PublicWidths, OfStatesAreTheirs) {
  const Verdict v = named(Cause::optimizer_state, "172.00 MiB", {.parameters = 7e9});
  ASSERT_TRUE(v.tensor);
  EXPECT_EQ(v.tensor->shape, (Shape{11008, 4096}));
  EXPECT_EQ(v.tensor->dtype, "fp32");
  EXPECT_EQ(v.tensor->role, Role::optimizer_state);
}

TEST(PublicWidths, NameNothingElse) {
  // Of another cause, of a size that stands for any small tensor, and where more than one shape has it.
  EXPECT_FALSE(named(Cause::activations, "68.00 MiB", {.parameters = 13e9}).tensor);
  EXPECT_TRUE(named(Cause::weights, "20.00 MiB", {.parameters = 13e9}).why.empty());
  EXPECT_FALSE(named(Cause::weights, "1.00 GiB", {}).tensor);
  // Of a guess without a model's size it is only spoken of.
  const Verdict guess = named(Cause::weights, "108.00 MiB", {});
  EXPECT_FALSE(guess.tensor);
  EXPECT_NE(guess.why.find("Its size may be that of"), std::string::npos) << guess.why;
}

TEST(PublicWidths, OfEightBitsComeFirstWhereTheyAreTold) {
  const auto all = weights_of_size(PrintedSize::exactly(Bytes(11008 * 4096)), Cause::weights,
                                   {.parameters = 7e9, .eight_bits = true});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().dtype, "int8");
}

TEST(PublicWidths, OfTheTableAreWhole) {
  for (const PublicWidths& w : public_widths) {
    EXPECT_GT(w.hidden, 0) << w.model;
    EXPECT_GT(w.intermediate, w.hidden) << w.model;
    EXPECT_EQ(w.vocabulary == 0, w.billions == 0) << w.model;
    EXPECT_EQ(w.hidden % 64, 0) << w.model;
  }
}

}  // namespace
}  // namespace vlmest::diagnose::public_widths_test
