"""A small sweep in a directory, and workers in the process of a test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubesched.sweep.execution import SweepWorkers, inline_workers
from kubesched.sweep.plan import SweepPlan, plan_of
from kubesched.sweep.spec import load_sweep

SCENARIO = """
version: 1
duration: 10m
nodes: [{name: node, count: 2, allocatable: {cpu: 4, memory: 8Gi}}]
workloads:
- {name: job, pods: {perHour: 90, runTime: {exponential: 2m}}, requests: {cpu: 1}}
"""
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: web, resources: {requests: {cpu: 1}}}]}
"""
SWEEP = """
version: 1
inputs: [{files: [day.yaml]}]
parameters: [{name: load, field: "scenario.workloads[job].pods.perHour", values: [60, 120]}]
seeds: 2
"""
RAISING = """
from kubesched.framework.plugin import FilterPlugin
class Mine(FilterPlugin[None]):
    name = "Mine"
    def filter(self, state, pod, nodes):
        raise KeyError("gpu")
"""


def write(directory: Path, **texts: str) -> None:
    """Write files: of Python if their text imports something, else of YAML."""
    for name, text in texts.items():
        ending = "py" if "import " in text else "yaml"
        (directory / f"{name}.{ending}").write_text(textwrap.dedent(text), encoding="utf-8")


def planned(directory: Path) -> SweepPlan:
    """Return the plan of a directory's sweep."""
    file = directory / "sweep.yaml"
    return plan_of(load_sweep(file), file)


@contextmanager
def no_processes(_cores: int) -> Iterator[SweepWorkers]:
    """Stand in for `local_workers`."""
    yield inline_workers()
