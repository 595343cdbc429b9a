# SPDX-License-Identifier: Apache-2.0
"""Options become scenarios: products, spelling, refusals."""

import json
import os
import tempfile
import unittest

from recorder.arguments import parse
from recorder.errors import INPUT, USAGE, RecorderError
from recorder.scenario import Scenario, from_row, product


def scenarios(*words: str) -> list[Scenario]:
    return [s for _, s in parse(["--config", "m.json", "--output", "rows.jsonl", *words]).scenarios]


class Options(unittest.TestCase):
    def test_no_option_is_one_default_scenario(self):
        self.assertEqual(scenarios(), [Scenario()])

    def test_lists_multiply_and_the_last_turns_fastest(self):
        found = [(s.batch, s.text) for s in scenarios("--batch", "1,4", "--text", "64,256")]
        self.assertEqual(found, [(1, 64), (1, 256), (4, 64), (4, 256)])

    def test_every_option_reaches_its_field(self):
        words = "--mode train --batch 2 --text 9 --images 3 --image-size 336x672 --dtype fp16 --attention eager"
        words += " --checkpointing --lora 16 --freeze vision --optimizer sgd-momentum"
        expected = Scenario("train", 2, 9, 3, (336, 672), "float16", "eager", "last", True, 16, True, False, "sgdm")
        self.assertEqual(scenarios(*words.split()), [expected])

    def test_options_of_training_do_not_multiply_inference(self):
        found = scenarios("--mode", "infer,train", "--optimizer", "adamw,sgd", "--checkpointing", "on,off")
        self.assertEqual([s.mode for s in found], ["infer"] + 4 * ["train"])

    def test_logits_do_not_multiply_training(self):
        self.assertEqual(len(scenarios("--mode", "infer,train", "--logits", "last,all")), 3)

    def test_amp_has_float32_weights(self):
        found = scenarios("--mode", "train", "--amp", "--dtype", "bf16,fp32")
        self.assertEqual(found, [Scenario("train", dtype="float32", amp=True)])

    def test_several_gpus_train_and_what_they_do_not_use_does_not_multiply(self):
        found = scenarios("--mode", "infer,train", "--gpus", "1,2", "--shard", "none,fsdp2", "--ddp-bucket-view", "on,off")
        self.assertEqual([(s.mode, s.gpus, s.shard, s.bucket_view) for s in found], [
            ("infer", 1, "none", False),
            ("train", 1, "none", False),
            ("train", 2, "none", True),
            ("train", 2, "none", False),
            ("train", 2, "fsdp2", False),
        ])
        self.assertEqual(found[-1].label(), "train b1 text 256 images 1 native bfloat16 sdpa gpus 2 fsdp2")

    def test_types_that_fully_shard_gathers_and_reduces_in(self):
        found = scenarios("--mode", "train", "--gpus", "2", "--shard", "none,fsdp2", "--dtype", "fp32",
                          "--param-dtype", "bf16,fp16", "--reduce-dtype", "fp32")
        self.assertEqual([(s.shard, s.param_dtype, s.reduce_dtype) for s in found], [
            ("none", None, None), ("fsdp2", "bfloat16", "float32"), ("fsdp2", "float16", "float32")])
        self.assertTrue(found[1].label().endswith(" gpus 2 fsdp2 gathered bfloat16 reduced float32"))
        for s in found:
            self.assertEqual(from_row(s.row_fields()), s)

    def test_gpus_that_divide_sequences(self):
        found = scenarios("--mode", "train", "--gpus", "1,2,4", "--context-parallel", "1")
        self.assertEqual([s.cp for s in found], [1, 1, 1])
        one, = scenarios("--mode", "train", "--gpus", "4", "--context-parallel", "2", "--shard", "fsdp2")
        self.assertEqual(one.label(), "train b1 text 256 images 1 native bfloat16 sdpa gpus 4 fsdp2 cp 2")
        self.assertEqual(one.row_fields()["cp"], 2)

    def test_native_size_is_left_to_the_model(self):
        self.assertEqual([s.hw for s in scenarios("--image-size", "native,336x336")], [None, (336, 336)])

    def test_several_configs(self):
        for words in (["--config", "a", "b"], ["--config", "a", "--config", "b"]):
            self.assertEqual(parse([*words, "--output", "o"]).configs, ["a", "b"])


