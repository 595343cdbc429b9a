// SPDX-License-Identifier: Apache-2.0
// What --help and the bare program say.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_help_test {
namespace {

TEST(Help, NothingShowsWhatToTry) {
  const Called r = run("");
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.err, "");
  std::istringstream lines(r.out);
  int examples = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    if (line.rfind("  vlmest ", 0) != 0) continue;
    ++examples;
    std::string arguments = line.substr(9, line.find("   ", 9) - 9);
    if (arguments.rfind("plan", 0) == 0) arguments += " --gpu-memory 500TiB";  // read to its end, then refused
    const Called example = run(arguments);
    if (arguments.rfind("plan", 0) == 0)
      EXPECT_EQ(example.err.rfind("error: --gpu-memory: ", 0), 0u) << example.err;
    else if (arguments.rfind("diagnose", 0) == 0)
      EXPECT_EQ(example.err.rfind("error: train.log: cannot be read", 0), 0u) << example.err;
    else
      EXPECT_EQ(example.code, 0) << arguments << "\n" << example.err;
  }
  EXPECT_EQ(examples, 3);
}

TEST(Help, FitsAndIsInGroups) {
  for (const std::string command : {"", "estimate ", "op ", "bench ", "calibrate ", "roofline ", "replay ", "diagnose ",
                                    "plan ", "watch ", "validate ", "models ", "devices ", "completion "}) {
    const std::string help = good(command + "--help");
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_NE(help.find("\nUsage: vlmest "), std::string::npos) << command;
    EXPECT_NE(help.find("--help"), std::string::npos) << command;
  }
  const std::string help = good("estimate --help");
  std::size_t at = 0;
  for (const char* group : {"\nModel and inputs:\n", "\nHow it runs:\n", "\nInference:\n", "\nTraining:\n",
                            "\nDevice:\n", "\nReport:\n", "\nOutput:\n"}) {
    EXPECT_NE(help.find(group, at), std::string::npos) << group;
    at = help.find(group);
  }
  EXPECT_NE(help.find("\nUsage: vlmest estimate --config FILE|MODEL [FLAGS]\n"), std::string::npos);
  EXPECT_NE(good("op --help").find("\nUsage: vlmest op [FLAGS] [FILE]\n"), std::string::npos);
}

}  // namespace
}  // namespace cli::cli_help_test
#endif
