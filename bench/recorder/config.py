# SPDX-License-Identifier: Apache-2.0
"""A model as the user names it: a config.json, a folder that holds one, or a description of the project."""

import hashlib
import json
import os
from dataclasses import dataclass

from recorder.errors import RecorderError


@dataclass(frozen=True)
class Model:
    """`document` is the content of a config.json; `digest` tells two versions of one name apart."""

    name: str
    path: str
    document: dict
    digest: str


def load(path: str) -> Model:
    """Raises RecorderError when there is no model, or one that transformers does not have."""
    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    try:
        with open(file, encoding="utf-8") as f:
            document = json.load(f)
    except OSError as e:
        raise RecorderError(path, e.strerror or str(e), "a config.json, or a folder that holds one") from e
    except ValueError as e:
        raise RecorderError(file, f"not JSON: {e}", "a config.json as Hugging Face repositories hold it") from e
    if not isinstance(document, dict):
        raise RecorderError(file, "not an object", "a config.json as Hugging Face repositories hold it")
    stem = os.path.splitext(os.path.basename(file))[0]
    name = os.path.basename(os.path.dirname(os.path.abspath(file))) if stem == "config" else stem
    if isinstance(document.get("model"), dict):  # a description: models/vlm/*.json
        for key in ("blocks", "kv"):
            if document.get(key):
                what = f"'{key}' describes what transformers does not have"
                raise RecorderError(file, what, "record a model that transformers can build")
        name = document.get("name", name)
        document = document["model"]
    if not isinstance(document.get("model_type"), str):
        raise RecorderError(file, "no model_type", "a config.json as Hugging Face repositories hold it")
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
    return Model(name, path, document, digest)
