// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include <vlmest/unit/error.hpp>

#include "bench_options.hpp"
#include "command.hpp"
#include "flag_rules.hpp"

namespace vlmest::tool {
namespace {

namespace fs = std::filesystem;

/// The command line that was parsed, spelt again.
std::vector<std::string> arguments(const CLI::App& sub) {
  std::vector<std::string> flags, words;
  for (const CLI::Option* o : sub.get_options()) {
    if (o->count() == 0) continue;
    if (o->get_positional()) {
      words = o->results();
      continue;
    }
    const std::string flag = "--" + o->get_lnames().front();
    if (o->get_items_expected_max() == 0)
      flags.push_back(flag);
    else
      for (const std::string& value : o->results()) flags.push_back(flag + "=" + value);
  }
  flags.insert(flags.end(), words.begin(), words.end());
  return flags;
}

/// vlmest-bench beside this program, or in ../libexec/vlmest of an installed one.
fs::path find_program() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& place : std::array{folder, folder / ".." / "libexec" / "vlmest"})
    if (const fs::path program = place / bench_program; access(program.c_str(), X_OK) == 0) return program;
  throw Error(std::string(bench_program), "is not beside vlmest, nor in ../libexec/vlmest",
              "it is built where a CUDA compiler and Google Benchmark are found; see bench/README.md");
}

/// Becomes that program: its output, its signals and its exit code are those of the command.
int bench(const CLI::App& sub) {
  const std::string program = find_program().string();
  std::vector<std::string> words = arguments(sub);
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  const std::error_code failure(errno, std::generic_category());
  throw Error(program, "cannot be run: " + failure.message(), "build vlmest again");
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* sub = app.add_subcommand("bench", "measure single operations on this machine's GPU");
  o->add_to(*sub);
  // The options are read here so that wrong ones are told as everywhere; what they mean is that program's matter.
  sub->callback([o, sub, &action] {
    const GivenFlags given(*sub);
    if (o->suite != "heldout")
      given.no_effect({"--seed"}, "without --suite heldout", "leave it out, or give --suite heldout");
    if (o->suite == "nccl")
      given.no_effect({"--cold", "--hot", "--counters", "--kernel-times", "--warm-up", "--device"},
                      "with --suite nccl, which measures collectives", "leave it out");
    if (o->list)
      given.no_effect({"--output", "--counters", "--kernel-times", "--warm-up", "--budget"},
                      "with --list, which measures nothing", "leave one of them out");
    action = [sub] { return bench(*sub); };
  });
}

}  // namespace vlmest::tool
