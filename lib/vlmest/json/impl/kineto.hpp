// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/kineto.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::json {
namespace kineto_detail {

VLMEST_INLINE Category category(std::string_view c) {
  if (c == "cpu_op" || c == "Operator") return Category::op;
  if (c == "kernel" || c == "Kernel") return Category::kernel;
  if (c == "gpu_memcpy" || c == "gpu_memset" || c == "Memcpy" || c == "Memset") return Category::copy;
  if (c == "cuda_runtime" || c == "cuda_driver" || c == "Runtime" || c == "xpu_runtime" || c == "xpu_driver" ||
      c == "privateuse1_runtime" || c == "privateuse1_driver")
    return Category::call;
  if (c == "user_annotation") return Category::annotation;
  if (c == "python_function") return Category::python;
  if (c == "overhead") return Category::overhead;
  if (c == "cpu_instant_event") return Category::instant;
  return Category::other;
}

VLMEST_INLINE bool passed_over(std::string_view event) {
  const std::string_view head = event.substr(0, 64);
  const auto at = head.find("\"cat\": \"");
  if (at == std::string_view::npos) return false;
  const std::string_view c = head.substr(at + 8);
  if (c.starts_with("python_function")) return event.substr(0, 256).find("\"nn.Module: ") == std::string_view::npos;
  return c.starts_with("ac2g") || c.starts_with("fwdbwd") || c.starts_with("gpu_user_annotation");
}

}  // namespace kineto_detail
}  // namespace vlmest::json
