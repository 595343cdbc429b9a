#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# record.sh PROGRAM FILE: writes what PROGRAM prints to FILE; a program that fails leaves FILE as it was.
"$1" >"$2.new" && mv "$2.new" "$2" && exit
rm -f "$2.new"
exit 1
