#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# links.sh ROOT: every relative link of ROOT's Markdown files leads to a file or folder.
set -u
cd "$1" || exit 1
status=0
for page in $(find README.md CONTRIBUTING.md docs -name '*.md' 2>/dev/null | sort); do
  for link in $(grep -o ']([^) ]*)' "$page" | sed 's/^](//; s/)$//; s/#.*//'); do
    case $link in *://*) continue ;; esac
    [ -e "$(dirname "$page")/$link" ] || { echo "$page: $link does not exist" >&2 && status=1; }
  done
done
exit $status
