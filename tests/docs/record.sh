#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# record.sh FILE COMMAND...: writes what COMMAND prints to FILE; where it fails, FILE stays as it was.
file=$1
shift
"$@" >"$file.new" && mv "$file.new" "$file" && exit
rm -f "$file.new"
exit 1
