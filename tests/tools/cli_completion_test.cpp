// SPDX-License-Identifier: Apache-2.0
// Completion scripts, and what bash offers with them.
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_completion_test {
namespace {

TEST(Completion, ScriptsNameCommandsFlagsAndModels) {
  const std::string bash = good("completion bash"), zsh = good("completion zsh"), fish = good("completion fish");
  for (const char* word :
       {"estimate", "op", "models", "devices", "completion", "--config", "--image-size", "--fail-on"}) {
    EXPECT_NE(bash.find(word), std::string::npos) << word;
    EXPECT_NE(
        fish.find(std::string(word).starts_with("--") ? "-l " + std::string(word + 2) : "-a " + std::string(word)),
        std::string::npos)
        << word;
  }
  EXPECT_EQ(zsh.rfind("#compdef vlmest\n", 0), 0u);
  EXPECT_NE(zsh.find("--dtype=[weights and activations \\[config.json'\\''s, or bf16\\]]:dtype:(bf16 fp16 fp32)"),
            std::string::npos);
  EXPECT_NE(zsh.find(":device:_vlmest_devices"), std::string::npos);
  EXPECT_NE(fish.find(" -l dtype -d 'weights and activations [config.json\\'s, or bf16]' -x -a 'bf16 fp16 fp32'\n"),
            std::string::npos);
  EXPECT_NE(fish.find(" -l device -d "), std::string::npos);
  EXPECT_NE(fish.find("(vlmest devices --format csv"), std::string::npos);
}

/// The script at work: what bash offers for a command line that is typed so far.
TEST(Completion, WorksInBash) {
  if (std::system("bash -c true >/dev/null 2>&1") != 0) GTEST_SKIP() << "no bash";
  const auto offers = [](const std::string& words, int at) {
    const Folder f;
    const std::string script = good("completion bash") + "vlmest() { '" VLMEST_PROGRAM "' \"$@\"; }\nCOMP_WORDS=(" +
                               words + ")\nCOMP_CWORD=" + std::to_string(at) +
                               "\n_vlmest\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    const std::string command = "bash '" + f.write("script", script) + "' 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::set<std::string> words_offered;
    std::string line;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      if (c != '\n')
        line += static_cast<char>(c);
      else
        words_offered.insert(std::exchange(line, {}));
    }
    EXPECT_EQ(pclose(pipe), 0);
    return words_offered;
  };
  EXPECT_EQ(offers("vlmest es", 1), std::set<std::string>{"estimate"});
  EXPECT_EQ(offers("vlmest estimate --image-", 2), std::set<std::string>{"--image-size"});
  EXPECT_EQ(offers("vlmest --config llava-next-7", 2).count("llava-next-7b"), 1u);
  EXPECT_EQ(offers("vlmest estimate --device h200", 3).count("h200-sxm"), 1u);
  EXPECT_EQ(offers("vlmest --dtype b", 2), std::set<std::string>{"bf16"});
  EXPECT_EQ(offers("vlmest plan --goal max-", 3),
            (std::set<std::string>{"max-batch", "max-seq", "max-pixels", "max-frames"}));
  EXPECT_EQ(offers("vlmest roofline --phase ''", 3), (std::set<std::string>{"prefill", "decode", "train"}));
  EXPECT_EQ(offers("vlmest roofline --format = s", 4), std::set<std::string>{"svg"});
  EXPECT_EQ(offers("vlmest plan --gpu", 2), (std::set<std::string>{"--gpu-memory", "--gpus"}));
  EXPECT_EQ(offers("vlmest completion z", 2), std::set<std::string>{"zsh"});
  EXPECT_EQ(offers("vlmest --batc", 1), std::set<std::string>{"--batch"});
  EXPECT_EQ(offers("vlmest --json --batc", 2), std::set<std::string>{"--batch"});
}

}  // namespace
}  // namespace cli::cli_completion_test
#endif
