// SPDX-License-Identifier: Apache-2.0
// Copies and streams move bytes: they are held against bytes.
#include <cstring>
#include <numeric>

#include <kernels/copy/copy.hpp>

#include "device_tensor.hpp"

namespace vlmest::kernels::copy_test {
namespace {

using Kind = Elementwise::Kind;
using RawBytes = std::vector<std::uint8_t>;

RawBytes random_bytes(std::int64_t n, Random& random) {
  const auto values = random.indices(n, 256);
  return {values.begin(), values.end()};
}

/// Device memory with `margin` bytes of 0xFF before and behind.
class Memory {
 public:
  static constexpr std::int64_t margin = 256;
  explicit Memory(std::int64_t n) : n_(n), buffer_(scratch(Bytes(n + 2 * margin))) {}
  Memory(const RawBytes& content, std::int64_t offset) : Memory(static_cast<std::int64_t>(content.size()) + offset) {
    cuda::check(cudaMemcpy(at(offset), content.data(), content.size(), cudaMemcpyHostToDevice));
    cuda::check(cudaDeviceSynchronize());
  }

  std::uint8_t* at(std::int64_t offset) const { return buffer_.as<std::uint8_t>() + margin + offset; }
  /// `n` bytes from `offset` on; everything else must be untouched.
  RawBytes content(std::int64_t offset, std::int64_t n) const {
    cuda::check(cudaDeviceSynchronize());
    RawBytes all(static_cast<std::size_t>(n_ + 2 * margin));
    cuda::check(cudaMemcpy(all.data(), buffer_.data(), all.size(), cudaMemcpyDeviceToHost));
    const auto first = all.begin() + margin + offset;
    for (auto i = all.begin(); i != all.end(); ++i)
      if ((i < first || i >= first + n) && *i != 0xFF) {
        ADD_FAILURE() << "byte " << i - first << " of " << n << " was written";
        break;
      }
    return {first, first + n};
  }

 private:
  std::int64_t n_;
  cuda::Buffer buffer_;
};

constexpr std::int64_t many = (1 << 18) * 16;
constexpr std::array<std::int64_t, 12> sizes{1, 3, 4, 15, 16, 17, 4095, 100'003, many + 7, 3 * many, 2'000'001, 32'768};

class CopyKernels : public DeviceTest {};

template <class Copy>
void expect_copied(std::int64_t n, std::int64_t from_offset, std::int64_t to_offset, Random& random) {
  SCOPED_TRACE(std::to_string(n) + " bytes, offsets " + std::to_string(from_offset) + " and " +
               std::to_string(to_offset));
  const RawBytes bytes = random_bytes(n, random);
  const Memory from(bytes, from_offset), to(n + to_offset);
  const cuda::Stream stream;
  Copy{{.kind = Kind::copy, .elements = n, .dtype = DType::uint8}}(
      {.from = from.at(from_offset), .to = to.at(to_offset)}, stream.get());
  stream.synchronize();
  EXPECT_TRUE(to.content(to_offset, n) == bytes);
}

TEST_F(CopyKernels, CopyEveryByteOfEverySize) {
  Random random;
  for (const std::int64_t n : sizes) {
    expect_copied<StreamCopy>(n, 0, 0, random);
    expect_copied<MemcpyCopy>(n, 0, 0, random);
  }
}

TEST_F(CopyKernels, CopyFromAndToAnyAddress) {
  Random random;
  for (const std::int64_t from : {0, 1, 2, 4, 8})
    for (const std::int64_t to : {0, 1, 4, 6})
      for (const std::int64_t n : {1, 31, 5000}) expect_copied<StreamCopy>(n, from, to, random);
}

TEST_F(CopyKernels, ReadSumsEveryWord) {
  Random random;
  for (const std::int64_t n : sizes) {
    SCOPED_TRACE(n);
    const RawBytes bytes = random_bytes(n, random);
    const Memory from(bytes, 0);
    const StreamRead read({.kind = Kind::read, .elements = n, .dtype = DType::uint8});
    const cuda::Buffer sums = scratch(read.workspace());
    const cuda::Stream stream;
    read({.from = from.at(0), .sums = sums.as<std::uint32_t>()}, stream.get());
    stream.synchronize();
    std::vector<std::uint32_t> partial(static_cast<std::size_t>(sums.size().value() / 4));
    cuda::check(cudaMemcpy(partial.data(), sums.data(), partial.size() * 4, cudaMemcpyDeviceToHost));
    std::uint32_t expected = 0;
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i, 4);
      expected += word;
    }
    for (; i < bytes.size(); ++i) expected += bytes[i];
    EXPECT_EQ(std::accumulate(partial.begin(), partial.end(), std::uint32_t{0}), expected);
  }
}

TEST_F(CopyKernels, WriteFillsEveryByte) {
  Random random;
  for (const std::int64_t n : sizes) {
    SCOPED_TRACE(n);
    const auto seed = static_cast<std::uint32_t>(random.seed());
    const Memory to(n);
    const cuda::Stream stream;
    StreamWrite{{.kind = Kind::write, .elements = n, .dtype = DType::uint8}}({.to = to.at(0), .seed = seed},
                                                                             stream.get());
    stream.synchronize();
    RawBytes expected(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<std::uint8_t>(written_word(i / 4, seed) >> (i % 4 * 8));
    EXPECT_TRUE(to.content(0, n) == expected);
  }
}

TEST_F(CopyKernels, StreamsWantAlignedMemory) {
  const Memory memory(64);
  const cuda::Stream stream;
  EXPECT_THROW((StreamRead{{.kind = Kind::read, .elements = 8}}(
                   {.from = memory.at(4), .sums = reinterpret_cast<std::uint32_t*>(memory.at(0))}, stream.get())),
               Error);
  EXPECT_THROW((StreamWrite{{.kind = Kind::write, .elements = 8}}({.to = memory.at(2)}, stream.get())), Error);
}

TEST(CopyKernelsLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_NO_THROW(StreamCopy({.elements = 8, .dtype = DType::fp8}));
  EXPECT_THROW(StreamCopy({.kind = Kind::read, .elements = 8}), Error);
  EXPECT_THROW(MemcpyCopy({.kind = Kind::write, .elements = 8}), Error);
  EXPECT_THROW(StreamRead({.kind = Kind::copy, .elements = 8}), Error);
  EXPECT_THROW(StreamWrite({.kind = Kind::copy, .elements = 8}), Error);
  EXPECT_THROW(StreamCopy({.elements = 0}), Error);
  EXPECT_THROW(StreamCopy({.elements = 8, .dtype = DType::int4}), Error);
}

TEST(StreamRead, GivesASumForEvery32KiB) {
  const auto workspace = [](std::int64_t n) {
    return StreamRead({.kind = Kind::read, .elements = n, .dtype = DType::uint8}).workspace();
  };
  EXPECT_EQ(workspace(1), Bytes(4));
  EXPECT_EQ(workspace(32768), Bytes(4));
  EXPECT_EQ(workspace(32768 + 16), Bytes(8));
  EXPECT_EQ(workspace(1 << 30), Bytes(4 * 32768));
}

}  // namespace
}  // namespace vlmest::kernels::copy_test
