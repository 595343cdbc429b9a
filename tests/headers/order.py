# SPDX-License-Identifier: Apache-2.0
"""order.py LIB: reads every public header as the preprocessor does, with definitions below impl/ behind declarations, and
names what would be read while a header that it needs is only half read. Such headers compile in one order of includes and
not in another one."""

import os
import re
import sys


def includes(lib: str) -> dict[str, list[str]]:
    """The library's headers that each of them includes, in order."""
    found = {}
    for folder, _, files in os.walk(os.path.join(lib, "vlmest")):
        for name in files:
            if name.endswith(".hpp"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                found[os.path.relpath(path, lib)] = re.findall(r"^#include <(vlmest/[^>]+)>", text, re.M)
    return found


def half_read(entry: str, of: dict[str, list[str]]) -> set[tuple[str, str]]:
    """(header, what it includes that is still being read) where a source includes `entry` first."""
    read: set[str] = set()
    open_: list[str] = []
    bad: set[tuple[str, str]] = set()

    def read_header(header: str) -> None:
        if header in open_:
            # Definitions stand behind the declarations that they are of.
            if open_[-1].replace("/impl/", "/") != header:
                bad.add((open_[-1], header))
            return
        if header in read:
            return
        read.add(header)
        open_.append(header)
        for included in of.get(header, []):
            read_header(included)
        open_.pop()

    read_header(entry)
    return bad


def main(lib: str) -> int:
    of = includes(lib)
    bad: set[tuple[str, str]] = set()
    for entry in of:
        if "/impl/" not in entry:
            bad |= half_read(entry, of)
    for header, needed in sorted(bad):
        print(f"{header} may be read while {needed}, which it includes, is only half read")
    print(f"{len(of)} headers can be included in any order" if not bad else f"{len(bad)} cannot")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
