# SPDX-License-Identifier: Apache-2.0
"""The device and the versions of this process, as rows carry them."""

import torch
import transformers


def row() -> dict:
    """Keys device … multiprocessors and versions; the starting process adds the versions that it knows better."""
    p = torch.cuda.get_device_properties(0)
    versions = {
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "cuda": str(torch.version.cuda),
        "cudnn": str(torch.backends.cudnn.version()),
    }
    return {
        "device": p.name,
        "device_memory": p.total_memory,
        "compute_capability": f"{p.major}.{p.minor}",
        "multiprocessors": p.multi_processor_count,
        "versions": versions,
    }
