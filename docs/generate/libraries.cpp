// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/libraries.md: the libraries that the graph follows, and what they decide by architecture.
#include <cstdio>
#include <string>

#include <vlmest/library/rules.hpp>

namespace {

std::string capability(int sm) { return std::to_string(sm / 10) + "." + std::to_string(sm % 10); }

std::string capabilities(const vlmest::ArchitectureRow& r) {
  std::string s;
  for (const vlmest::Architectures& a : r.on) {
    if (a.first > a.last) continue;
    if (!s.empty()) s += ", ";
    s += capability(a.first);
    if (a.last == 999)
      s += " and above";
    else if (a.last != a.first)
      s += " to " + capability(a.last);
  }
  return s;
}

std::string text(std::string_view s) { return std::string(s); }

}  // namespace

int main() {
  std::printf(
      "# Libraries\n\nThe graph follows what these versions run and allocate. This page is printed by "
      "`docs/generate/libraries.cpp` out of\n[lib/vlmest/library/rules.hpp](../../lib/vlmest/library/rules.hpp).\n\n"
      "| library | version |\n|---|---|\n");
  for (const vlmest::LibraryVersion& l : vlmest::libraries)
    std::printf("| %s | %s |\n", text(l.name).c_str(), text(l.version).c_str());
  std::printf(
      "\n## By architecture\n\nWhat they do on some GPUs alone. The compute capability is the device's `sm`.\n\n"
      "| library | what | compute capability | source |\n|---|---|---|---|\n");
  for (const vlmest::ArchitectureRow& r : vlmest::architecture_rules)
    std::printf("| %s | %s | %s | %s |\n", text(vlmest::followed(r.library).name).c_str(), text(r.what).c_str(),
                capabilities(r).c_str(), text(r.source).c_str());
  return 0;
}
