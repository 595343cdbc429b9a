# SPDX-License-Identifier: Apache-2.0
"""A profiler's trace: sums, and which operator of which module launched a kernel."""

import unittest

from recorder.trace import Activity, activity, kernels


def event(cat: str, name: str, ts: float, dur: float, tid: object = 1, **args: object) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


def launch(ts: float, correlation: int, tid: object = 1) -> dict:
    return event("cuda_runtime", "cudaLaunchKernel", ts, 1, tid, correlation=correlation)


def kernel(ts: float, dur: float, correlation: int, name: str = "gemm") -> dict:
    return event("kernel", name, ts, dur, "stream 7", correlation=correlation)


FORWARD = [
    event("user_annotation", "phase:forward", 0, 100),
    event("user_annotation", "module:model", 1, 90),
    event("user_annotation", "module:model.up", 10, 20),
    event("cpu_op", "aten::linear", 11, 18, **{"Sequence number": 7, "Input Dims": [[1, 2], [3, 2]]}),
    event("cpu_op", "aten::mm", 12, 10, **{"Sequence number": 7, "Input Dims": [[1, 2], [2, 3]]}),
    launch(13, 1),
    event("cpu_op", "aten::add", 40, 10, **{"Sequence number": 8, "Input Dims": [[1, 3]]}),
    launch(41, 2),
    kernel(200, 5, 2, "add"),
    kernel(150, 50, 1),
    {"ph": "M", "name": "process_name", "args": {}},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "ts": 13, "tid": 1, "id": 1},
]


class Sums(unittest.TestCase):
    def test_only_kernels_are_launches_and_everything_takes_time(self):
        events = [kernel(0, 5, 1), kernel(9, 7, 2), event("gpu_memcpy", "Memcpy DtoH", 20, 2, "stream 7"),
                  event("gpu_memset", "Memset", 30, 1, "stream 7"), launch(0, 1), event("cpu_op", "aten::mm", 0, 99),
                  event("gpu_user_annotation", "module:model", 0, 99, "stream 7")]  # fmt: skip
        self.assertEqual(activity(events), Activity(kernels=2, memops=2, us=15, memop_us=3))

    def test_nothing_ran(self):
        self.assertEqual(activity([]), Activity())

    def test_parts_add_up(self):
        self.assertEqual(Activity(1, 2, 3, 4) + Activity(1, 1, 1, 1), Activity(2, 3, 4, 5))


class Attribution(unittest.TestCase):
    def test_the_innermost_operator_and_module(self):
        found = [(k.phase, k.module, k.op, k.shapes, k.name, k.us) for k in kernels(FORWARD)]
        self.assertEqual(found, [
            ("forward", "model.up", "aten::mm", [[1, 2], [2, 3]], "gemm", 50),
            ("forward", "model", "aten::add", [[1, 3]], "add", 5)])  # fmt: skip

    def test_a_gradient_belongs_to_the_module_of_its_forward(self):
        engine = "autograd::engine::evaluate_function: "
        events = FORWARD + [
            event("user_annotation", "phase:backward", 300, 100),
            event("cpu_op", engine + "MmBackward0", 310, 20, 2, **{"Sequence number": 7, "Fwd thread id": 1}),
            event("cpu_op", "aten::mm", 312, 5, 2, **{"Input Dims": [[3, 1], [1, 2]]}),
            launch(313, 3, 2),
            event("cpu_op", engine + "torch::autograd::AccumulateGrad", 340, 5, 2),
            launch(341, 4, 2),
            kernel(500, 9, 3, "grad"),
            kernel(520, 2, 4, "sum"),
        ]
        found = [(k.phase, k.module, k.op) for k in kernels(events)[2:]]
        expected = [("backward", "model.up", "aten::mm"), ("backward", "", "torch::autograd::AccumulateGrad")]
        self.assertEqual(found, expected)

    def test_a_recomputed_forward_counts_its_own_sequence(self):
        engine = "autograd::engine::evaluate_function: "
        events = FORWARD + [
            event("user_annotation", "phase:backward", 300, 200),
            event("cpu_op", engine + "NllLossBackward0", 305, 2, 2, **{"Sequence number": 8, "Fwd thread id": 1}),
            event("cpu_op", engine + "CheckpointBackward", 310, 40, 2, **{"Sequence number": 8, "Fwd thread id": 1}),
            event("user_annotation", "module:model.layer", 312, 30, 2),
            event("cpu_op", "aten::mm", 315, 20, 2, **{"Sequence number": 7}),
            launch(316, 3, 2),
            event("cpu_op", engine + "MmBackward0", 360, 20, 2, **{"Sequence number": 7, "Fwd thread id": 2}),
            launch(361, 4, 2),
            kernel(500, 9, 3),
            kernel(520, 2, 4),
        ]
        self.assertEqual([k.module for k in kernels(events)[2:]], ["model.layer", "model.layer"])

    def test_a_kernel_without_a_known_launch_is_kept(self):
        found = kernels([kernel(0, 3, 99)])
        self.assertEqual([(k.phase, k.module, k.op, k.us) for k in found], [("", "", "", 3)])


if __name__ == "__main__":
    unittest.main()
