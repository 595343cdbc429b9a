# SPDX-License-Identifier: Apache-2.0
"""standard.py LIB: reads which names of the standard library each public header uses, and names the header of it that is
missing, or that is included for nothing. A header may have it from one of the library's that it includes itself, and a
definition below impl/ from the declaration; <cstddef>, <cstdint> and <utility> from anything that it includes.

A name is what follows std:: in code; test_standard.py shows what is read and what is not. include-what-you-use also knows
what has no std:: before it, but compiles each header for that."""

import fnmatch
import functools
import os
import re
import sys

# Headers of the standard library that the library uses, with the names that each one has; * stands for any letters.
NAMES = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal equal_range fill "
    "fill_n find find_if find_if_not for_each generate includes inplace_merge is_sorted lexicographical_compare lower_bound "
    "make_heap max max_element merge min min_element minmax minmax_element mismatch none_of nth_element partial_sort "
    "partition partition_point pop_heap push_heap ranges remove remove_if replace reverse rotate search set_difference "
    "set_union sort sort_heap stable_partition stable_sort transform unique upper_bound",
    "array": "array to_array",
    "atomic": "atomic atomic_*",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian has_single_bit popcount rotl rotr",
    "bitset": "bitset",
    "cctype": "isalnum isalpha isdigit islower isprint ispunct isspace isupper isxdigit tolower toupper",
    "charconv": "from_chars from_chars_result to_chars",
    "cmath": "abs cbrt ceil erf exp exp2 expm1 fabs floor fma fmod hypot isfinite isinf isnan llrint llround log log10 log1p log2 "
    "lround nearbyint pow round sqrt trunc",
    "compare": "<=> partial_ordering strong_ordering weak_ordering",
    "complex": "complex",
    "concepts": "constructible_from convertible_to copyable default_initializable derived_from equality_comparable "
    "floating_point integral invocable predicate same_as signed_integral unsigned_integral",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t size_t",
    "cstdint": "int8_t int16_t int32_t int64_t intmax_t uint8_t uint16_t uint32_t uint64_t uintmax_t uintptr_t",
    "cstdio": "FILE fclose fopen fprintf fputs fread printf snprintf sscanf",
    "cstdlib": "abort atoi exit getenv strtod strtol strtoll strtoull",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strlen strncmp",
    "deque": "deque",
    "exception": "current_exception exception exception_ptr rethrow_exception terminate uncaught_exceptions",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ios ofstream",
    "functional": "bind cref function greater hash identity invoke less multiplies plus ref reference_wrapper",
    "initializer_list": "initializer_list",
    "iterator": "advance back_inserter begin data default_sentinel distance end inserter istreambuf_iterator iterator_traits "
    "make_move_iterator move_iterator next ostream_iterator prev reverse_iterator size ssize *_iterator_tag",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "addressof allocator construct_at destroy_at make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "lock_guard mutex scoped_lock unique_lock",
    "new": "bad_alloc launder nothrow",
    "numeric": "accumulate adjacent_difference exclusive_scan gcd inclusive_scan inner_product iota lcm midpoint partial_sum "
    "reduce transform_reduce",
    "optional": "make_optional nullopt optional",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 uniform_*",
    "set": "multiset set",
    "span": "as_bytes span",
    "sstream": "istringstream ostringstream stringstream",
    "stack": "stack",
    "stdexcept": "domain_error invalid_argument length_error logic_error out_of_range overflow_error runtime_error",
    "string": "getline stod stoi stoll string to_string",
    "string_view": "string_view string_view_literals",
    "system_error": "errc error_code system_error",
    "thread": "jthread this_thread thread",
    "tuple": "apply forward_as_tuple ignore make_tuple tie tuple tuple_size_v",
    "type_traits": "add_const_t common_type_t conditional_t decay_t enable_if_t false_type integral_constant invoke_result_t "
    "is_* make_signed_t make_unsigned_t remove_const_t remove_cvref_t remove_pointer_t remove_reference_t true_type "
    "type_identity_t underlying_type_t void_t",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "utility": "as_const cmp_greater cmp_less declval exchange forward in_place in_range index_sequence integer_sequence "
    "make_index_sequence make_pair move pair piecewise_construct swap",
    "variant": "get_if holds_alternative monostate variant variant_alternative_t variant_size_v visit",
    "vector": "vector",
}
# Names of several headers, which say nothing about any of them.
SHARED = {"erase", "erase_if", "get"}
# Headers whose names these bring with them besides: by the standard, or, of <charconv>, by the type of its results.
CONTAINERS = {"array", "deque", "list", "map", "set", "span", "string", "string_view", "unordered_map", "vector"}
BROUGHT = {
    "initializer_list": CONTAINERS | {"algorithm", "optional", "utility", "variant"},
    "iterator": CONTAINERS,
    "string_view": {"string"},
    "system_error": {"charconv"},
    "utility": {"map", "tuple", "unordered_map"},
}
FROM_ANYWHERE = {"cstddef", "cstdint", "utility"}

