// SPDX-License-Identifier: Apache-2.0
// What the library calls a choice of the plan is what users type.
#include "plan_flags.hpp"

#include <gtest/gtest.h>

namespace vlmest::tool::plan_flags_test {
namespace {

TEST(PlanFlags, StandWhereTheLibraryNamesAChoice) {
  EXPECT_EQ(in_flags("plan.seq"), "--seq");
  EXPECT_EQ(in_flags("raise plan.seq."), "raise --seq.");
  EXPECT_EQ(in_flags("give plan.dtype=bf16, or plan.attention=sdpa"), "give --dtype bf16, or --attention sdpa");
  EXPECT_EQ(in_flags("add plan.lora.rank=RANK, or plan.trainable.language=false"),
            "add --lora RANK, or --freeze language");
  EXPECT_EQ(in_flags("use plan.checkpointed.language=false or none"), "use --checkpointing vision or none");
  EXPECT_EQ(in_flags("leave one of plan.vision_chunk, plan.amp and plan.checkpointing out"),
            "leave one of --vision-chunk, --amp and --checkpointing out");
}

TEST(PlanFlags, FilesKeepTheirNames) {
  for (const char* text : {"plan.json: not JSON", "/home/plan.text/config.json", "my.plan.text", "plan.text.json",
                           "a floorplan.text", "plan.sequence", "no plan."})
    EXPECT_EQ(in_flags(text), text);
}

}  // namespace
}  // namespace vlmest::tool::plan_flags_test
