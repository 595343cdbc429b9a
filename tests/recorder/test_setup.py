# SPDX-License-Identifier: Apache-2.0
"""Models as files, folders and descriptions; versions without torch; that nothing here needs torch."""

import ast
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

from recorder import environment
from recorder.config import load
from recorder.errors import RecorderError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "bench", "recorder")


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "my-model")
        os.mkdir(self.folder)

    def write(self, name: str, content: object) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(content, f)
        return path

    def test_a_file_a_folder_and_a_description_have_names(self):
        self.assertEqual(load(self.write("llava.json", {"model_type": "llava"})).name, "llava")
        self.write("config.json", {"model_type": "llava"})
        self.assertEqual(load(self.folder).name, "my-model")
        m = load(self.write("d.json", {"name": "mine", "model": {"model_type": "llava"}}))
        self.assertEqual((m.name, m.document), ("mine", {"model_type": "llava"}))

    def test_the_digest_is_of_the_content(self):
        one = load(self.write("a.json", {"model_type": "llava", "x": 1})).digest
        self.assertEqual(load(self.write("b.json", {"x": 1, "model_type": "llava"})).digest, one)
        self.assertNotEqual(load(self.write("a.json", {"model_type": "llava", "x": 2})).digest, one)

    def test_what_transformers_cannot_build_is_refused(self):
        model = {"model_type": "llava"}
        for content in ({"model": model, "blocks": [1]}, {"model": model, "kv": {"a": 1}}, {"x": 1}, [], {"model": {}}):
            with self.subTest(content=content), self.assertRaises(RecorderError):
                load(self.write("c.json", content))

    def test_every_shipped_description_is_read_or_refused_by_its_blocks(self):
        names = glob.glob(os.path.join(ROOT, "models", "vlm", "*.json"))
        self.assertGreater(len(names), 20)
        for path in names:
            with open(path, encoding="utf-8") as f:
                special = {"blocks", "kv"} & set(json.load(f))
            if special:
                with self.assertRaises(RecorderError):
                    load(path)
            else:
                self.assertIn("model_type", load(path).document)


class Versions(unittest.TestCase):
    def test_the_build_is_read_out_of_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "version.py")
            with open(path, "w", encoding="utf-8") as f:
                f.write("from typing import Optional\n__version__ = '2.11.0+cu130'\ndebug = False\n")
                f.write("cuda: Optional[str] = '13.0'\n")
            self.assertEqual(environment.build(path), {"torch": "2.11.0+cu130", "cuda": "13.0"})
            self.assertEqual(environment.build(path + "x"), {})

    def test_nvidia_smi_missing_failing_and_answering(self):
        def answers(code: int, text: str):
            return lambda *_, **__: subprocess.CompletedProcess([], code, text, "")

        def missing(*_, **__):
            raise FileNotFoundError

        self.assertEqual(environment.nvidia_smi("x", missing), "")
        self.assertEqual(environment.nvidia_smi("x", answers(9, "no devices")), "")
        self.assertEqual(environment.nvidia_smi("x", answers(0, "")), "")
        self.assertEqual(environment.nvidia_smi("x", answers(0, "580.159.04\n580.159.04\n")), "580.159.04")


class Package(unittest.TestCase):
    def modules(self) -> dict[str, ast.Module]:
        found = {}
        for path in glob.glob(os.path.join(PACKAGE, "**", "*.py"), recursive=True):
            name = os.path.relpath(path, os.path.dirname(PACKAGE))[:-3].replace(os.sep, ".").removesuffix(".__init__")
            with open(path, encoding="utf-8") as f:
                found[name] = ast.parse(f.read(), path)
        return found

    def test_the_program_runs_without_torch(self):
        program = "import sys; sys.modules['torch'] = None; import recorder.main, recorder.measure, recorder.worker"
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_every_import_from_the_package_exists(self):
        """The modules that need torch are not imported by any test; a misspelled name in them shows here."""
        modules = self.modules()
        for name, tree in modules.items():
            for node in ast.walk(tree):
                if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("recorder"):
                    continue
                defined = names(modules[node.module])
                for alias in node.names:
                    if f"{node.module}.{alias.name}" not in modules:
                        self.assertIn(alias.name, defined, f"{name}: from {node.module} import {alias.name}")

    def test_every_key_that_is_written_is_in_the_format(self):
        from recorder.fields import FIELDS

        for name in ("inference", "training", "measure", "device"):
            for key in written(self.modules()["recorder." + name]):
                self.assertIn(key, FIELDS, name)


def written(tree: ast.Module) -> list[str]:
    """Keys in row["key"] and in row |= {"key": ...}."""
    keys = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            if getattr(node.value, "id", getattr(node.value, "attr", "")) == "row":
                keys.append(node.slice.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Dict):
            if getattr(node.target, "id", "") == "row":
                keys += [k.value for k in node.value.keys]
    return keys


def names(tree: ast.Module) -> set[str]:
    """What a module defines at its top."""
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {a.asname or a.name.split(".")[0] for a in node.names}
    return found


if __name__ == "__main__":
    unittest.main()
