# SPDX-License-Identifier: Apache-2.0
"""Which packages run parts of a model, told by the functions that stand for them."""

import functools
import sys
import types
import unittest

from recorder import packages


def chosen(own, package):
    """A function that runs another one, as transformers' decorator makes it."""
    implementation = package or own
    is_new_implementation = implementation is not own

    @functools.wraps(own)
    def wrapped(*arguments):
        return implementation(*arguments) if is_new_implementation else own(*arguments)

    return wrapped


def function_of(module):
    def f(x):
        return x

    f.__module__ = module
    return f


class Packages(unittest.TestCase):
    def test_the_package_of_what_runs(self):
        own = function_of("transformers.models.m.modeling_m")
        self.assertIsNone(packages.taken_from(own))
        self.assertIsNone(packages.taken_from(chosen(own, None)))
        self.assertEqual(packages.taken_from(chosen(own, function_of("fla.ops.gated_delta_rule.chunk"))), "fla")

    def test_other_decorators_around_it(self):
        inner = chosen(function_of("m"), function_of("causal_conv1d.causal_conv1d_interface"))
        outer = functools.wraps(inner)(lambda x: inner(x))
        self.assertEqual(packages.taken_from(outer), "causal_conv1d")

    def test_words_of_a_models_modules(self):
        module = types.ModuleType("a_model")
        module.rule = chosen(function_of("a_model"), function_of("fla.ops"))
        module.convolution = chosen(function_of("a_model"), function_of("causal_conv1d.interface"))
        module.other = chosen(function_of("a_model"), function_of("mamba_ssm.ops"))
        module.size = 3
        sys.modules["a_model"] = module
        try:
            self.assertEqual(packages.kernel_packages({"a_model"}), "fla,causal-conv1d")
            module.rule = function_of("a_model")
            self.assertEqual(packages.kernel_packages({"a_model"}), "causal-conv1d")
        finally:
            del sys.modules["a_model"]


if __name__ == "__main__":
    unittest.main()
