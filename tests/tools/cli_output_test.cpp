// SPDX-License-Identifier: Apache-2.0
// Help, formats, files, colours and the answer of the exit code.
#include <fcntl.h>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_output_test {
namespace {

TEST(Output, HelpAndVersion) {
  EXPECT_EQ(good("--version").rfind("vlmest ", 0), 0u);
  const std::string help = good("--help");
  EXPECT_EQ(good("-h"), help);
  for (const std::string command : {"estimate", "op", "roofline", "models", "devices", "completion"}) {
    EXPECT_NE(help.find("\n  " + command + " "), std::string::npos) << command;
    EXPECT_NE(good(command + " --help").find("Usage: "), std::string::npos) << command;
  }
  const std::string estimate = good("estimate --help");
  for (const char* flag : {"--config",
                           "--device",
                           "--batch",
                           "--seq",
                           "--text",
                           "--images",
                           "--image-size",
                           "--new-tokens",
                           "--phase",
                           "--dtype",
                           "--amp",
                           "--weights",
                           "--kv",
                           "--attention",
                           "--profile",
                           "--logits",
                           "--optimizer",
                           "--checkpointing",
                           "--freeze",
                           "--lora",
                           "--lora-targets",
                           "--lora-vision",
                           "--lora-dropout",
                           "--loss",
                           "--gradient-accumulation",
                           "--per-layer",
                           "--top",
                           "--fail-on",
                           "--timeline",
                           "--timeline-min",
                           "--verbose",
                           "--format",
                           "--json",
                           "--output",
                           "--color"})
    EXPECT_NE(estimate.find("  " + std::string(flag)), std::string::npos) << flag;
}

TEST(Output, Formats) {
  const std::string text = good(model + "--verbose"), markdown = good(model + "--format markdown"),
                    csv = good(model + "--format csv");
  EXPECT_EQ(good(model + "--format text --verbose"), text);
  EXPECT_EQ(text.rfind("fits: peak ", 0), 0u);
  EXPECT_NE(text.find(" in training; "), std::string::npos);
  for (const char* part : {"\n  component ", "\n  vision ", "\n  prefill ", "\n  decode at ", "\npeak of ",
                           "model.language_model.layers.0-31"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(markdown.rfind("# llava-next-7b\n\n**fits: ", 0), 0u);
  EXPECT_NE(markdown.find("\n|---|---:|"), std::string::npos);

  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.rfind("scope,part,params,weights_bytes,", 0), 0u);
  const auto commas = std::count(line.begin(), line.end(), ',');
  std::int64_t params = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
    std::istringstream cells(line);
    std::string scope, part, count;
    std::getline(std::getline(std::getline(cells, scope, ','), part, ','), count, ',');
    params += std::stoll(count);
  }
  EXPECT_EQ(params, 7063431168);
  EXPECT_NE(good(model + "--per-layer").find("model.language_model.layers.17 "), std::string::npos);
  EXPECT_EQ(text.find("model.language_model.layers.17 "), std::string::npos);
}

TEST(Output, GoesToAFile) {
  const Folder f;
  for (const std::string format : {"text", "json", "markdown", "csv"}) {
    const std::string file = (f.path / format).string();
    EXPECT_EQ(good(model + "--format " + format + " --output '" + file + "'"), "") << format;
    EXPECT_EQ(slurp(file), good(model + "--format " + format)) << format;
  }
  const std::string file = (f.path / "ops").string();
  EXPECT_EQ(good("op --output '" + file + "'", R"([{"op": "silu", "elements": 8}])"), "");
  EXPECT_EQ(Json::parse(slurp(file)).size(), 1u);
}

TEST(Output, IsTheSameEveryTime) {
  for (const std::string arguments :
       {"", "--json --per-layer", "--format markdown --batch 3", "--format csv --images 2 --image-size 500x333"})
    EXPECT_EQ(good(model + arguments, "", "LC_ALL=C"), good(model + arguments, "", "cd / && LC_ALL=C TZ=Asia/Tokyo"))
        << arguments;
}

/// What the program writes to a terminal.
std::string on_terminal(const std::string& arguments, const std::string& before) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "no terminal";
  const std::string command =
      before + " '" VLMEST_PROGRAM "' " + arguments + " </dev/null >'" + ptsname(terminal) + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  EXPECT_EQ(pclose(pipe), 0);
  close(terminal);
  return text;
}

TEST(Output, IsColouredOnTerminalsOnly) {
  const std::string green = "\033[32mfits: ";
  EXPECT_EQ(good(model).find('\033'), std::string::npos);
  EXPECT_EQ(good(model + "--color never").find('\033'), std::string::npos);
  EXPECT_EQ(good(model + "--color always").rfind(green, 0), 0u);
  EXPECT_EQ(good(model + "--color always", "", "NO_COLOR=1").rfind(green, 0), 0u);
  EXPECT_EQ(run(model + "--color always --json").code, 2);  // there are none
  EXPECT_EQ(good(model + "--device t4 --color always").rfind("\033[31mdoes not fit: ", 0), 0u);
  const std::string auto_color = on_terminal(model, "unset NO_COLOR;");
  if (auto_color == "no terminal") GTEST_SKIP() << "this system gives no pseudo-terminals";
  EXPECT_EQ(auto_color.rfind(green, 0), 0u);
  EXPECT_EQ(on_terminal(model, "NO_COLOR=1").find('\033'), std::string::npos);
  EXPECT_EQ(on_terminal(model, "NO_COLOR=").rfind(green, 0), 0u);
  EXPECT_EQ(on_terminal(model + "--color never", "unset NO_COLOR;").find('\033'), std::string::npos);
}

TEST(Output, AnswersWithItsExitCode) {
  EXPECT_EQ(run(model + "--fail-on oom").code, 0);
  // An A100 of 40 GiB holds the prefill, not a training step; what was asked for decides.
  EXPECT_EQ(run(model + "--fail-on oom --device a100-40 --phase inference").code, 0);
  EXPECT_EQ(run(model + "--fail-on oom --device a100-40 --phase train").code, 1);
  EXPECT_EQ(run(model + "--fail-on oom --device a100-40").code, 1);
  EXPECT_EQ(run(model + "--fail-on oom --device a100-40 --phase train --lora 16 --checkpointing full").code, 0);
  EXPECT_EQ(run(model + "--device t4").code, 0);
  const Called r = run(model + "--device t4 --fail-on oom --json");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "");
  const Json e = Json::parse(r.out);
  EXPECT_EQ(e["inference"]["fits"], false);
  EXPECT_GT(e["inference"]["peak"]["bytes"], e["device"]["memory_bytes"]);
  EXPECT_EQ(run(model + "--device t4 --fail-on oom").out.rfind("does not fit: ", 0), 0u);
}

}  // namespace
}  // namespace cli::cli_output_test
#endif
