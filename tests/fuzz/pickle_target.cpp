// SPDX-License-Identifier: Apache-2.0
// A memory snapshot as a pickle (or JSON), its analysis, and what the replay takes of it. Bytes that another program
// has changed are mostly no pickle any more, so the input is also read with a few opcodes and numbers put into it.
#include <string>

#include <vlmest/diagnose/evidence/snapshot/read.hpp>
#include <vlmest/diagnose/evidence/snapshot/replayable.hpp>
#include <vlmest/diagnose/failure/from_snapshot.hpp>
#include <vlmest/json/recorded_snapshot.hpp>

#include "target.hpp"

namespace {

using namespace vlmest;
using namespace vlmest::diagnose;
using fuzz::require;

void analysed(const RecordedSnapshot& s) {
  for (const auto& trace : s.traces)
    for (const auto& e : trace) require(e.stack < s.stacks.stack_count(), "a stack that does not exist");
  const auto a = analyse(s, device_of_interest(s));
  Bytes groups{}, roles{};
  std::size_t count = 0;
  for (const auto& g : a.groups) {
    groups += g.bytes;
    count += g.count;
    require(g.largest <= g.requested, "a tensor larger than all of them");
  }
  for (const auto& r : a.by_role) roles += r.bytes;
  require(groups == a.live && roles == a.live, "sums over live groups");
  require(a.live.value() == a.timeline.active[a.moment], "the live set and the curve");
  require(count <= a.timeline.allocations.size() && a.roles.size() == a.timeline.allocations.size(), "allocations");
  require(a.timeline.peak >= a.live && a.timeline.peak >= a.timeline.peak_allocated, "the peak");
  const auto& r = a.reserved;
  require(r.reserved == r.active + r.whole + r.split, "the parts of reserved memory");
  require(r.usable <= r.whole + r.split && r.largest_usable <= r.largest_free, "free pieces");
  const Failure f = failure_of(s, a);
  Bytes live{};
  for (const auto& part : f.live) live += part.bytes;
  require(live == a.live, "the kinds of what is alive");
  require(!f.growth || f.growth->first <= f.growth->last, "growth");
  replayable(s, 0);
}

std::string read_whole(ByteSource source) {
  try {
    const auto s = read_recorded_snapshot(source, "input");
    std::string seen = std::to_string(s.segments.size()) + " " + std::to_string(s.stacks.stack_count());
    for (const auto& t : s.traces) seen += " " + std::to_string(t.size());
    analysed(s);
    return seen;
  } catch (const Error& e) {
    fuzz::require_readable(e);
    return e.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::text(data, size);
  const auto whole = read_whole(ByteSource(input));
  fuzz::Choices choices(input);
  auto rest = input;
  const auto in_pieces = read_whole(ByteSource(ByteSource::Refill([&] {
    const auto piece = rest.substr(0, 1 + choices.of(300));
    rest.remove_prefix(piece.size());
    return piece;
  })));
  require(whole == in_pieces, "pieces read as something else than the whole");

  constexpr std::string_view opcodes = "(.q\x94rhjNJKMGX]})tae\x86su\x85\x87\x8a\x88\x89\x8c\x95";
  std::string changed(input);
  for (auto n = choices.of(4); n > 0 && changed.size() > 2; --n) {
    const auto at = 2 + choices.of(changed.size() - 2);
    switch (choices.of(5)) {
      case 0: changed[at] = opcodes[choices.of(opcodes.size())]; break;
      case 1: changed[at] = static_cast<char>(choices.of(256)); break;
      case 2: changed.insert(at, 1, opcodes[choices.of(opcodes.size())]); break;
      case 3: changed.insert(at, changed.substr(choices.of(changed.size()), choices.of(60))); break;
      default: changed.erase(at, 1 + choices.of(3)); break;
    }
  }
  read_whole(ByteSource(changed));
  try {
    if (!input.empty() && (input[0] == '{' || input[0] == '[')) analysed(json::read_recorded_snapshot(input, "input"));
  } catch (const Error& e) {
    fuzz::require_readable(e);
  }
  return 0;
}
