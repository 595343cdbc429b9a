# SPDX-License-Identifier: Apache-2.0
"""What standard.py reads as a name of the standard library, and which includes it asks for."""

import unittest

import standard


class Names(unittest.TestCase):
    def headers(self, code: str) -> set[str]:
        return set(standard.used(code)[0])

    def test_what_follows_std_in_code_is_a_name(self):
        self.assertEqual(self.headers("std::vector<std::int64_t> v;\nint n = ::std::max(1, 2);"),
                         {"vector", "cstdint", "algorithm"})
        self.assertEqual(self.headers("uint8_t a; bool operator==(A) const; auto operator<=>(const A&) const = default;"),
                         {"cstdint", "compare"})

    def test_names_of_our_own_are_none(self):
        self.assertEqual(self.headers("find(v, 1); move(a); v.sort(); my::std::sort(v); vlmest::find(v); stdx::map m;"), set())

    def test_comments_strings_and_directives_are_no_code(self):
        self.assertEqual(self.headers("// std::map\n/* std::set\nstd::list */ int n = 1'000'000; // '\n#define A std::deque\n"),
                         set())
        self.assertEqual(self.headers('a = "std::map \\" // std::set"; b = R"x(std::list ")" )x"; c = \'"\'; std::deque<int> d;'),
                         {"deque"})

    def test_a_name_of_its_own_comes_before_a_pattern(self):
        self.assertEqual(self.headers("std::is_sorted(a, b); std::is_same_v<A, B>;"), {"algorithm", "type_traits"})

    def test_each_name_stands_once(self):
        names = [name for of in standard.NAMES.values() for name in of.split()]
        self.assertEqual(len(names), len(set(names)))


class Faults(unittest.TestCase):
    def faults(self, **texts: str) -> list[str]:
        """By the names of headers in vlmest, impl_a for vlmest/impl/a.hpp."""
        return standard.faults_of({f"vlmest/{name.replace('_', '/')}.hpp": text for name, text in texts.items()})

    def test_a_header_includes_what_it_names_or_its_includes_do(self):
        vector, uses = "#include <vector>\nstd::vector<int> v;\n", "std::vector<int> w;\n"
        self.assertEqual(self.faults(a=vector), [])
        self.assertEqual(self.faults(a=vector, b="#include <vlmest/a.hpp>\n" + uses), [])
        self.assertIn("vlmest/b.hpp: names vector, of <vector>", self.faults(b=uses)[0])
        through = self.faults(a=vector, b="#include <vlmest/a.hpp>\n", c="#include <vlmest/b.hpp>\n" + uses)
        self.assertIn("vlmest/c.hpp: names vector, of <vector>", through[0])

    def test_a_definition_has_what_its_declaration_includes(self):
        declaration = "#include <vector>\nstd::vector<int> f();\n#include <vlmest/impl/a.hpp>\n"
        self.assertEqual(self.faults(a=declaration, impl_a="#include <vlmest/a.hpp>\nstd::vector<int> f() {}\n"), [])
        # What only the definition includes is not for those that include the declaration.
        definition = "#include <vlmest/a.hpp>\n#include <map>\nstd::map<int, int> m;\n"
        faults = self.faults(a=declaration, impl_a=definition, b="#include <vlmest/a.hpp>\nstd::map<int, int> m;\n")
        self.assertEqual([f.split(",")[0] for f in faults], ["vlmest/b.hpp: names map"])

    def test_headers_that_bring_others(self):
        self.assertEqual(self.faults(a="#include <string>\nstd::string s; std::string_view v = s; auto p = std::begin(s);\n"), [])
        of_all = {"a": "#include <cstdint>\nstd::int8_t n;\n", "b": "#include <vlmest/a.hpp>\n"}
        self.assertEqual(self.faults(**of_all, c="#include <vlmest/b.hpp>\nstd::int64_t n;\n"), [])

    def test_what_is_named_nowhere_is_not_included(self):
        self.assertEqual(self.faults(a="#include <map>\n// std::map\n"), ["vlmest/a.hpp: names nothing of <map>"])

    def test_what_is_in_no_list_is_told(self):
        faults = self.faults(a="#include <regex>\nstd::regex r;\n")
        self.assertEqual(len(faults), 2)
        self.assertTrue(all("is not known to standard.py" in f for f in faults))


if __name__ == "__main__":
    unittest.main()
