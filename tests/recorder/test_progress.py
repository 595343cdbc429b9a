# SPDX-License-Identifier: Apache-2.0
"""What is shown while scenarios run."""

import io
import unittest

from recorder.progress import Progress, duration, outcome, remaining

ROW = {"mode": "infer", "prefill_peak": 3 << 30, "prefill_ms": 40.0, "prefill_gpu_ms": 35.04, "decode_ms": 30.0}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Shown(unittest.TestCase):
    def setUp(self):
        self.now = 0.0

    def scenarios(self, out: io.StringIO, seconds: list[float], total: int) -> None:
        p = Progress(total, out, lambda: self.now)
        for s in seconds:
            p.begin("m b1")
            self.now += s / 2
            p.stage("decode")
            self.now += s / 2
            p.end(ROW)

    def test_a_log_has_a_line_for_each_scenario_with_the_rest_of_the_time(self):
        out = io.StringIO()
        self.scenarios(out, [30, 60], 3)
        self.assertEqual(
            out.getvalue().splitlines(),
            [
                "[1/3] m b1: peak 3.00 GiB, prefill 35.0 ms GPU of 40.0 ms (30 s, 1 min 0 s for 2 more)",
                "[2/3] m b1: peak 3.00 GiB, prefill 35.0 ms GPU of 40.0 ms (1 min 0 s, 45 s for 1 more)",
            ],
        )

    def test_the_last_one_says_nothing_of_a_rest(self):
        out = io.StringIO()
        self.scenarios(out, [5], 1)
        self.assertTrue(out.getvalue().endswith("(5 s)\n"))

    def test_a_terminal_shows_the_stage_and_counts_down(self):
        out = Terminal()
        self.scenarios(out, [30, 60], 3)
        self.assertIn("\r\033[K[1/3] m b1: decode, 15 s\r", out.getvalue())
        self.assertIn("[2/3] m b1: decode, 30 s, 30 s left\r", out.getvalue())
        self.assertEqual(out.getvalue().count("\n"), 2)

    def test_estimates(self):
        self.assertIsNone(remaining([], 5))
        self.assertEqual(remaining([10.0, 20.0], 4), 60.0)

    def test_durations(self):
        found = [duration(s) for s in (-1, 0.4, 59.4, 59.6, 3599, 7500)]
        self.assertEqual(found, ["0 s", "0 s", "59 s", "1 min 0 s", "59 min 59 s", "2 h 5 min"])

    def test_outcomes(self):
        self.assertEqual(outcome({"oom": "CUDA out of memory. Tried"}), "out of memory")
        self.assertEqual(outcome({"error": "ended by SIGKILL"}), "error: ended by SIGKILL")
        self.assertEqual(outcome({"mode": "train", "forward_peak": 1 << 30, "step_peak": 2 << 30}), "peak 2.00 GiB")


if __name__ == "__main__":
    unittest.main()
