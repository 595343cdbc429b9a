// SPDX-License-Identifier: Apache-2.0
// Numbers on the command line: decimal, finite and plain, within the limits that --help shows.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_numbers_test {
namespace {

const std::string small = "--config smolvlm-256m --json --top 0 ";

TEST(CliNumbers, ADigitIsWhatItSays) {
  EXPECT_EQ(Json::parse(good(small + "--phase inference --batch 010"))["inputs"]["batch"], 10);
  for (const std::string flag : {"--batch", "--seq", "--text", "--images", "--vision-chunk", "--new-tokens",
                                 "--gradient-accumulation", "--lora", "--checkpoint-layers", "--top"})
    for (const char* value : {"0x10", "+5", "' 5'", "1_000", "1e3", "5.0", "nan", "inf", "-0x1", "5k"}) {
      const Called r = run(small.substr(0, small.find("--top")) + flag + "=" + value);
      EXPECT_EQ(r.code, 2) << flag << " " << value;
      EXPECT_EQ(r.err.rfind("error: " + flag + ": '", 0), 0u) << flag << " " << value << "\n" << r.err;
    }
  for (const char* value : {"nan", "-0.1", "1.1", "1e-1", "inf", ".5", "0x1"})
    EXPECT_EQ(run(small + "--lora 8 --lora-dropout=" + value).code, 2) << value;
  for (const char* size : {"3x+5", "3x 5", "0x3x5", "3e2x3", "3X5x"})
    EXPECT_EQ(run(small + "--image-size '" + size + "'").code, 2) << size;
  for (const char* value : {"nan", "1e1", "0x1", "' 1'"})
    EXPECT_EQ(run(std::string("watch --once - --interval=") + value).code, 2) << value;
  for (const char* limit : {"params=nan", "params=inf", "params=1e3", "params=+1", "params=0x1"})
    EXPECT_EQ(run("validate /nowhere --limit " + std::string(limit)).code, 2) << limit;
}

/// Both ends of what --help shows can be used, and one more cannot.
TEST(CliNumbers, LimitsAreTheRealOnes) {
  const std::string help = good("estimate --help");
  const auto limits = [&](const std::string& flag) {
    const auto at = help.find("\n  " + flag + " ");
    const std::string entry = help.substr(at, help.find("\n  -", at + 3) - at);
    const auto to = entry.rfind(" to ");
    const auto from = entry.rfind(' ', to - 1) + 1;
    std::string most = entry.substr(to + 4);
    most = most.substr(0, most.find_first_not_of("0123456789"));
    return std::pair(entry.substr(from, to - from), most);
  };
  for (const auto& [flag, rest] :
       std::vector<std::pair<std::string, std::string>>{{"--batch", "--phase inference"},
                                                        {"--new-tokens", "--phase inference"},
                                                        {"--vision-chunk", "--phase inference"},
                                                        {"--lora", "--phase train"}}) {
    const auto [least, most] = limits(flag);
    ASSERT_FALSE(most.empty()) << flag;
    EXPECT_EQ(run(small + rest + " " + flag + " " + least).code, 0) << flag << " " << least;
    EXPECT_EQ(run(small + rest + " " + flag + " " + most).code, 0) << flag << " " << most;
    EXPECT_EQ(run(small + rest + " " + flag + " " + std::to_string(std::stoll(least) - 1)).code, 2) << flag;
    EXPECT_EQ(run(small + rest + " " + flag + " " + std::to_string(std::stoll(most) + 1)).code, 2) << flag;
  }
  // Where the model decides, what is too much is said of the model's sizes.
  for (const std::string flag : {"--seq", "--text", "--images", "--gradient-accumulation"}) {
    EXPECT_EQ(
        help.find(" to ", help.find("\n  " + flag + " ")) < help.find("\n  -", help.find("\n  " + flag + " ") + 3),
        false)
        << flag;
    const Called r = run(small + (flag.starts_with("--grad") ? "--phase train " : "--phase inference ") + flag +
                         " 9223372036854775807");
    EXPECT_GE(r.code, 2) << flag;
    EXPECT_LE(r.code, 3) << flag;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << r.err;
  }
}

TEST(CliNumbers, OfMemory) {
  refused("plan --config smolvlm-256m --gpu-memory 24", 2, "--gpu-memory: '24' has no unit",
          "write 24GiB (powers of 1024) or 24GB (powers of 1000)");
  refused("plan --config smolvlm-256m --gpu-memory 24g", 2, "--gpu-memory: '24g' has no unit",
          "write 24GiB (powers of 1024) or 24GB (powers of 1000)");
  refused("plan --config smolvlm-256m --gpu-memory '1e400 GiB'", 2, "--gpu-memory: '1e400 GiB' is not a size",
          "write 80GiB, 80GB or 512MiB");
  refused("watch --once - --gpu-memory 24", 2, "--gpu-memory: '24' has no unit",
          "write 24GiB (powers of 1024) or 24GB (powers of 1000)");
  refused(small + "--timeline /tmp/x --timeline-min 1024", 2, "--timeline-min: '1024' has no unit",
          "write 1024GiB (powers of 1024) or 1024GB (powers of 1000)");
}

}  // namespace
}  // namespace cli::cli_numbers_test
#endif
