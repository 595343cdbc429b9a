// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <cerrno>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>

#include "catalogue.hpp"
#include "shipped.hpp"

namespace vlmest::tool {
namespace fs = std::filesystem;

namespace {

/// No description, list of operations or file of measured rows is larger; a larger file is something else.
constexpr std::size_t largest_file = std::size_t{64} << 20;

/// The bytes of an open file up to its end. Throws Error where reading fails, and beyond the largest size: a device or
/// a pipe may have no end.
std::string whole_file(int fd, const std::string& where) {
  std::string text;
  std::vector<char> piece(std::size_t{1} << 16);
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::error_code why(errno, std::generic_category());
      throw Error(where, "cannot be read: " + why.message(), "check what it is");
    }
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
    if (text.size() > largest_file)
      throw Error(where, "larger than 64 MiB", "a model description is a small JSON file");
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") return whole_file(STDIN_FILENO, "standard input");
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw Error(path, "is a folder, not a file", "name the file inside it");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(path, "cannot be read", "check the path and its permissions");
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } const closer{fd};
  return whole_file(fd, path);
}

Vlm find_model(const std::string& config) {
  std::error_code ignored;
  fs::path path = config;
  if (config != "-") {
    if (fs::is_directory(path, ignored)) {
      path /= "config.json";
      if (!fs::exists(path, ignored))
        throw Error(config, "the folder holds no config.json", "name a file, or the folder of a checkpoint");
    }
    if (!fs::exists(path, ignored)) {
      const auto known = shipped_model(config);
      if (!known) throw Error(config, "no such model or file", did_you_mean_model(config));
      path = *known;
    }
  }
  const std::string where = config == "-"                      ? "standard input"
                            : path.filename() == "config.json" ? path.string()
                                                               : path.filename().string();
  Vlm vlm = json::parse_model(read_file(path.string()), where);
  if (vlm.name.empty()) {
    const bool anonymous = path.filename() == "config.json" && path.has_parent_path();
    vlm.name = config == "-" ? "model"
               : anonymous   ? fs::absolute(path).parent_path().filename().string()
                             : path.stem().string();
  }
  return vlm;
}

fs::path device_file(const std::string& device) {
  std::error_code ignored;
  if (const fs::path known = shipped_models() / "device" / (device + ".json"); fs::exists(known, ignored)) return known;
  if (device == "-" || (fs::exists(device, ignored) && !fs::is_directory(device, ignored))) return device;
  if (const auto known = shipped_device(device)) return *known;
  throw Error("--device", "unknown device '" + device + "'", did_you_mean_device(device));
}

Device find_device(const std::string& device) {
  const std::string file = device_file(device).string();
  return parse_device(read_file(file), file == "-" ? "standard input" : file);
}

}  // namespace vlmest::tool
