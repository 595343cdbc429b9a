// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <cerrno>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/json/network.hpp>
#include <vlmest/json/parse.hpp>
#include <vlmest/json/processor.hpp>
#include <vlmest/json/quantization_file.hpp>
#include <vlmest/parallel/link.hpp>

#include "catalogue.hpp"
#include "shipped.hpp"
#include "streams.hpp"

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

/// No processor's file is near this.
constexpr std::uintmax_t largest_processor_file = 1u << 20;

/// A file beside a checkpoint's config.json.
nlohmann::json processor_document(const fs::path& path) {
  const char* const hint = "compare with the checkpoint's published file, or remove the file to use the family's own";
  std::error_code failed;
  if (const auto size = fs::file_size(path, failed); !failed && size > largest_processor_file)
    throw Error(path.string(), "larger than 1 MiB", hint);
  const std::string text = read_file(path.string());
  try {
    return json::parse(text, path.string());
  } catch (const Error& e) {
    throw Error(e.where, e.what_happened, hint);
  }
}

/// The image processor as the files in a checkpoint's folder set it; says on stderr which were read, and what of them
/// was not used.
void read_processor_files(const fs::path& folder, Vlm& vlm) {
  std::error_code ignored;
  const fs::path image = folder / "preprocessor_config.json", outer = folder / "processor_config.json",
                 video = folder / "video_preprocessor_config.json";
  const bool has_image = fs::exists(image, ignored), has_outer = fs::exists(outer, ignored);
  std::vector<std::string> lines;
  const auto read = [&](const nlohmann::json& document, const std::string& path, json::ProcessorFile file) {
    const bool videos = file == json::ProcessorFile::video;
    if (!videos || vlm.family.traits().videos != VideoPixels::refused)
      lines.push_back((videos              ? "video processor as "
                       : takes_images(vlm) ? "image processor as "
                                           : "processor as ") +
                      path + " sets it");
    for (auto& line : json::read_processor(document, path, file, vlm)) lines.push_back(std::move(line));
  };
  bool nested = false;
  nlohmann::json nested_video;  // read last: files of pictures set videos too where nothing else does
  if (has_outer) {
    const nlohmann::json document = processor_document(outer);
    nested = json::holds_image_processor(document);
    if (json::holds_video_processor(document)) nested_video = document["video_processor"];
    read(document, outer.string(), json::ProcessorFile::processor);
    if (nested && has_image)
      lines.push_back(image.string() + " was not read: processor_config.json holds the image processor");
  }
  if (has_image && !nested) read(processor_document(image), image.string(), json::ProcessorFile::preprocessor);
  if (!nested_video.is_null())
    read(nested_video, outer.string() + ".video_processor", json::ProcessorFile::video);
  else if (fs::exists(video, ignored))
    read(processor_document(video), video.string(), json::ProcessorFile::video);
  for (const auto& line : lines) say("note: " + line);
}

/// How the weights are stored where config.json does not say it and a file beside it does.
void read_quantization_files(const fs::path& folder, Vlm& vlm) {
  std::error_code ignored;
  for (const json::QuantizationFile& file : json::quantization_files) {
    const std::string path = (folder / file.name).string();
    if (!fs::exists(path, ignored)) continue;
    return json::read_quantization_file(json::parse(read_file(path), path), path, file, vlm);
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
  const nlohmann::json document = json::parse(read_file(path.string()), where);
  Vlm vlm = json::read_model(document, where);
  // A description says itself what its processor is set to.
  if (config != "-" && path.filename() == "config.json" && !document.contains("model")) {
    read_processor_files(path.parent_path(), vlm);
    if (json::wants_quantization_file(document, where)) read_quantization_files(path.parent_path(), vlm);
  }
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

fs::path network_file(const std::string& name) {
  std::error_code ignored;
  const fs::path known = shipped_models() / "network" / (name + ".json");
  if (fs::exists(known, ignored)) return known;
  if (name == "-" || (fs::exists(name, ignored) && !fs::is_directory(name, ignored))) return name;
  const std::vector<std::string> all = shipped("network");
  const std::string near = nearest(name, all);
  std::string list;
  for (const std::string& n : all) list += (list.empty() ? "" : ", ") + n;
  throw Error("--network", "unknown network '" + name + "'",
              near.empty() ? "give a file, or one of " + list : "did you mean " + near + "?");
}

parallel::Network find_network(const std::string& network, const Device& device) {
  const std::string file = network_file(network.empty() ? parallel::own_network(device) : network).string();
  return json::parse_network(read_file(file), file == "-" ? "standard input" : file);
}

}  // namespace vlmest::tool
