# SPDX-License-Identifier: Apache-2.0
"""Inputs of every family from its config alone: no processor, no tokenizer, nothing to download.

layout.py has the terms, square.py, native.py, anyres.py and tiles.py the rules of the image processors, families.py the
table of model types; all of that is arithmetic. tensors.py makes the tensors.
"""
