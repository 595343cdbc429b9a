# SPDX-License-Identifier: Apache-2.0
"""One process a scenario: whatever becomes of it, there is a row, and the row says why."""

import io
import os
import sys
import tempfile
import time
import unittest

from recorder import main, worker
from recorder.config import Model
from recorder.fields import check
from recorder.rows import RowFile, key, row_key
from recorder.scenario import Scenario

VERSIONS = {"torch": "2.11.0"}
JOB = worker.Job(Model("m", "m.json", {"model_type": "llava"}, "d"), Scenario(hw=(336, 336)))
# What every stand-in for the measuring process begins with.
BEGIN = """
import json, os, signal, sys, time
from recorder.journal import Journal
job = json.load(open(sys.argv[1]))
j = Journal(job["journal"], {})
"""


def run(program: str, timeout: float = 30) -> dict:
    stages = []
    row = worker.measure(JOB, VERSIONS, timeout, None, stages.append, [sys.executable, "-c", BEGIN + program])
    check(row)
    return row


class Outcomes(unittest.TestCase):
    def test_what_ended_another_rank_is_told(self):
        job = worker.Job(JOB.model, Scenario("train", hw=(336, 336), gpus=2))
        program = BEGIN + 'other = Journal(job["journal"] + ".1", {"oom": "CUDA out of memory"}); other.stage("x"); sys.exit(1)'
        row = worker.measure(job, VERSIONS, 30, None, lambda stage: None, [sys.executable, "-c", program])
        check(row)
        self.assertEqual((row["gpus"], row["oom"]), (2, "CUDA out of memory"))
        self.assertNotIn("error", row)

    def test_several_gpus_have_a_process_each(self):
        self.assertEqual(worker._command(JOB.scenario)[1:], ["-m", "recorder.measure"])
        several = worker._command(Scenario("train", gpus=2))
        self.assertEqual(several[1:], ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m",
                                       "recorder.measure"])

    def test_a_whole_row(self):
        row = run('print("noise"); j.row["prefill_peak"] = 5; j.row["versions"] = {"cudnn": "9"}; j.stage("done")')
        self.assertEqual((row["model"], row["batch"], row["hw"], row["prefill_peak"]), ("m", 1, [336, 336], 5))
        self.assertEqual(row["versions"], {"torch": "2.11.0", "cudnn": "9"})
        self.assertEqual(row_key(row), key("m", "d", JOB.scenario, VERSIONS))
        self.assertNotIn("error", row)

    def test_out_of_memory_keeps_its_text_and_what_was_measured(self):
        text = "CUDA out of memory. Tried to allocate 656.00 MiB. GPU 0 has a total capacity of 139.80 GiB"
        row = run(f'j.row["alloc_weights"] = 3; j.row["oom"] = "{text}"; j.stage("out of memory")')
        self.assertEqual((row["oom"], row["alloc_weights"]), (text, 3))
        self.assertNotIn("error", row)

    def test_a_killed_process(self):
        row = run('j.row["prefill_peak"] = 5; j.stage("decode"); os.kill(os.getpid(), signal.SIGKILL)')
        self.assertEqual((row["error"], row["prefill_peak"]), ("ended by SIGKILL in stage 'decode'", 5))

    def test_a_process_that_fails_says_so_itself(self):
        row = run('j.row["error"] = "ValueError: no"; j.stage("failed"); sys.exit(1)')
        self.assertEqual(row["error"], "ValueError: no")

    def test_a_process_that_cannot_start(self):
        row = run('raise ImportError("no module named torch")')
        self.assertEqual(row["error"], "exit code 1 before its first stage: ImportError: no module named torch")

    def test_a_process_that_just_ends(self):
        self.assertEqual(run('j.stage("prefill")')["error"], "ended early in stage 'prefill'")

    def test_a_process_that_hangs(self):
        start = time.monotonic()
        row = run('j.stage("weights"); time.sleep(60)', timeout=2)
        self.assertEqual(row["error"], "stopped after 2 s in stage 'weights'")
        self.assertLess(time.monotonic() - start, 20)

    def test_modules_of_the_working_folder_are_not_found(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "kernels_of_mine"))
            before = os.getcwd()
            os.chdir(folder)
            try:
                found = 'importlib.util.find_spec("kernels_of_mine")'
                row = run(f'import importlib.util; j.row["note"] = str({found}); j.stage("done")')
            finally:
                os.chdir(before)
        self.assertEqual(row["note"], "None")

    def test_a_half_written_line_does_not_count(self):
        row = run('j.row["seq"] = 1; j.stage("done"); open(job["journal"], "a").write(\'{"stage": "x", "ro\')')
        self.assertEqual(row["seq"], 1)

    def test_the_real_process_without_torch(self):
        if "torch" in main.environment.versions():
            self.skipTest("torch is installed")
        row = worker.measure(JOB, VERSIONS, 60, None, lambda stage: None)
        self.assertIn("No module named 'torch'", row["error"])


