// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

/// Opcodes of Python's pickle, protocols 0 to 5 (Lib/pickle.py). Those of plain data are read; the others are known by
/// name, to say what was refused.
namespace vlmest::diagnose::pickle {

enum Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  proto = 0x80,
  frame = 0x95,
  memoize = 0x94,
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
  none = 'N',
  newtrue = 0x88,
  newfalse = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  binfloat = 'G',
  short_binunicode = 0x8c,
  binunicode = 'X',
  binunicode8 = 0x8d,
  empty_list = ']',
  empty_dict = '}',
  empty_tuple = ')',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  tuple = 't',
  append = 'a',
  appends = 'e',
  setitem = 's',
  setitems = 'u',
  global = 'c',
  inst = 'i',
  stack_global = 0x93,
  persid = 'P',
  get = 'g',
  put = 'p'
};

inline constexpr std::array<std::pair<std::uint8_t, std::string_view>, 31> refused{
    {{global, "GLOBAL"},    {stack_global, "STACK_GLOBAL"},
     {inst, "INST"},        {'R', "REDUCE"},
     {'b', "BUILD"},        {'o', "OBJ"},
     {0x81, "NEWOBJ"},      {0x92, "NEWOBJ_EX"},
     {0x82, "EXT1"},        {0x83, "EXT2"},
     {0x84, "EXT4"},        {persid, "PERSID"},
     {'Q', "BINPERSID"},    {0x96, "BYTEARRAY8"},
     {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
     {0x8b, "LONG4"},       {0x8e, "BINBYTES8"},
     {'B', "BINBYTES"},     {'C', "SHORT_BINBYTES"},
     {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
     {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
     {0x91, "FROZENSET"},   {'0', "POP"},
     {'1', "POP_MARK"},     {'2', "DUP"},
     {'d', "DICT"},         {'l', "LIST"},
     {'I', "INT"}}};

constexpr std::string_view refused_name(std::uint8_t op) {
  for (const auto& [code, name] : refused)
    if (code == op) return name;
  return "";
}
/// Those that name or call something of Python's, and so may run any code.
constexpr bool executes(std::uint8_t op) {
  for (std::size_t i = 0; i < 13; ++i)
    if (refused[i].first == op) return true;
  return false;
}

}  // namespace vlmest::diagnose::pickle
