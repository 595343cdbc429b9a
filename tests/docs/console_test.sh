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