class Program(unittest.TestCase):
    """From the command line to the file, with a stand-in for the measurement."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(self.folder, "rows.jsonl")
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self.config = os.path.join(root, "tests", "data", "configs", "llava-1.5-7b.json")
        self.measured: list[str] = []
        self.fail = ""
        for name, stand_in in (("measure", self.measure), ("environment", self)):
            self.addCleanup(setattr, main, name, getattr(main, name))
            setattr(main, name, stand_in)
        self.errors = io.StringIO()
        self.addCleanup(setattr, sys, "stderr", sys.stderr)
        sys.stderr = self.errors

    def versions(self) -> dict:
        return VERSIONS

    def measure(self, job, versions, timeout, kernels, report) -> dict:
        self.measured.append(job.name)
        failed = {"error": "no"} if self.fail and self.fail in job.name else {}
        return job.row_start() | {"versions": versions} | failed

    def run_main(self, *words: str) -> int:
        return main.main(["--config", self.config, "--output", self.output, *words])

    def test_a_second_run_does_only_what_is_new(self):
        self.assertEqual(self.run_main("--batch", "1,2"), 0)
        self.assertEqual(len(self.measured), 2)
        self.assertEqual(self.run_main("--batch", "1,2,3"), 0)
        self.assertEqual(self.measured[2:], ["llava-1.5-7b infer b3 text 256 images 1 336x336 bfloat16 sdpa"])
        self.assertIn("2 of 3 scenarios are in", self.errors.getvalue())

    def test_an_error_does_not_end_the_others_and_shows_in_the_exit_code(self):
        self.fail = "b1"
        self.assertEqual(self.run_main("--batch", "1,2"), 1)
        self.assertEqual(len(self.measured), 2)
        self.fail = ""
        self.assertEqual(self.run_main("--batch", "1,2"), 0)
        self.assertEqual(len(self.measured), 2)
        self.assertEqual(self.run_main("--batch", "1,2", "--retry"), 0)
        self.assertEqual(len(self.measured), 3)

    def test_the_native_size_and_the_same_size_given_are_one_scenario(self):
        self.assertEqual(self.run_main("--image-size", "native,336x336"), 0)
        self.assertEqual(len(self.measured), 1)

    def test_nothing_runs_when_one_scenario_cannot(self):
        self.assertEqual(self.run_main("--images", "1,300", "--text", "256"), 2)
        self.assertEqual(self.measured, [])
        self.assertIn("error: --text: 256 tokens cannot separate 300 images", self.errors.getvalue())

    def test_a_dry_run_measures_nothing(self):
        out, sys.stdout = sys.stdout, io.StringIO()
        try:
            self.assertEqual(self.run_main("--dry-run"), 0)
            self.assertIn("llava-1.5-7b infer b1", sys.stdout.getvalue())
        finally:
            sys.stdout = out
        self.assertEqual((self.measured, os.path.exists(self.output)), ([], False))

    def test_exit_codes_of_input(self):
        faults = (('{"model_type": "bert"}', "unknown type 'bert'"), ("{}", "no model_type"), ("[", "not JSON"))
        for document, part in faults:
            path = os.path.join(self.folder, "config.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(document)
            self.assertEqual(main.main(["--config", self.folder, "--output", self.output]), 3)
            self.assertIn(part, self.errors.getvalue())

    def test_what_a_run_wrote_is_whole(self):
        self.run_main("--batch", "1,2")
        rows = RowFile(self.output)
        for job in main.jobs(main.parse(["--config", self.config, "--output", self.output, "--batch", "1,2"])):
            self.assertTrue(rows.done(key(job.model.name, job.model.digest, job.scenario, VERSIONS), retry=False))


if __name__ == "__main__":
    unittest.main()
