// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/report/estimate.hpp>

int main() {
  std::ifstream file("models/vlm/llava-next-7b.json");
  const vlmest::Vlm vlm = vlmest::json::read_model(nlohmann::json::parse(file), "llava-next-7b");
  const vlmest::Device device = vlmest::load_device("models/device/l40s.json");
  vlmest::Estimator estimate;
  for (int batch : {1, 8, 16}) {
    const auto e = estimate(vlm, {.batch = batch, .seq = 4096}, device).inference;
    std::printf("batch %2d: %.1f GiB, %s\n", batch, e.peak.value() / 0x1p30, e.fits ? "fits" : "does not fit");
  }
}
