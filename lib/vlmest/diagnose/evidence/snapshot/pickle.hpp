// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/diagnose/evidence/byte_source.hpp>
#include <vlmest/diagnose/evidence/snapshot/pickle_opcodes.hpp>
#include <vlmest/diagnose/evidence/snapshot/plain_value.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::diagnose {

/// Whether a file begins as a pickle of protocol 2 to 5 does.
inline bool is_pickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

/// Reads plain data (None, booleans, numbers, strings, lists, tuples, dicts) out of a pickle of protocol 2 to 5 and
/// runs nothing: an opcode that names, makes or calls an object is refused. `build` is a stack machine that takes the
/// data (snapshot_builder.hpp). What follows the opcode STOP is not read. Throws Error naming the byte.
template <class Build>
class PickleReader {
 public:
  PickleReader(ByteSource& source, const std::string& where, Build& build)
      : in_(source), where_(where), build_(build) {}

  void read() {
    if (in_.done()) throw Error(where_, "the file is empty", hint());
    const int first = in_.get();
    if (first != pickle::proto) throw Error(where_, "is not a pickle of protocol 2 to 5", hint());
    version();
    try {
      do opcode_at_ = in_.position();
      while (step());
    } catch (const plain::Malformed& e) {
      throw Error(where_, e.what + " (byte " + std::to_string(opcode_at_) + ")", hint());
    }
  }

 private:
  static std::string hint() { return "write it with torch.cuda.memory._dump_snapshot()"; }

  std::string_view take(std::uint64_t n) {
    const auto bytes = in_.take(n);
    if (bytes.size() != n) cut_short();
    return bytes;
  }
  [[noreturn]] static void cut_short() { throw plain::Malformed{"is cut short"}; }
  /// A number of N bytes, the lowest first; written so that compilers see one load in it.
  template <std::size_t N>
  std::uint64_t number() {
    const auto bytes = take(N);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (... | (std::uint64_t{static_cast<unsigned char>(bytes[I])} << (8 * I)));
    }
    (std::make_index_sequence<N>());
  }
  std::uint64_t number(std::uint64_t n) {
    const auto bytes = take(n);
    std::uint64_t x = 0;
    for (std::size_t i = 0; i < n; ++i) x |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return x;
  }
  void version() {
    const int v = in_.get();
    if (v < 2 || v > 5)
      throw Error(where_, v < 0 ? "is cut short" : "is a pickle of protocol " + std::to_string(v),
                  "use protocol 2 to 5");
  }

  /// Two's complement in 0 to 8 bytes, or an unsigned number of 64 bits with a ninth byte of 0.
  void long_integer() {
    const auto n = number<1>();
    if (n > 9) throw plain::Malformed{"holds an integer of " + std::to_string(n) + " bytes"};
    if (n == 0) return build_.integer(0);
    const auto low = number(n < 8 ? n : 8);
    if (n == 9) {
      const auto high = number<1>();
      if (high == 0) return build_.natural(low);
      if (high != 255 || low >> 63 == 0) throw plain::Malformed{"holds an integer beyond 64 bits"};
      return build_.integer(static_cast<std::int64_t>(low));
    }
    const auto unused = 64 - 8 * n;
    build_.integer(static_cast<std::int64_t>(low << unused) >> unused);
  }
  void real() {
    std::uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    build_.real(std::bit_cast<double>(bits));
  }

  /// The opcodes' order in memory is the order of how often they occur. False at the end.
  bool step() {
    const int op = in_.get();
    switch (op) {
      case pickle::long_binget:  // stacks come as runs of them
        do {
          opcode_at_ = in_.position() - 1;
          build_.get(number<4>());
        } while (in_.skip(static_cast<char>(pickle::long_binget)));
        return true;
      case pickle::binget: build_.get(number<1>()); return true;
      case pickle::memoize: build_.memoize(); return true;
      case pickle::binput: put(number<1>()); return true;
      case pickle::long_binput: put(number<4>()); return true;
      case pickle::binint1: build_.integer(static_cast<std::int64_t>(number<1>())); return true;
      case pickle::binint2: build_.integer(static_cast<std::int64_t>(number<2>())); return true;
      case pickle::binint: build_.integer(static_cast<std::int32_t>(number<4>())); return true;
      case pickle::long1: long_integer(); return true;
      case pickle::short_binunicode: build_.text(take(number<1>())); return true;
      case pickle::binunicode: build_.text(take(number<4>())); return true;
      case pickle::binunicode8: build_.text(take(number<8>())); return true;
      case pickle::mark: build_.mark(); return true;
      case pickle::empty_dict: build_.new_dict(); return true;
      case pickle::empty_list: build_.new_list(); return true;
      case pickle::setitems: build_.set_items(); return true;
      case pickle::setitem: build_.set_item(); return true;
      case pickle::appends: build_.append_items(); return true;
      case pickle::append: build_.append_item(); return true;
      case pickle::none: build_.none(); return true;
      case pickle::newtrue: build_.boolean(true); return true;
      case pickle::newfalse: build_.boolean(false); return true;
      case pickle::binfloat: real(); return true;
      case pickle::empty_tuple: build_.tuple(0); return true;
      case pickle::tuple1: build_.tuple(1); return true;
      case pickle::tuple2: build_.tuple(2); return true;
      case pickle::tuple3: build_.tuple(3); return true;
      case pickle::tuple: build_.tuple_items(); return true;
      case pickle::frame: take(8); return true;  // how many bytes Python reads at once
      case pickle::proto: version(); return true;
      case pickle::stop: build_.stop(); return false;
      case -1: cut_short();
      default: refuse(static_cast<std::uint8_t>(op));
    }
  }

  void put(std::uint64_t index) {
    // Pickles number what they memorise in turn, and each takes a byte at least.
    if (index >= in_.position())
      throw plain::Malformed{"numbers an item of the memo " + std::to_string(index) + ", more than the bytes so far"};
    build_.put(index);
  }

  std::string line() {
    std::string s;
    for (int c = in_.get(); c >= 0 && c != '\n' && s.size() < 80; c = in_.get()) s += static_cast<char>(c);
    return plain::printable(s);
  }
  [[noreturn]] void refuse(std::uint8_t op) {
    std::string what(pickle::refused_name(op));
    char code[16];
    std::snprintf(code, sizeof code, "0x%02x", op);
    if (what.empty()) throw plain::Malformed{std::string("holds the opcode ") + code + ", which no snapshot has"};
    if (op == pickle::global || op == pickle::inst) {
      const auto module = line();
      what += " (" + module + "." + line() + ")";
    } else if (op == pickle::stack_global) {
      const auto [module, name] = build_.top_texts();
      what += " (" + plain::printable(module) + "." + plain::printable(name) + ")";
    } else if (op == pickle::persid) {
      what += " (" + line() + ")";
    }
    throw plain::Malformed{"is not a plain snapshot: it holds the opcode " + what +
                           (pickle::executes(op) ? ", with which a pickle can run any code; nothing was run" : "")};
  }

  ByteSource& in_;
  const std::string& where_;
  Build& build_;
  std::uint64_t opcode_at_ = 0;
};

template <class Build>
void read_pickle(ByteSource& source, const std::string& where, Build& build) {
  PickleReader<Build>(source, where, build).read();
}

}  // namespace vlmest::diagnose
