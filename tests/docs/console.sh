#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# console.sh check|record BIN ROOT: runs the console blocks of ROOT's Markdown files, in ROOT, with the folder BIN first
# on PATH, and fills in its copies of files. check compares the result with what stands there, record writes it there.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mode=$1 PATH=$2:$PATH
cd "$3" || exit 1
export PATH NO_COLOR=1 LC_ALL=C.UTF-8
fresh=$(mktemp) || exit 1
trap 'rm -f "$fresh"' EXIT
status=0
for file in $(find README.md CONTRIBUTING.md docs -name '*.md' 2>/dev/null | sort); do
  grep -q -e '^ *```console' -e '^<!-- copy of' -e '^<!-- output of' "$file" || continue
  awk -f "$here/console.awk" "$file" >"$fresh" || { status=1 && [ "$mode" = record ] && continue; }
  if [ "$mode" = record ]; then
    cmp -s "$fresh" "$file" || { cat "$fresh" >"$file" && echo "recorded $file"; }
  else
    diff -u --label "$file" --label "$file, as it runs now" "$file" "$fresh" || status=1
  fi
done
exit $status