class Refusals(unittest.TestCase):
    def refused(self, *words: str) -> RecorderError:
        with self.assertRaises(RecorderError) as caught:
            scenarios(*words)
        self.assertEqual(caught.exception.code, USAGE)
        return caught.exception

    def test_parts_of_sequences_that_do_not_run(self):
        train = ("--mode", "train", "--gpus", "4", "--context-parallel")
        self.assertEqual(self.refused(*train, "3").what, "3 does not divide 4 GPUs")
        self.refused(*train, "2", "--attention", "eager")
        self.refused(*train, "2", "--shard", "zero2")

    def test_several_gpus_without_training(self):
        self.assertEqual(self.refused("--gpus", "2").what, "several GPUs are recorded in training alone")
        self.refused("--mode", "infer", "--gpus", "1,2")
        self.refused("--mode", "train", "--gpus", "0")
        self.refused("--mode", "train", "--gpus", "2", "--shard", "zero4")

    def test_options_of_several_gpus_that_change_nothing(self):
        train = ("--mode", "train", "--gpus", "2", "--shard")
        for words in (
            ["--param-dtype", "bf16"], [*train, "none", "--param-dtype", "bf16"], [*train, "zero3", "--reduce-dtype", "fp32"],
            [*train, "none", "--reshard-after-forward", "off"], [*train, "fsdp2", "--ddp-bucket-view"],
        ):  # fmt: skip
            with self.subTest(words=words):
                self.assertEqual(self.refused(*words).what, "changes no scenario")
        scenarios(*train, "none", "--reshard-after-forward", "on")
        self.refused(*train, "fsdp2", "--param-dtype", "fp8")

    def test_bad_values(self):
        for words in (
            ["--batch", "0"], ["--batch", "-1"], ["--batch", "1.5"], ["--batch", "1,"], ["--batch", "99999999999"],
            ["--image-size", "336"], ["--image-size", "336x0"], ["--image-size", "axb"], ["--dtype", "int8"],
            ["--mode", "both"], ["--attention", "fast"], ["--optimizer", "adam"], ["--freeze", "language"],
            ["--amp", "maybe"], ["--timeout", "0"], ["--timeout", "soon"],
        ):  # fmt: skip
            with self.subTest(words=words):
                self.refused(*words)

    def test_unknown_option_suggests_the_nearest(self):
        e = self.refused("--bach", "2")
        self.assertEqual(e.text(), "error: arguments: unknown '--bach'\nhint: did you mean --batch?")

    def test_an_abbreviation_is_no_option(self):
        self.refused("--opt", "sgd")

    def test_output_and_model_are_needed(self):
        for words in (["--config", "a"], ["--output", "o"]):
            with self.assertRaises(RecorderError):
                parse(words)


class File(unittest.TestCase):
    def read(self, content: object, *words: str):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scenarios.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(content if isinstance(content, str) else json.dumps(content))
            found = parse(["--scenarios", path, "--output", "o", *words]).scenarios
            return [(os.path.relpath(c, folder) if c else None, s) for c, s in found]

    def test_entries_with_their_own_models(self):
        entries = [{"config": ["a.json", "b.json"], "batch": [1, 2], "image_size": [336, 672]}]
        entries += [{"mode": "train", "lora": 8}]
        found = self.read(entries, "--config", "c.json")
        self.assertEqual([(c, s.mode, s.batch, s.hw, s.lora) for c, s in found], [
            ("a.json", "infer", 1, (336, 672), 0), ("a.json", "infer", 2, (336, 672), 0),
            ("b.json", "infer", 1, (336, 672), 0), ("b.json", "infer", 2, (336, 672), 0),
            (None, "train", 1, None, 8)])  # fmt: skip

    def test_several_sizes_in_both_spellings(self):
        found = self.read([{"config": "a", "image_size": ["336x672", [64, 32]]}])
        self.assertEqual([s.hw for _, s in found], [(336, 672), (64, 32)])

    def test_refusals_name_the_entry(self):
        faults = (("{", "scenarios.json"), ({}, "list"), ([{"bach": 1}], "entry 1"), ([{"batch": "x"}], "entry 1"))
        for content, part in faults:
            with self.subTest(content=content), self.assertRaises(RecorderError) as caught:
                self.read(content, "--config", "c")
            self.assertIn(part, str(caught.exception))

    def test_an_unknown_key_suggests_the_nearest(self):
        with self.assertRaises(RecorderError) as caught:
            self.read([{"image_sise": "1x1"}], "--config", "c")
        self.assertEqual((caught.exception.hint, caught.exception.code), ("did you mean image_size?", INPUT))

    def test_a_file_and_options_do_not_mix(self):
        with self.assertRaises(RecorderError):
            self.read([{}], "--config", "c", "--batch", "2")

    def test_entries_without_any_model(self):
        with self.assertRaises(RecorderError):
            self.read([{"batch": 1}])


class Rows(unittest.TestCase):
    def test_a_row_gives_its_scenario_back(self):
        lists = {"mode": ["infer", "train"], "batch": ["1", "2"], "image-size": ["336x336"], "dtype": ["bf16", "fp32"],
                 "logits": ["last", "all"], "checkpointing": ["on", "off"], "lora": ["0", "8"],
                 "freeze": ["none", "vision"], "amp": ["on", "off"], "optimizer": ["adamw", "adafactor"]}  # fmt: skip
        every = product(lists)
        self.assertGreater(len(every), 50)
        for s in every:
            self.assertEqual(from_row(json.loads(json.dumps(s.row_fields()))), s)

    def test_labels_differ(self):
        lists = {"mode": ["infer", "train"], "lora": ["0", "8"], "amp": ["on", "off"], "logits": ["last", "all"]}
        every = product(lists)
        self.assertEqual(len({s.label() for s in every}), len(every))


if __name__ == "__main__":
    unittest.main()
