# SPDX-License-Identifier: Apache-2.0
"""The file of rows: what counts as done, what survives a kill, and that readers know every key."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

from recorder.errors import RecorderError
from recorder.fields import FIELDS
from recorder.rows import RowFile, key
from recorder.scenario import Scenario, from_row

PROGRAM = os.environ.get("VLMEST_PROGRAM")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIGS = os.path.join(ROOT, "tests", "data", "configs")
VERSIONS = {"torch": "2.11.0+cu130", "transformers": "5.17.0", "peft": "0.21.0", "driver": "580.1"}
SCENARIO = Scenario(hw=(336, 336))


def row(scenario: Scenario = SCENARIO, **more: object) -> dict:
    return {"model": "m", "config_sha256": "d", "versions": VERSIONS} | scenario.row_fields() | more


class Resume(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "new", "rows.jsonl")
        self.key = key("m", "d", SCENARIO, VERSIONS)

    def lines(self) -> list[str]:
        with open(self.path, encoding="utf-8") as f:
            return f.read().splitlines()

    def test_a_written_row_is_done_now_and_for_the_next_process(self):
        rows = RowFile(self.path)
        self.assertFalse(rows.done(self.key, retry=False))
        rows.append(row())
        self.assertTrue(rows.done(self.key, retry=False))
        self.assertTrue(RowFile(self.path).done(self.key, retry=True))

    def test_another_scenario_config_or_version_is_not_done(self):
        RowFile(self.path).append(row())
        rows = RowFile(self.path)
        others = [
            key("n", "d", SCENARIO, VERSIONS),
            key("m", "e", SCENARIO, VERSIONS),
            key("m", "d", Scenario(hw=(336, 336), batch=2), VERSIONS),
            key("m", "d", Scenario("train", hw=(336, 336)), VERSIONS),
        ]
        others += [key("m", "d", SCENARIO, VERSIONS | {n: "other"}) for n in ("torch", "transformers", "driver")]
        for other in others:
            self.assertFalse(rows.done(other, retry=False), other)

    def test_peft_counts_only_with_adapters(self):
        RowFile(self.path).append(row())
        self.assertTrue(RowFile(self.path).done(key("m", "d", SCENARIO, VERSIONS | {"peft": "1"}), retry=False))
        adapted = Scenario("train", hw=(1, 1), lora=8)
        self.assertNotEqual(key("m", "d", adapted, VERSIONS), key("m", "d", adapted, VERSIONS | {"peft": "1"}))

    def test_out_of_memory_is_a_result_and_an_error_can_be_retried(self):
        rows = RowFile(self.path)
        rows.append(row(error="ended by SIGKILL"))
        self.assertTrue(rows.done(self.key, retry=False))
        self.assertFalse(rows.done(self.key, retry=True))
        rows.append(row(oom="CUDA out of memory."))
        self.assertTrue(RowFile(self.path).done(self.key, retry=True))

    def test_a_line_that_was_cut_off_is_measured_again_and_spoils_nothing(self):
        RowFile(self.path).append(row(batch=7))
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps(row())[:40])
        rows = RowFile(self.path)
        self.assertFalse(rows.done(self.key, retry=False))
        rows.append(row())
        rows.append(row(batch=9))
        self.assertEqual([json.loads(line)["batch"] for line in self.lines()], [7, 1, 9])
        self.assertTrue(RowFile(self.path).done(self.key, retry=False))

    def test_a_file_of_something_else_is_refused(self):
        os.makedirs(os.path.dirname(self.path))
        for text in ("hello\n", "[1]\n", "1\n"):
            with open(self.path, "w", encoding="utf-8") as f:
                f.write(text)
            with self.assertRaises(RecorderError):
                RowFile(self.path)

    def test_a_key_that_readers_do_not_know_is_refused(self):
        with self.assertRaises(KeyError):
            RowFile(self.path).append(row(prefil_peak=1))


class Format(unittest.TestCase):
    """The rows that the accuracy tests hold estimates against have the recorder's keys."""

    def committed(self):
        paths = glob.glob(os.path.join(ROOT, "tests", "validation", "rows", "*.json"))
        self.assertTrue(paths)
        for path in paths:
            with open(path, encoding="utf-8") as f:
                content = json.load(f)
            if "benchmarks" in content:  # single operations
                continue
            for r in content["rows"] if isinstance(content, dict) else content:
                yield os.path.basename(path), r

    def test_every_committed_key_is_written_by_the_recorder(self):
        for name, r in self.committed():
            self.assertLessEqual(set(r), set(FIELDS), name)

    def test_committed_scenarios_are_read(self):
        for name, r in self.committed():
            s = from_row(r)
            found = {"batch": s.batch, "text": s.text, "images": s.images, "hw": list(s.hw)}
            self.assertEqual(found, {k: r[k] for k in found}, name)

    def test_what_a_scenario_says_is_in_the_format(self):
        every = Scenario("train", 1, 1, 1, (1, 1), "float32", "eager", "last", True, 8, True, True, "sgd")
        self.assertLessEqual(set(every.row_fields()) | set(SCENARIO.row_fields()), set(FIELDS))

    def test_every_quantity_that_vlmest_validates_is_written_by_the_recorder(self):
        with open(os.path.join(ROOT, "lib", "vlmest", "report", "compare_run.hpp"), encoding="utf-8") as f:
            quantities = set(re.findall(r'Quantity\{"(\w+)"', f.read()))
        self.assertGreater(len(quantities), 20)
        derived = {"fits", "prefill_above_weights"}  # of others, there
        self.assertLessEqual(quantities - derived, set(FIELDS))

    @unittest.skipUnless(PROGRAM, "the program vlmest is not built")
    def test_vlmest_validates_what_the_recorder_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.jsonl")
            rows = RowFile(path)
            written = 0
            for name, r in self.committed():
                config = {"config": os.path.join(CONFIGS, r["model"] + ".json"), "config_sha256": "0"}
                mode = r.get("mode", "train" if "training" in name else "infer")
                rows.append(r | config | {"mode": mode, "versions": VERSIONS, "device": "NVIDIA H200", "seconds": 9.5})
                written += 1
            command = [PROGRAM, "validate", path, "--models", CONFIGS, "--json"]
            said = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stderr), (0, ""))
            self.assertEqual(json.loads(said.stdout)["files"][0]["rows"], written)


if __name__ == "__main__":
    unittest.main()
