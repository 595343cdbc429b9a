// SPDX-License-Identifier: Apache-2.0
// Runs of many GPUs that others published: what the page on several GPUs says of them is what the program answers.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_published_runs_test {
namespace {

const std::string root = VLMEST_SOURCE_DIR;

/// "2,904"
std::string with_thousands(std::int64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t at = s.size(); at > 3;) s.insert(at -= 3, ",");
  return s;
}

TEST(PublishedRuns, AreAnsweredAsThePageSays) {
  const Json file = Json::parse(slurp(root + "/tests/data/several_gpus/published.json"));
  const std::string page = slurp(root + "/docs/howto/several-gpus.md");
  const Folder f;
  for (const Json& row : file["rows"]) {
    const std::string model = row["model"], config = f.write("config.json", file["models"][model].dump());
    const Json p = Json::parse(good("--config '" + config + "' " + file["flags"].get<std::string>() + " " +
                                    row["flags"].get<std::string>() + " --json"))["parallel"];
    const double published = row["tokens_per_s"], said = p["tokens_per_s"].get<double>() / p["gpus"].get<double>();
    EXPECT_LT(std::abs(said / published - 1), 0.35) << model << row["flags"];
    const std::string line =
        fmt::format("| {} | {} | `{}` | {} | {} | {:+.0f} % |", model, row["checkpointed"].get<std::string>(),
                    row["flags"].get<std::string>(), with_thousands(row["tokens_per_s"]),
                    with_thousands(std::llround(said)), (said / published - 1) * 100);
    EXPECT_NE(page.find(line), std::string::npos) << "docs/howto/several-gpus.md does not say\n" << line;
  }
}

}  // namespace
}  // namespace cli::cli_published_runs_test
#endif
