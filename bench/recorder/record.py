#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs vision-language models with random weights on a GPU and writes what was measured, one JSON line a scenario.

    python3 bench/recorder/record.py --config llava-1.5-7b.json --batch 1,4 --text 256,2048 --output rows.jsonl

`--help` lists the options; docs/howto/record-your-own-runs.md is the guide.
"""

import os
import sys

# Python puts this script's folder first in its path, where our modules would stand before equally named ones of other
# packages. The package is imported by its name from the folder above.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from recorder.main import main  # noqa: E402  (the path must be set first)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
