# SPDX-License-Identifier: Apache-2.0
"""Writes the snapshots beside it: python3 make.py. They are what torch.cuda.memory._dump_snapshot() would write of small
invented runs; addresses and sizes come from the caching allocator below, which follows torch's rules for one stream."""

import json
import pathlib
import pickle

MIB = 1 << 20
SITE = "/usr/lib/python3/site-packages/"
MODEL = SITE + "transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py"
MODULE = SITE + "torch/nn/modules/module.py"
TRAIN = "/home/user/train.py"


class Device:
    """Segments and blocks of one device and the history that led to them."""

    def __init__(self, capacity, memory_other=300 * MIB):
        self.capacity, self.other = capacity, memory_other
        self.segments, self.trace, self.frames = [], [], {}
        self.next, self.time = 0x7F2000000000, 1_700_000_000_000_000
        self.annotations = []

    def frame(self, file, line, name):
        return self.frames.setdefault((file, line, name), {"filename": file, "line": line, "name": name})

    def stack(self, stack):
        return [self.frame(*f) for f in stack]

    def note(self, action, addr, size, stack):
        self.time += 7
        entry = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.time,
                 "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0), "frames": self.stack(stack)}
        if action == "oom":
            entry["device_free"] = entry.pop("addr")
        self.trace.append(entry)

    def reserved(self):
        return sum(s["total_size"] for s in self.segments)

    def annotate(self, name, stage):
        self.time += 1
        self.annotations.append({"device": 0, "time_us": self.time, "name": name, "stage": stage})

    def alloc(self, requested, stack):
        size = max(512, (requested + 511) // 512 * 512)
        kind = "small" if size <= MIB else "large"
        fits = [(b["size"], b["address"], s, b) for s in self.segments if s["segment_type"] == kind
                for b in s["blocks"] if b["state"] == "inactive" and b["size"] >= size]
        if not fits:
            total = 2 * MIB if kind == "small" else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            if self.other + self.reserved() + total > self.capacity:
                whole = [s for s in self.segments if all(b["state"] == "inactive" for b in s["blocks"])]
                for s in sorted(whole, key=lambda s: (s["segment_type"], s["total_size"], s["address"])):
                    self.note("segment_free", s["address"], s["total_size"], stack)
                    self.segments.remove(s)
            if self.other + self.reserved() + total > self.capacity:
                self.note("oom", self.capacity - self.other - self.reserved(), size, stack)
                raise MemoryError
            s = {"device": 0, "address": self.next, "total_size": total, "stream": 0, "segment_type": kind,
                 "segment_pool_id": (0, 0), "is_expandable": False, "frames": self.stack(stack), "blocks": []}
            s["blocks"] = [{"address": self.next, "size": total, "requested_size": 0, "state": "inactive", "frames": []}]
            self.next += -(-total // (32 * MIB)) * 32 * MIB
            self.segments.append(s)
            self.note("segment_alloc", s["address"], total, stack)
            fits = [(total, s["address"], s, s["blocks"][0])]
        _, address, s, b = min(fits, key=lambda f: f[:2])
        rest = b["size"] - size
        if rest >= 512 if kind == "small" else rest > MIB:
            at = s["blocks"].index(b)
            s["blocks"].insert(at + 1, {**b, "address": address + size, "size": rest})
            b["size"] = size
        b.update(state="active_allocated", requested_size=requested, frames=self.stack(stack))
        self.note("alloc", address, requested, stack)
        return address

    def free(self, address, stack=()):
        s, b = next((s, b) for s in self.segments for b in s["blocks"] if b["address"] == address)
        self.note("free_requested", address, b["requested_size"], stack)
        self.note("free_completed", address, b["requested_size"], stack)
        b["state"] = "inactive"
        blocks = s["blocks"]
        at = blocks.index(b)
        for first in (at, at - 1):
            if 0 <= first and first + 1 < len(blocks) and blocks[first]["state"] == blocks[first + 1]["state"] == "inactive":
                blocks[first]["size"] += blocks.pop(first + 1)["size"]

    def snapshot(self):
        for s in self.segments:
            live = [b for b in s["blocks"] if b["state"] != "inactive"]
            s["allocated_size"] = s["active_size"] = sum(b["size"] for b in live)
            s["requested_size"] = sum(b["requested_size"] for b in live)
        settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "PYTORCH_ALLOC_CONF": "", "max_split_size": -1,
                    "garbage_collection_threshold": 0.0, "expandable_segments": False,
                    "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
                    "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}}
        return {"segments": self.segments, "device_traces": [self.trace, []], "allocator_settings": settings,
                "external_annotations": self.annotations}


def call(*inner):
    """The stack of a forward, innermost frame first."""
    return [*inner, (MODULE, 1787, "_call_impl"), (MODULE, 1775, "_wrapped_call_impl"), (TRAIN, 41, "train"), (TRAIN, 60, "<module>")]


LOAD = [(SITE + "transformers/modeling_utils.py", 4800, "_load_pretrained_model"),
        (SITE + "transformers/modeling_utils.py", 4400, "from_pretrained"), (TRAIN, 20, "<module>")]
INPUT = [(SITE + "transformers/feature_extraction_utils.py", 232, "to"), (TRAIN, 38, "train"), (TRAIN, 60, "<module>")]
LINEAR = (SITE + "torch/nn/modules/linear.py", 125, "forward")
SCORES = call((MODEL, 171, "eager_attention_forward"), (MODEL, 240, "forward"))
MLP = call(LINEAR, (MODEL, 90, "forward"))
LOSS = call((SITE + "transformers/loss/loss_utils.py", 36, "ForCausalLMLoss"), (MODEL, 1500, "forward"))
MOMENT = [(SITE + "torch/optim/adam.py", 175, "_init_group"), (SITE + "torch/optim/adam.py", 232, "step"),
          (SITE + "torch/optim/optimizer.py", 516, "wrapper"), (TRAIN, 45, "train"), (TRAIN, 60, "<module>")]
FOREACH = [(SITE + "torch/optim/adam.py", 600, "_multi_tensor_adam"), (SITE + "torch/optim/adam.py", 244, "step"),
           (SITE + "torch/optim/optimizer.py", 516, "wrapper"), (TRAIN, 45, "train"), (TRAIN, 60, "<module>")]


def training(last_scores):
    """Three steps of four layers; the third has a larger image, whose scores find no room."""
    d = Device(900 * MIB)
    weights = [d.alloc(12 * MIB + 4096 * i, LOAD) for i in range(4)]
    moments = []
    try:
        for step in range(3):
            batch = d.alloc(5 * MIB + 1000 * step, INPUT)
            saved = []
            for layer in range(4):
                scores = 30 * MIB if step < 2 else last_scores
                s = d.alloc(scores, SCORES)
                p = d.alloc(scores, SCORES)
                d.free(s, SCORES)
                saved += [p, d.alloc(8 * MIB, MLP)]
            logits = d.alloc(64 * MIB, LOSS)
            gradients = []
            d.free(logits)
            for layer in reversed(range(4)):
                t = d.alloc(30 * MIB, [])
                d.free(saved[2 * layer])
                d.free(saved[2 * layer + 1])
                gradients.append(d.alloc(12 * MIB + 4096 * layer, []))
                d.free(t)
            if not moments:
                moments = [d.alloc(12 * MIB + 4096 * (i // 2), MOMENT) for i in range(8)]
            t = d.alloc(48 * MIB, FOREACH)
            d.free(t, FOREACH)
            for g in gradients:
                d.free(g, [(SITE + "torch/optim/optimizer.py", 1000, "zero_grad"), (TRAIN, 46, "train")])
            d.free(batch)
    except MemoryError:
        pass
    return d.snapshot()


def leak():
    """Steps that keep 3 MiB each: their losses, with the graph behind them, are appended to a list."""
    d = Device(4000 * MIB)
    for i in range(3):
        d.alloc(12 * MIB, LOAD)
    for step in range(8):
        d.annotate(f"ProfilerStep#{step}", "START")
        batch = d.alloc(2 * MIB + 512 * (step % 3), INPUT)
        d.alloc(3 * MIB, MLP)
        t = d.alloc(6 * MIB, SCORES)
        d.free(t)
        d.free(batch)
        d.annotate(f"ProfilerStep#{step}", "END")
    return d.snapshot()


def fragmented():
    """Twelve segments of 20 MiB, each with 3 MiB in its middle that stay: 204 MiB are free, in gaps of 8 and 9 MiB."""
    d = Device(600 * MIB)
    d.alloc(12 * MIB, LOAD)
    images = []
    for i in range(12):
        images.append(d.alloc(8 * MIB, SCORES))
        d.alloc(3 * MIB, MLP)
        images.append(d.alloc(8 * MIB, SCORES))
    for image in images:
        d.free(image)
    try:
        d.alloc(90 * MIB, LOSS)
    except MemoryError:
        pass
    return d.snapshot()


def old(snapshot):
    """As torch 1.12 and 1.13 wrote it: the segments alone, an owner in a history, no addresses of blocks."""
    segments = []
    for s in snapshot["segments"]:
        blocks = []
        for b in s["blocks"]:
            new = {"size": b["size"], "state": b["state"]}
            if b["state"] != "inactive":
                new["history"] = [{"addr": b["address"], "real_size": b["requested_size"], "frames": b["frames"]}]
            blocks.append(new)
        segments.append({k: s[k] for k in ("address", "total_size", "allocated_size", "active_size", "stream", "device",
                                           "segment_type")} | {"blocks": blocks})
    return segments


def main():
    here = pathlib.Path(__file__).parent
    oom = training(190 * MIB + 1234)
    for protocol in (2, 3, 4, 5):
        (here / f"training_protocol{protocol}.pickle").write_bytes(pickle.dumps(oom, protocol))
    (here / "training.json").write_text(json.dumps(oom, separators=(",", ":")))
    (here / "torch_1_12.pickle").write_bytes(pickle.dumps(old(oom), 4))
    (here / "leak.pickle").write_bytes(pickle.dumps(leak(), 4))
    (here / "fragmented.pickle").write_bytes(pickle.dumps(fragmented(), 4))


if __name__ == "__main__":
    main()
