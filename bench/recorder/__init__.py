# SPDX-License-Identifier: Apache-2.0
"""The recorder: measured rows of vision-language models (record.py is the program).

Two kinds of process run this package. The one that the user starts reads options, keeps the file of rows and shows
progress; it never imports torch. For each scenario it starts another (measure.py), which loads the model, measures and
ends, so that every scenario meets a fresh allocator and none can take the others down.
"""