HEADER_OF = {name: header for header, names in NAMES.items() for name in names.split()}
QUOTED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
NAME = re.compile(r"(?<![\w:])(?:::)?std::(\w+)|(<=>)|(?<![\w:])(u?int(?:8|16|32|64|max)_t)\b")


def code_of(text: str) -> str:
    """Without directives, comments, and what stands between quotes."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    return re.sub(r"^#.*$", "", QUOTED.sub(" ", text), flags=re.M)


@functools.lru_cache(maxsize=None)
def header_of(name: str) -> str | None:
    """A name that stands in NAMES itself before one that a * stands for: is_sorted is no trait."""
    return HEADER_OF.get(name) or next((h for n, h in HEADER_OF.items() if "*" in n and fnmatch.fnmatchcase(name, n)), None)


def used(text: str) -> tuple[dict[str, str], list[str]]:
    """The headers whose names a header's text has, each with the first of them; names that are in no list."""
    headers: dict[str, str] = {}
    unknown = []
    for name in sorted({"".join(found) for found in NAME.findall(code_of(text))} - SHARED):
        if header := header_of(name):
            headers.setdefault(header, name)
        else:
            unknown.append(name)
    return headers, unknown


def faults_of(texts: dict[str, str]) -> list[str]:
    """Of the library's headers, by the path that they are included by."""
    standard = {h: set(re.findall(r"^#include <([a-z_0-9]+)>", text, re.M)) for h, text in texts.items()}
    own = {h: re.findall(r"^#include <(vlmest/[^>]+)>", text, re.M) for h, text in texts.items()}

    def everything(header: str, seen: set[str]) -> set[str]:
        """What a header includes of the standard library, and all that it includes."""
        if header in seen or header not in standard:
            return set()
        seen.add(header)
        return standard[header].union(*(everything(included, seen) for included in own[header]))

    faults = []
    for header in sorted(texts):
        uses, unknown = used(texts[header])
        faults += [f"{header}: std::{name} is not known to standard.py: add it to its header's names" for name in unknown]
        for included in sorted(standard[header] - uses.keys()):
            if included in NAMES:
                faults.append(f"{header}: names nothing of <{included}>")
            else:
                faults.append(f"{header}: <{included}> is not known to standard.py: add its names")
        near = {header, header.replace("/impl/", "/")} & standard.keys()
        near |= {included for h in near for included in own[h] if "/impl/" not in included}
        has = set().union(*(standard.get(h, set()) for h in near))
        for wanted, name in uses.items():
            if wanted in has or BROUGHT.get(wanted, set()) & has:
                continue
            if wanted in FROM_ANYWHERE and wanted in everything(header, set()):
                continue
            faults.append(f"{header}: names {name}, of <{wanted}>, and neither it nor what it includes includes that")
    return faults


def main(lib: str) -> int:
    texts: dict[str, str] = {}
    for folder, _, files in os.walk(os.path.join(lib, "vlmest")):
        for name in files:
            if name.endswith(".hpp"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    texts[os.path.relpath(path, lib)] = f.read()
    faults = faults_of(texts)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults" if faults else f"{len(texts)} headers include what they name of the standard library")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
