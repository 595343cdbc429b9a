# SPDX-License-Identifier: Apache-2.0
"""Inputs of every family from its config alone: no processor, no tokenizer, nothing to download.

layout.py has the terms, square.py, native.py, positioned.py, anyres.py and tiles.py the rules of the image processors,
families.py knows the model types, whose table, table.py, is written out of the library's families; all of that is
arithmetic. tensors.py makes the tensors.
"""
