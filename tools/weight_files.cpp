// SPDX-License-Identifier: Apache-2.0
#include "weight_files.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <utility>

#include <vlmest/json/parse.hpp>
#include <vlmest/json/reader.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/parallel/states.hpp>

#include "files.hpp"
#include "plan_flags.hpp"
#include "streams.hpp"
#include "units.hpp"

namespace vlmest::tool {
namespace fs = std::filesystem;

namespace {

/// Below this share of the weights two counts are one: files may keep buffers (position ids), or a norm in fp32. What
/// is read wrongly is a type, a matrix of every layer or a tower.
constexpr double same = 0.01;

/// A safetensors file is the length of its header in 8 bytes, lowest first, the header, an object, and the tensors
/// (huggingface/safetensors, README.md, Format).
WeightFiles of_safetensors(const fs::path& path) {
  constexpr std::uintmax_t length = 8;
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(path, failed);
  std::array<unsigned char, length + 1> head{};
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(head.data()), head.size());
  std::uint64_t header = 0;
  for (std::size_t i = length; i-- > 0;) header = header << 8 | head[i];
  if (failed || !in || size < length || header > size - length || head[length] != '{')
    throw Error(path.string(), "is not a safetensors file", "a pointer of Git LFS? download it, or remove it");
  return {Bytes(static_cast<std::int64_t>(size - length - header)), path.string()};
}

WeightFiles of_index(const fs::path& path) {
  const std::string where = path.string();
  const nlohmann::json document = json::parse(read_file(where), where);
  const json::Reader metadata = json::Reader(document, where).object("metadata");
  const double total = metadata.number("total_size", 0);  // some writers make a floating-point number of it
  if (!(total >= 1 && total < 0x1p62)) metadata.fail("total_size", "expected the bytes of all tensors");
  return {Bytes(static_cast<std::int64_t>(total)), where};
}

/// As they are stored: nothing unpacked or widened yet.
Bytes counted_weights(const Vlm& vlm, Plan plan) {
  plan.lora.rank = 0;
  Builder b;
  Context c{b, plan, stack_of(plan)};
  c.loads = true;
  declare_parameters(c, vlm);
  return parallel::weight_bytes(b.graph).all;
}

}  // namespace

std::optional<WeightFiles> weight_files(const fs::path& folder) {
  std::error_code ignored;
  if (const fs::path index = folder / "model.safetensors.index.json"; fs::exists(index, ignored))
    return of_index(index);
  if (const fs::path single = folder / "model.safetensors"; fs::exists(single, ignored)) return of_safetensors(single);
  return std::nullopt;
}

void compare_weight_files(const EstimateArgs& args, const Vlm& vlm, Plan plan) {
  std::error_code ignored;
  const fs::path config = args.config;
  const bool folder = fs::is_directory(config, ignored);
  if (!folder && config.filename() != "config.json") return;
  // Who asks for other types than the checkpoint's does not ask for its files.
  if (!args.dtype.empty() || plan.amp || plan.weights) return;
  std::optional<WeightFiles> files;
  try {
    files = weight_files(folder ? config : config.parent_path());
  } catch (const Error& e) {
    return say("note: the checkpoint's weights were not compared: " + in_flags(e.where + ": " + e.what_happened));
  }
  if (!files) return;
  const Bytes counted = counted_weights(vlm, std::move(plan));
  const double of = static_cast<double>(files->bytes.value()), n = static_cast<double>(counted.value());
  if (std::abs(n - of) <= same * std::max(n, of)) return;
  say("note: " + files->path + " has " + show(files->bytes) + " of weights, the estimate counts " + show(counted) +
      ": the files hold other modules or types than this config.json describes");
}

}  // namespace vlmest::tool
