// SPDX-License-Identifier: Apache-2.0
// Wrong command lines: exit code 2, one line that says what is wrong and one that says what to do.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_usage_test {
namespace {

TEST(Usage, UnknownWordsAreToldTheNearestOne) {
  refused("--confg x", 2, "arguments: unknown '--confg'", "did you mean --config?");
  refused("estimate " + model + "--batchs 2", 2, "arguments: unknown '--batchs'", "did you mean --batch?");
  refused(model + "--image-sizes 3x3", 2, "arguments: unknown '--image-sizes'", "did you mean --image-size?");
  refused(model + "leftover", 2, "arguments: unknown 'leftover'", "see 'vlmest estimate --help'");
  refused("modls", 2, "arguments: unknown 'modls'", "did you mean models?");
  refused("op --devce x", 2, "arguments: unknown '--devce'", "did you mean --device?");
  refused("qqqqqqqqqqqq", 2, "arguments: unknown 'qqqqqqqqqqqq'", "see 'vlmest --help'");
}

TEST(Usage, WordsOfAListAreToldTheNearestOne) {
  refused(model + "--dtype bf17", 2, "--dtype: 'bf17' is not one of bf16, fp16, fp32", "did you mean bf16?");
  refused(model + "--attention sdpaa", 2, "--attention: 'sdpaa' is not one of eager, sdpa, flash",
          "did you mean sdpa?");
  refused(model + "--freeze visio", 2, "--freeze: 'visio' is not one of vision, projector, language, audio",
          "did you mean vision?");
  refused(model + "--phase inferense", 2, "--phase: 'inferense' is not one of inference, train, all",
          "did you mean inference?");
  refused(model + "--format jsno", 2, "--format: 'jsno' is not one of text, json, markdown, csv", "did you mean json?");
  refused(model + "--color alwys", 2, "--color: 'alwys' is not one of auto, always, never", "did you mean always?");
  refused(model + "--fail-on ooom", 2, "--fail-on: 'ooom' is not one of oom", "did you mean oom?");
  refused(
      model + "--optimizer adamv", 2,
      "--optimizer: 'adamv' is not one of adamw, adamw-fused, adamw-8bit, adamw-bnb-8bit, sgd, sgd-momentum, adafactor",
      "did you mean adamw?");
  refused(model + "--checkpointing ful", 2, "--checkpointing: 'ful' is not one of none, full, selective, vision",
          "did you mean full?");
  refused(model + "--loss chunk", 2, "--loss: 'chunk' is not one of unfused, fused, chunked", "did you mean chunked?");
  refused(model + "--weights int9", 2, "--weights: 'int9' is not one of bf16, fp16, fp8, int8, int4, nf4",
          "did you mean int8?");
  refused(model + "--dtype zzzzzzzzz", 2, "--dtype: 'zzzzzzzzz' is not one of bf16, fp16, fp32",
          "see 'vlmest estimate --help'");
}

TEST(Usage, WrongValues) {
  for (const char* flag : {"--batch 0",
                           "--batch -1",
                           "--batch x",
                           "--batch 1.5",
                           "--batch 99999999999999999999",
                           "--seq 0",
                           "--text -1",
                           "--images -1",
                           "--images 262145",
                           "--new-tokens 0",
                           "--top -1",
                           "--image-size 3",
                           "--image-size 3x",
                           "--image-size 0x3",
                           "--image-size 3x4x5",
                           "--image-size axb",
                           "--kv fp7",
                           "--profile torch",
                           "--logits some",
                           "--image-size 3x3,4",
                           "--image-size 3x3,",
                           "--vision-chunk 0",
                           "--seq 100 --text 3",
                           "--batch",
                           "--config",
                           "--batch 1 --batch 2",
                           "--gradient-accumulation 0",
                           "--lora 0",
                           "--lora x",
                           "--lora 8 --lora-dropout 2",
                           "--lora-targets q",
                           "--lora-vision",
                           "--timeline x.json --timeline-min large"}) {
    const Called r = run(model + flag);
    EXPECT_EQ(r.code, 2) << flag;
    EXPECT_EQ(r.out, "") << flag;
    EXPECT_EQ(r.err.rfind("error: --", 0), 0u) << flag << "\n" << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << flag << "\n" << r.err;
    EXPECT_NE(r.err.find("\nhint: "), std::string::npos) << flag << "\n" << r.err;
  }
}

TEST(Usage, NothingOrNoModel) {
  EXPECT_EQ(run("").code, 2);
  refused("estimate", 2, "arguments: --config is required", "see 'vlmest estimate --help'");
  refused("--batch 3", 2, "arguments: --config is required", "see 'vlmest estimate --help'");
  refused("completion", 2, "arguments: shell is required", "see 'vlmest completion --help'");
  EXPECT_EQ(run("completion tcsh").code, 2);
}

TEST(Usage, FlagsThatContradictTheModel) {
  refused(model + "--seq 10", 2, "--seq: 10 tokens, but the images alone need 2928",
          "raise --seq, or give fewer or smaller images");
  refused(model + "--image-size 336x336,672x672", 2, "--image-size: 2 sizes for a batch of 1",
          "raise --batch, so that each has a sequence, or give fewer sizes");
  refused(model + "--batch 2 --image-size 336x336,672x672 --attention flash", 2,
          "--attention: FlashAttention over sequences of several lengths, which unpads them, is not modelled",
          "give --seq, to which text fills every sequence, or --attention sdpa");
  refused(model + "--images 0 --text 0", 2, "--seq: the sequence is empty", "give at least one text token or image");
}

}  // namespace
}  // namespace cli::cli_usage_test
#endif
