// SPDX-License-Identifier: Apache-2.0
// The whole command, from fork to exit, its output thrown away.
#include <benchmark/benchmark.h>

#ifdef VLMEST_PROGRAM
#include <initializer_list>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace command_bench {
namespace {

/// Runs the program with these arguments; false where it does not exit with 0.
bool run(std::initializer_list<const char*> arguments) {
  std::vector<char*> argv{const_cast<char*>(VLMEST_PROGRAM)};
  for (const char* a : arguments) argv.push_back(const_cast<char*>(a));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int status = -1;
  const bool started = posix_spawn(&child, VLMEST_PROGRAM, &files, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&files);
  return started && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void command(benchmark::State& state, std::initializer_list<const char*> arguments) {
  for (auto _ : state)
    if (!run(arguments)) {
      state.SkipWithError("the command failed");
      break;
    }
}

BENCHMARK_CAPTURE(command, version, {"--version"})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(command, inference_json, {"--config", "llava-next-7b.json", "--phase", "inference", "--json"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(command, all_text, {"--config", "llava-next-7b.json", "--batch", "8", "--seq", "4096"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace command_bench
#endif
