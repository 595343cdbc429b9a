# SPDX-License-Identifier: Apache-2.0
"""The program: options in, rows out."""

import sys
from dataclasses import replace

from recorder import environment
from recorder.arguments import Options, parse
from recorder.config import Model, load
from recorder.errors import FAILED, USAGE, RecorderError
from recorder.inputs import families
from recorder.inputs.sequence import arrange
from recorder.progress import Progress
from recorder.rows import RowFile, key
from recorder.scenario import Scenario
from recorder.worker import Job, measure


def main(words: list[str]) -> int:
    """Exit codes: 0 every scenario has a row (one that did not fit has one too), 1 some ended with an error, 2 wrong
    usage, 3 unreadable or unsupported input, 130 interrupted (rows written so far stay)."""
    try:
        return run(parse(words))
    except RecorderError as e:
        print(e.text(), file=sys.stderr)
        return e.code
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130


def run(options: Options) -> int:
    """Measures what has no row yet."""
    rows = RowFile(options.output)
    versions = environment.versions()
    every = jobs(options)
    todo = [j for j in every if not rows.done(key(j.model.name, j.model.digest, j.scenario, versions), options.retry)]
    if len(todo) < len(every):
        print(f"{len(every) - len(todo)} of {len(every)} scenarios are in {options.output}", file=sys.stderr)
    if options.kernels and any(j.scenario.gpus > 1 for j in todo):
        raise RecorderError("--kernels", "kernels of several GPUs are not recorded", "leave it out, or --gpus 1", USAGE)
    if options.dry_run:
        for job in todo:
            print(job.name)
        return 0
    if todo and "torch" not in versions:
        hint = "pip install torch transformers, on a machine with a GPU"
        raise RecorderError("environment", "torch is not installed", hint)
    progress = Progress(len(todo))
    failed = 0
    for job in todo:
        progress.begin(job.name)
        row = measure(job, versions, options.timeout, options.kernels, progress.stage)
        rows.append(row)
        progress.end(row)
        failed += "error" in row
    return FAILED if failed else 0


def jobs(options: Options) -> list[Job]:
    """Every model with its scenarios. What cannot be laid out is an error here, before the first one runs."""
    models: dict[str, Model] = {}

    def model(path: str) -> Model:
        if path not in models:
            models[path] = load(path)
        return models[path]

    result: dict[tuple, Job] = {}
    for config, scenario in options.scenarios:
        for path in options.configs if config is None else [config]:
            job = Job(model(path), resolved(model(path), scenario))
            result[(job.model.name, job.model.digest, job.scenario)] = job
    return list(result.values())


def resolved(model: Model, scenario: Scenario) -> Scenario:
    """The scenario with the images' size filled in. Raises RecorderError for an unknown model type and for text that
    cannot hold the images."""
    families.family(model.document)
    size = scenario.hw or families.native_size(model.document)
    arrange(scenario.text, scenario.images, tokens=1)
    return replace(scenario, hw=size)
