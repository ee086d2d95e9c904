"""Plugins of users that fail: the plugin is named, and kubesched is not blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cluster import node, pod, run, write

_PLUGINS = """
import numpy as np
from kubesched.framework.plugin import (
    FilterPlugin, PreEnqueuePlugin, QueueSortPlugin, ReservePlugin, ScorePlugin,
)
from kubesched.framework.status import NodeToStatus, unschedulable


class Gate(PreEnqueuePlugin):
    name = "Gate"

    def pre_enqueue(self, pod, snapshot):
        raise RuntimeError("boom")


class Short(ScorePlugin):
    name = "Short"

    def score(self, state, pod, nodes):
        return np.zeros(1, np.int64)


class Lax(FilterPlugin):
    name = "Lax"

    def filter(self, state, pod, nodes):
        return None


class Greedy(ReservePlugin):
    name = "Greedy"

    def reserve(self, cycle, pod, node_name):
        return unschedulable("taken")

    def unreserve(self, cycle, pod, node_name):
        raise RuntimeError("boom")


class Sort(QueueSortPlugin):
    name = "Sort"

    def sort_key(self, queued):
        raise RuntimeError("boom")


class Shy(FilterPlugin):
    name = "Shy"

    def sign(self, pod):
        raise RuntimeError("boom")

    def filter(self, state, pod, nodes):
        return NodeToStatus.passing(len(nodes))
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("Gate", "1 pod held back by Gate.", id="PreEnqueue raises"),
        pytest.param(
            "Short",
            'plugin "Short" failed with: answered for 1 rows, and was asked about 2',
            id="scores of some rows",
        ),
        pytest.param(
            "Lax", 'running "Lax" filter plugin: TypeError: object of type', id="no answer"
        ),
        pytest.param("Greedy", "1 pod: taken (Greedy)", id="Unreserve raises"),
        pytest.param("Shy", "1 of 1 pod placed", id="Sign raises"),
    ],
)
def test_a_failing_plugin_is_named(name: str, expected: str, tmp_path: Path) -> None:
    """The report says which plugin it was, and the run goes on to its end."""
    file = tmp_path / "faulty.py"
    file.write_text(_PLUGINS)
    cluster = write(tmp_path, [node("alpha"), node("beta"), pod("a")])
    result = run("simulate", cluster, "--plugin", f"{file}:{name}")
    assert not result.exit_code, result.stderr
    assert expected in result.stdout


def test_explain_says_what_a_gate_raised(tmp_path: Path) -> None:
    """The same text that the log of a live scheduler has."""
    file = tmp_path / "faulty.py"
    file.write_text(_PLUGINS)
    cluster = write(tmp_path, [node("alpha"), pod("a")])
    result = run("explain", "a", cluster, "--plugin", f"{file}:Gate")
    text = 'running PreEnqueue plugin "Gate": RuntimeError: boom'
    assert f"Pod shop/a is held back by Gate: {text}" in result.stdout


def test_what_nothing_else_tells_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A gate that fails, and a plugin that cannot sign: once, however many pods there are."""
    file = tmp_path / "faulty.py"
    file.write_text(_PLUGINS)
    cluster = write(tmp_path, [node("alpha"), *(pod(f"p-{at}", "100m") for at in range(3))])
    run("simulate", cluster, "--plugin", f"{file}:Shy")
    (line,) = caplog.messages
    expected = 'Nothing is remembered for pods like shop/p-0: running Sign plugin "Shy": '
    assert line == f"{expected}RuntimeError: boom"
    caplog.clear()
    run("simulate", cluster, "--plugin", f"{file}:Gate")
    expected = 'Unexpected error for pod shop/p-0: running PreEnqueue plugin "Gate": '
    assert f"{expected}RuntimeError: boom" in caplog.messages


def test_whose_code_failed_is_said(tmp_path: Path) -> None:
    """Where no status can say so, the place does; the fault is the plugin's, not kubesched's."""
    file = tmp_path / "faulty.py"
    file.write_text(_PLUGINS)
    configuration = tmp_path / "config.yaml"
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {queueSort: {enabled: [{name: Sort}], disabled: [{name: '*'}]}}}]\n"
    )
    cluster = write(tmp_path, [node("alpha"), pod("a"), pod("b")])
    result = run("simulate", cluster, "--plugin", f"{file}:Sort", "--config", configuration)
    assert "error: RuntimeError: boom, raised in " in result.stderr
    assert "Sort.sort_key" in result.stderr
    assert "bug in kubesched" not in result.stderr
    assert result.exit_code == 2
