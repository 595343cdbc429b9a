// SPDX-License-Identifier: Apache-2.0
// A file of evidence as `vlmest diagnose` reads it: its kind by its content, inflated where it is compressed, a
// database of Nsight Systems by SQLite.
#include <filesystem>
#include <optional>

#include <unistd.h>

#include <vlmest/unit/error.hpp>

#include "device.hpp"
#include "evidence/evidence.hpp"
#include "output/json_document.hpp"
#include "target.hpp"

namespace {

using namespace vlmest;
using fuzz::require;

/// One file that is written anew for each input; SQLite opens by name alone. Gone with the program.
class Scratch {
 public:
  Scratch()
      : path_((std::filesystem::temp_directory_path() / "vlmest-fuzz-XXXXXX").string()), fd_(mkstemp(path_.data())) {
    require(fd_ >= 0, "no temporary file");
  }
  ~Scratch() {
    close(fd_);
    unlink(path_.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& hold(const std::uint8_t* data, std::size_t size) {
    require(ftruncate(fd_, 0) == 0 && pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size), "cannot write");
    return path_;
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Scratch scratch;
  const std::string& path = scratch.hold(data, size);
  // Without a device a trace's own is looked for among the shipped ones, which takes longer than all the rest.
  fuzz::Choices choices(fuzz::text(data, size));
  const auto device = choices.of(16) == 0 ? std::nullopt : std::optional(fuzz::device);
  try {
    const tool::Evidence e = tool::read_evidence(path, device);
    require(e.file == path && !e.kind.empty(), "evidence of no kind");
    require(!e.out_of_memory || e.failure, "a failed allocation of which nothing is known");
    require(!tool::json_document(e.facts).empty(), "facts that cannot be printed");
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
