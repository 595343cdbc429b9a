// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/kineto.hpp>

#include "evidence/gzip_source.hpp"

namespace vlmest::tool::trace_file_test {
namespace {

using namespace diagnose;

const std::string folder = VLMEST_SOURCE_DIR "/tests/data/traces_profiler/";

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file that is gone with the test.
class Temporary {
 public:
  explicit Temporary(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() / ("vlmest_file" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~Temporary() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string content(FileSource& source) {
  std::string all;
  for (auto piece = source(); !piece.empty(); piece = source()) all += piece;
  return all;
}
std::string content(const std::string& path) {
  FileSource source(path);
  return content(source);
}
std::string refusal(const std::string& path) {
  try {
    content(path);
  } catch (const Error& e) {
    EXPECT_EQ(e.where, path);
    EXPECT_FALSE(e.hint.empty());
    return e.what_happened;
  }
  return "was read";
}

SlowRun diagnosis(const std::string& name) {
  const ProfileTrace t = json::read_kineto(FileSource(folder + name), name);
  EXPECT_EQ(t.broken, 0);
  EXPECT_FALSE(t.truncated);
  const Device d = load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json");
  return slow_run(t, &d);
}

TEST(FileSource, GivesPlainAndGzipFilesAlike) {
  const std::string plain = bytes_of(folder + "relative.json");
  EXPECT_EQ(content(folder + "relative.json"), plain);
  EXPECT_EQ(content(folder + "relative.json.gz"), plain);
  FileSource source(folder + "relative.json.gz");
  EXPECT_TRUE(source.compressed());
  EXPECT_EQ(source.head(), plain);
  EXPECT_EQ(source.head(), plain);
  EXPECT_EQ(content(source), plain);  // and the head once more
  EXPECT_FALSE(source.truncated());
}

TEST(FileSource, GzipFilesOfSeveralMembersAndPadding) {
  const std::string plain = bytes_of(folder + "relative.json"), packed = bytes_of(folder + "relative.json.gz");
  EXPECT_EQ(content(Temporary(packed + packed).path()), plain + plain);
  const Temporary padded(packed + std::string(512, '\0'));
  FileSource source(padded.path());
  EXPECT_EQ(content(source), plain);
  EXPECT_FALSE(source.truncated());
}

TEST(FileSource, ACutGzipFileIsReadToItsEnd) {
  const std::string plain = bytes_of(folder + "relative.json"), packed = bytes_of(folder + "relative.json.gz");
  for (std::size_t n = 20; n < packed.size(); n += 50) {
    const Temporary cut(packed.substr(0, n));
    FileSource source(cut.path());
    EXPECT_TRUE(plain.starts_with(content(source)));
    EXPECT_TRUE(source.truncated());
  }
  const Temporary cut(packed.substr(0, packed.size() - 60));
  const ProfileTrace t = json::read_kineto(FileSource(cut.path()), "cut");
  EXPECT_TRUE(t.truncated);
  EXPECT_GE(t.kernels.size(), 1u);
}

TEST(FileSource, RefusesDamagedGzipAndNoFile) {
  std::string packed = bytes_of(folder + "relative.json.gz");
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
  EXPECT_TRUE(refusal(Temporary(packed).path()).starts_with("is damaged gzip data"));
  EXPECT_EQ(refusal("/nowhere/at/all"), "cannot be read");
  EXPECT_EQ(refusal("/tmp"), "cannot be read");
  EXPECT_EQ(content(Temporary("").path()), "");
}

TEST(FileSource, StopsWhereDataInflatesWithoutEnd) {
  // A gibibyte of zeros in a megabyte: members of one mebibyte each, made once.
  const std::string member = bytes_of(folder + "zeros.gz");
  std::string bomb;
  for (int i = 0; i < 1024; ++i) bomb += member;
  EXPECT_EQ(refusal(Temporary(bomb).path()), "inflates to more than 128 times its size");
}

TEST(RecordedTrace, APrefillIsLimitedByArithmetic) {
  const SlowRun r = diagnosis("h200_prefill.json.gz");
  EXPECT_EQ(r.verdict.cause, Cause::compute_bound);
  EXPECT_EQ(r.phase.phase, TracedPhase::prefill);
  EXPECT_GT(r.gpu.share(r.gpu.busy_time()), 0.95);
  ASSERT_FALSE(r.ops.ops.empty());
  // Its largest product is within a quarter of the time that is expected of it, and farther from the roofline.
  const OpDistance& d = r.ops.ops[0];
  EXPECT_EQ(d.calls, 64);
  EXPECT_EQ(std::get<Matmul>(d.op).n, 11008);
  EXPECT_NEAR(d.time().value / d.expected.value, 1, 0.25);
  EXPECT_GT(d.time().value, d.roofline.value);
  EXPECT_GT(static_cast<double>(r.ops.attributed), 0.8 * static_cast<double>(r.gpu.all_kernels.time));
}

TEST(RecordedTrace, ValuesReadBackKeepTheDeviceWaiting) {
  const SlowRun r = diagnosis("h200_sync.json.gz");
  EXPECT_EQ(r.verdict.cause, Cause::host_bound);
  EXPECT_EQ(r.idle.synchronisations.count, 329);
  EXPECT_EQ(r.host_reads, 329);
}

TEST(RecordedTrace, CopiesFromPageableMemory) {
  const SlowRun r = diagnosis("h200_copies.json.gz");
  EXPECT_EQ(r.verdict.cause, Cause::host_bound);
  const CopyTotals& up = r.gpu.copies[static_cast<std::size_t>(CopyKind::host_to_device)];
  EXPECT_EQ(up.pageable.count, 2);
  EXPECT_EQ(up.bytes, Bytes(std::int64_t{2} << 30));
  EXPECT_GT(r.gpu.share(r.gpu.exposed_copies), 0.7);
  EXPECT_EQ(r.steps.size(), 2u);
}

TEST(RecordedTrace, GradientsThatTwoGpusAddUp) {
  const SlowRun r = diagnosis("h200_ddp.json.gz");
  // 28.9 ms a step alone, 35.9 ms with the other GPU; the kernels take 9.
  EXPECT_EQ(r.verdict.cause, Cause::host_bound);
  const Totals& nccl = r.gpu.families[static_cast<std::size_t>(KernelFamily::communication)];
  EXPECT_EQ(nccl.count, 15);
  EXPECT_NEAR(static_cast<double>(nccl.time), 3165281, 100);
  // 169 us of it beside other kernels.
  EXPECT_NEAR(static_cast<double>(r.gpu.exposed_communication), 2996032, 1000);
}

}  // namespace
}  // namespace vlmest::tool::trace_file_test
