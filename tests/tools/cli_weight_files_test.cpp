// SPDX-License-Identifier: Apache-2.0
// A checkpoint's weights beside its config.json are held against what the estimate counts.
#include <cstdint>

#include "called.hpp"

#ifdef VLMEST_PROGRAM
namespace cli::cli_weight_files_test {
namespace {

/// Two bytes for each parameter of Qwen2.5-VL-7B.
constexpr std::int64_t whole = 2 * std::int64_t{8292166656};

struct Checkpoint : Folder {
  Checkpoint() { write("config.json", slurp(fs::path(VLMEST_SOURCE_DIR) / "tests/data/configs/qwen2.5-vl-7b.json")); }
  void index(const std::string& total) const {
    write("model.safetensors.index.json", R"({"metadata": {"total_size": )" + total + R"(}, "weight_map": {}})");
  }
  std::string said(const std::string& flags = "") const {
    const Called r = run("--config '" + path.string() + "' --phase inference " + flags);
    EXPECT_EQ(r.code, 0) << r.err;
    return r.err;
  }
};

TEST(WeightFiles, OfTheModelAreNotSpokenOf) {
  const Checkpoint c;
  EXPECT_EQ(c.said(), "");
  c.index(std::to_string(whole));
  EXPECT_EQ(c.said(), "");
  c.index(std::to_string(whole) + ".0");
  EXPECT_EQ(c.said(), "");
}

TEST(WeightFiles, OfAnotherSizeAreTold) {
  const Checkpoint c;
  c.index(std::to_string(2 * whole));
  EXPECT_EQ(c.said(),
            "note: " + (c.path / "model.safetensors.index.json").string() +
                " has 30.9 GiB of weights, the estimate counts 15.4 GiB: the files hold other modules or types "
                "than this config.json describes\n");
  for (const char* flags : {"--dtype fp32", "--weights int8", "--amp"}) EXPECT_EQ(c.said(flags), "") << flags;
}

TEST(WeightFiles, ThatDoNotSayTheirSizeAreNotCompared) {
  const Checkpoint c;
  const std::string index = (c.path / "model.safetensors.index.json").string(),
                    single = (c.path / "model.safetensors").string();
  const auto no = [](const std::string& what) {
    return "note: the checkpoint's weights were not compared: " + what + "\n";
  };
  for (const char* total : {"0", "-5", "1e300"}) {
    c.index(total);
    EXPECT_EQ(c.said(), no(index + ".metadata.total_size: expected the bytes of all tensors")) << total;
  }
  fs::remove(index);
  c.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(c.said(), no(single + ": is not a safetensors file"));
}

/// Of one file the header is no weight.
TEST(WeightFiles, InOneFileAreWhatFollowsItsHeader) {
  const Checkpoint c;
  c.write("model.safetensors", std::string("\2\0\0\0\0\0\0\0", 8) + "{}");
  fs::resize_file(c.path / "model.safetensors", 8 + 2 + static_cast<std::uintmax_t>(whole));
  EXPECT_EQ(c.said(), "");
  fs::resize_file(c.path / "model.safetensors", 8 + 2 + (1u << 30));
  EXPECT_EQ(c.said(),
            "note: " + (c.path / "model.safetensors").string() +
                " has 1.00 GiB of weights, the estimate counts 15.4 GiB: the files hold other modules or types "
                "than this config.json describes\n");
}

}  // namespace
}  // namespace cli::cli_weight_files_test
#endif
