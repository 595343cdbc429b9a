// SPDX-License-Identifier: Apache-2.0
// Runs fuzz targets without libFuzzer: vlmest_fuzz TARGET [--inputs N] [--seed S] [--first I] [--timeout SECONDS]
// FILE|FOLDER...
// Every file as it is, then N mutations of them. The input of number I depends on the files, the seed and I alone, so a
// failure is run again with --first I --inputs 1; its input is also left in failed-input.json.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include "../sanitizer.hpp"
#include "mutate.hpp"
#include "target.hpp"

// A sanitizer's finding ends in abort(), whose handler below keeps the input.
extern "C" const char* __asan_default_options() { return "abort_on_error=1:max_allocation_size_mb=2048"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace {

std::string current;                                    ///< the input that runs
long number = -1;                                       ///< its number; negative for the files themselves
unsigned timeout = under_address_sanitizer ? 120 : 20;  ///< seconds of the processor

void keep(int signal) {
  char line[96];
  const int n = std::snprintf(line, sizeof line, "%s with input %ld, kept in failed-input.json\n",
                              signal == SIGPROF ? "too slow" : "failed", number);
  [[maybe_unused]] auto ignored = write(2, line, static_cast<std::size_t>(n));
  const int file = open("failed-input.json", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ignored = write(file, current.data(), current.size());
  _exit(1);
}

/// Counts this process's own time: other tests run beside it. 0 stops the count.
void allow(unsigned seconds) {
  const itimerval t{.it_interval = {}, .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  setitimer(ITIMER_PROF, &t, nullptr);
}

double run(const vlmest::fuzz::Target& target, std::string input) {
  current = std::move(input);
  allow(timeout);
  const auto begin = std::chrono::steady_clock::now();
  target.run(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  allow(0);
  return took.count();
}

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  long inputs = 20000, first = 0;
  std::uint64_t seed = 1;
  std::vector<std::filesystem::path> files;
  const auto& targets = vlmest::fuzz::targets;
  const auto target =
      std::find_if(targets.begin(), targets.end(), [&](const auto& t) { return argc > 1 && t.name == argv[1]; });
  if (target == targets.end()) {
    std::fprintf(stderr, "the first argument names a target:");
    for (const auto& t : targets) std::fprintf(stderr, " %s", std::string(t.name).c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::atol(argv[++i]) : 0; };
    if (arg == "--inputs")
      inputs = value();
    else if (arg == "--seed")
      seed = static_cast<std::uint64_t>(value());
    else if (arg == "--first")
      first = value();
    else if (arg == "--timeout")
      timeout = static_cast<unsigned>(value());
    else if (std::filesystem::is_directory(arg))
      for (const auto& e : std::filesystem::directory_iterator(arg)) files.push_back(e.path());
    else
      files.emplace_back(arg);
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const auto& f : files) corpus.push_back(read(f));
  if (corpus.empty()) {
    std::fprintf(stderr, "no files to start from\n");
    return 2;
  }
  for (const int s : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGPROF}) std::signal(s, keep);

  double slowest = 0;
  long slowest_number = -1;
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& c : corpus) slowest = std::max(slowest, run(*target, c));
  const vlmest::fuzz::Mutator mutate(corpus);
  for (number = first; number < first + inputs; ++number) {
    vlmest::fuzz::Mutator::Random random(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number));
    const double took = run(*target, mutate(corpus[random() % corpus.size()], random));
    if (took > slowest) {
      slowest = took;
      slowest_number = number;
    }
  }
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  std::printf("%zu files and %ld mutations, seed %llu: %.0f s, slowest input %ld with %.3f s, no failure\n",
              corpus.size(), inputs, static_cast<unsigned long long>(seed), all.count(), slowest_number, slowest);
  return 0;
}
