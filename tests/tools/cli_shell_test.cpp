// SPDX-License-Identifier: Apache-2.0
// The program among others in a shell: outputs that cannot be written, inputs that have no end.
#include "../sanitizer.hpp"
#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_shell_test {
namespace {

const std::string small = "--config smolvlm-256m --phase inference ";

/// The exit code of a shell's line with the program as $P; what it writes to standard error is in `err`.
int shell(const std::string& line, std::string* err = nullptr) {
  const Folder f;
  const std::string file = (f.path / "err").string();
  const int status =
      std::system(("P='" VLMEST_PROGRAM "'; { " + line + "\n} 2>'" + file + "' >/dev/null </dev/null").c_str());
  if (err != nullptr) *err = slurp(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Shell, AnswersThatCannotBeWrittenAreFailures) {
  for (const std::string& arguments :
       {small, small + "--json", std::string("models"), std::string("--help"), std::string("--version"), std::string(),
        std::string("completion bash"), std::string("roofline --config smolvlm-256m")})
    for (const char* where : {">/dev/full", ">&-"}) {
      std::string err;
      EXPECT_EQ(shell("\"$P\" " + arguments + " " + where, &err), 4) << arguments << where;
      EXPECT_EQ(err.rfind("error: standard output: cannot be written: ", 0), 0u) << err;
      EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    }
  std::string err;
  EXPECT_EQ(shell("echo 'step 1 memory 3 GiB' | \"$P\" watch --once - >/dev/full", &err), 4);
  EXPECT_EQ(shell("\"$P\" " + small + "--output /dev/full", &err), 4);
  EXPECT_EQ(err, "error: --output: cannot write all of /dev/full\nhint: check that there is space left\n");
  EXPECT_EQ(shell("\"$P\" " + small + "--output /nowhere/x", &err), 3);
}

TEST(Shell, AClosedPipeEndsQuietly) {
  std::string err;
  shell("\"$P\" " + small + "--json --per-layer | head -c 1", &err);
  EXPECT_EQ(err, "");
  // A parent that ignores SIGPIPE, as Python does.
  shell("(trap '' PIPE; \"$P\" --config llava-next-7b --json --per-layer --top 100000) | head -c 1", &err);
  EXPECT_EQ(err, "");
}

TEST(Shell, AStandardErrorThatCannotBeWrittenChangesNothing) {
  for (const char* where : {"2>&-", "2>/dev/full"}) {
    EXPECT_EQ(shell("\"$P\" " + small + where), 0) << where;
    EXPECT_EQ(shell("\"$P\" --config nothing-like-it " + std::string(where)), 3) << where;
    EXPECT_EQ(shell("\"$P\" --batch x " + std::string(where)), 2) << where;
    EXPECT_EQ(shell("\"$P\" --config blip2-opt-2.7b --weights int8 --json " + std::string(where)), 0) << where;
  }
  // A file must not get the number of a closed stream.
  const Folder f;
  const std::string file = (f.path / "report").string();
  EXPECT_EQ(shell("\"$P\" " + small + "--output '" + file + "' 2>&- >&- <&-"), 0);
  EXPECT_EQ(slurp(file), good(small));
}

/// What a line prints, with no more than 1 GiB of address space. AddressSanitizer maps terabytes for its shadow,
/// whatever the program does: there it counts what is resident, its redzones and freed blocks in quarantine among it.
Called limited(const std::string& arguments, const std::string& input = {}) {
  return run(
      arguments, input,
      under_address_sanitizer ? "export ASAN_OPTIONS=\"$ASAN_OPTIONS:hard_rss_limit_mb=3072\";" : "ulimit -v 1048576;");
}

TEST(Shell, InputsWithoutEndAreRefused) {
  for (const std::string arguments :
       {"--config /dev/zero", "--config smolvlm-256m --device /dev/zero", "op /dev/zero", "validate /dev/zero",
        "calibrate /dev/zero", "diagnose /dev/zero", "replay /dev/zero", "op - </dev/zero"}) {
    const Called r = limited(arguments);
    EXPECT_EQ(r.code, 3) << arguments << "\n" << r.err;
    EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << arguments << "\n" << r.err;
    EXPECT_EQ(r.err.find("internal"), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("memory: the description"), std::string::npos) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << r.err;
  }
}

TEST(Shell, SpecialFilesAreNoInternalErrors) {
  const Folder f;
  const std::string folder = "'" + f.path.string() + "'", fifo = "'" + (f.path / "fifo").string() + "'";
  ASSERT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);
  for (const std::string command : {"--config ", "op ", "diagnose ", "replay ", "validate ", "calibrate ",
                                    "--config smolvlm-256m --device ", "watch --once "})
    for (const std::string& file : {folder, std::string("/proc/self/mem"), std::string("/proc/self/status"),
                                    std::string("/dev/null"), fifo, std::string("/proc/self/fd"), std::string("/")}) {
      const std::string feed = file == fifo ? "( (: >" + fifo + ") >/dev/null 2>&1 & );" : "";
      const Called r = run(command + file, {}, feed);
      EXPECT_GE(r.code, 2) << command << file << "\n" << r.out;
      EXPECT_LE(r.code, 3) << command << file << "\n" << r.err;
      EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << command << file << "\n" << r.err;
      EXPECT_EQ(r.err.find("internal"), std::string::npos) << command << file << "\n" << r.err;
      EXPECT_LE(std::count(r.err.begin(), r.err.end(), '\n'), 2) << command << file << "\n" << r.err;
    }
  EXPECT_EQ(run("op -", {}, "exec <&-;").code, 3);
}

TEST(Shell, GzipBombsAreRefused) {
  if (std::system("gzip -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gzip";
  const Folder f;
  const std::string bomb = "'" + (f.path / "bomb.gz").string() + "'";
  for (const char* head : {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.10 GiB.",
                           "{\"segments\": [", "{\"traceEvents\": [", "{\"allocated_bytes.all.current\": ["}) {
    ASSERT_EQ(std::system((std::string("{ printf '%s' '") + head +
                           "'; head -c 300000000 /dev/zero | tr '\\0' ' '; } | "
                           "gzip -1 >" +
                           bomb)
                              .c_str()),
              0);
    const Called r = limited("diagnose " + bomb);
    EXPECT_EQ(r.code, 3) << head;
    EXPECT_TRUE(r.err.find("inflates to more than ") != std::string::npos ||
                r.err.find("larger than ") != std::string::npos)
        << head << "\n"
        << r.err;
  }
}

}  // namespace
}  // namespace cli::cli_shell_test
#endif
