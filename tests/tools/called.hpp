// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "../sanitizer.hpp"

/// The program as it is called: what it writes where, and with which exit code it ends.
#ifdef VLMEST_PROGRAM
namespace cli {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A folder of this test alone, gone when it ends.
struct Folder {
  fs::path path;
  Folder() {
    static int count = 0;
    path = fs::path(testing::TempDir()) / ("vlmest-cli-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

inline std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Called {
  int code = -1;
  std::string out, err;
};

/// Looking for leaks takes the program as long as starting it: under AddressSanitizer every eighth call does.
inline void look_for_leaks_at_times() {
  if (!under_address_sanitizer) return;
  static const char* const options = std::getenv("ASAN_OPTIONS");
  static const std::string given = options == nullptr ? "" : options;
  static int calls = 0;
  setenv("ASAN_OPTIONS", (calls++ % 8 == 0 ? given : given + ":detect_leaks=0").c_str(), 1);
}

/// What `vlmest ARGUMENTS` does, called by a shell; `before` stands in front of it (variables, a cd).
inline Called run(const std::string& arguments, const std::string& input = {}, const std::string& before = {}) {
  const Folder f;
  const std::string in = f.write("in", input), err = (f.path / "err").string();
  const std::string command = before + " '" + VLMEST_PROGRAM "' " + arguments + " <'" + in + "' 2>'" + err + "'";
  look_for_leaks_at_times();
  Called r;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return r;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) r.out += static_cast<char>(c);
  const int status = pclose(pipe);
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  r.err = slurp(err);
  return r;
}

inline std::string good(const std::string& arguments, const std::string& input = {}, const std::string& before = {}) {
  const Called r = run(arguments, input, before);
  EXPECT_EQ(r.code, 0) << arguments << "\n" << r.err;
  EXPECT_EQ(r.err, "") << arguments;
  return r.out;
}

/// The call fails with `code` and says no more than these two lines; nothing goes to standard output.
inline void refused(const std::string& arguments, int code, const std::string& error, const std::string& hint,
                    const std::string& input = {}) {
  const Called r = run(arguments, input);
  EXPECT_EQ(r.code, code) << arguments;
  EXPECT_EQ(r.out, "") << arguments;
  EXPECT_EQ(r.err, "error: " + error + "\nhint: " + hint + "\n") << arguments;
}

inline const std::string model = "--config llava-next-7b ";

/// Checks "pointer:type" for every word of `types`.
inline void has(const Json& o, const std::string& types) {
  std::istringstream list(types);
  for (std::string entry; list >> entry;) {
    const Json::json_pointer key(entry.substr(0, entry.find(':')));
    const std::string type = entry.substr(entry.find(':') + 1);
    ASSERT_TRUE(o.contains(key)) << entry;
    const Json& v = o[key];
    if (type == "int")
      EXPECT_TRUE(v.is_number_integer()) << entry << " is " << v;
    else if (type == "number")
      EXPECT_TRUE(v.is_number()) << entry << " is " << v;
    else
      EXPECT_EQ(v.type_name(), type) << entry;
    EXPECT_FALSE(v.is_number() && v < 0) << entry << " is " << v;
    const bool known = v == "compute" || v == "memory" || v == "launch" || v == "network";
    EXPECT_TRUE(key.back() != "bound" || known) << v;
  }
}

}  // namespace cli
#endif
