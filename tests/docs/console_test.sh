#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# console_test.sh BIN SCRATCH: console.sh passes what is right, finds what is wrong, and repairs it when told to record.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 root=$2
rm -rf "$root" && mkdir -p "$root/docs/howto"
fail() { echo "$1" >&2 && exit 1; }
page() { printf '# Title\n\n```console\n$ %s\n%s\n```\n\nMore.\n' "$1" "$2" >"$root/docs/howto/page.md"; }
check() { sh "$here/console.sh" check "$bin" "$root" >/dev/null 2>&1; }

version=$("$bin/vlmest" --version)
page 'vlmest --version' "$version"
check || fail "a right page was refused"
page './run --version' "$version"
check || fail "./run was not understood"
page 'vlmest --version' 'vlmest 99.9.9'
! check || fail "a wrong output passed"
sh "$here/console.sh" record "$bin" "$root" >/dev/null
grep -qxF "$version" "$root/docs/howto/page.md" || fail "the output was not recorded"
grep -qx 'More.' "$root/docs/howto/page.md" || fail "recording lost text"
check || fail "a recorded page was refused"
page 'ls' ''
! check || fail "a command that is not ours passed"
page "vlmest --version; sh -c 'kill -SEGV \$\$'" "$version"
! check || fail "a crash passed"
printf '```sh\n$ vlmest --version\nnot run\n```\n' >"$root/docs/howto/page.md"
check || fail "a block of another kind was run"
printf 'one\n// SPDX-License-Identifier: X\ntwo\n' >"$root/source"
printf '<!-- copy of source -->\n```cpp\none\ntwo\n```\nMore.\n' >"$root/docs/howto/page.md"
check || fail "a right copy was refused"
echo three >>"$root/source"
! check || fail "an old copy passed"
sh "$here/console.sh" record "$bin" "$root" >/dev/null
grep -qx 'three' "$root/docs/howto/page.md" && grep -qx 'More.' "$root/docs/howto/page.md" || fail "the copy was not renewed"
check || fail "a renewed copy was refused"
rm "$root/source"
! check || fail "a copy of nothing passed"
printf '<!-- output of vlmest --version -->\n%s\n<!-- end of output -->\nMore.\n' "$version" >"$root/docs/howto/page.md"
check || fail "a right output was refused"
printf '<!-- output of vlmest --version -->\nold\n<!-- end of output -->\nMore.\n' >"$root/docs/howto/page.md"
! check || fail "an old output passed"
sh "$here/console.sh" record "$bin" "$root" >/dev/null
grep -qxF "$version" "$root/docs/howto/page.md" && grep -qx 'More.' "$root/docs/howto/page.md" || fail "the output was not renewed"
printf '<!-- output of vlmest --version -->\n%s\n' "$version" >"$root/docs/howto/page.md"
! check || fail "an output without an end passed"
printf '[a](howto/page.md#x) [b](https://example.org) [c](../docs)\n' >"$root/docs/page.md"
sh "$here/links.sh" "$root" 2>/dev/null || fail "right links were refused"
printf '[a](howto/none.md)\n' >"$root/docs/page.md"
! sh "$here/links.sh" "$root" 2>/dev/null || fail "a broken link passed"
