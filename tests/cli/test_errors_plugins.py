"""Plugins of users that raise: the error names the plugin and its lines, and there is no result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubesched.framework import plugin_answers

from .cluster import config, node, pod, run, write

_PLUGINS = """
import numpy as np
from kubesched.framework.cluster_event import (
    ASSIGNED_POD, Action, ClusterEvent, ClusterEventWithHint,
)
from kubesched.framework.per_row import PerRowFilter
from kubesched.framework.plugin import (
    FilterPlugin, PostBindPlugin, PreBindPlugin, PreEnqueuePlugin, PreFilterPlugin,
    PreFilterResult, QueueSortPlugin, ReservePlugin, ScorePlugin,
)
from kubesched.framework.status import SUCCESS, NodeToStatus, unschedulable


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


class Fine(FilterPlugin):
    name = "Fine"

    def filter(self, state, pod, nodes):
        return NodeToStatus.passing(len(nodes))


class Rude(FilterPlugin):
    name = "Rude"

    def filter(self, state, pod, nodes):
        raise RuntimeError("boom")


class Nested(PerRowFilter):
    name = "Nested"

    def filter_node(self, state, pod, node):
        return self._helper(pod)

    def _helper(self, pod):
        raise RuntimeError("boom")


class Vague(FilterPlugin):
    name = "Vague"

    def filter(self, state, pod, nodes):
        return NodeToStatus.everywhere(len(nodes), unschedulable("no"))

    def describe(self, state, pod, nodes):
        raise RuntimeError("boom")


class Terse(FilterPlugin):
    name = "Terse"

    def filter(self, state, pod, nodes):
        return NodeToStatus.everywhere(len(nodes), unschedulable("no"))

    def describe(self, state, pod, nodes):
        pass


class Needy(PreFilterPlugin):
    name = "Needy"

    def pre_filter(self, cycle, pod, snapshot):
        return PreFilterResult(status=unschedulable("no"))

    def describe_rejection(self, pod, snapshot):
        raise RuntimeError("boom")


class Deaf(FilterPlugin):
    name = "Deaf"

    def events_to_register(self):
        event = ClusterEvent(ASSIGNED_POD, Action.ADD)
        return [ClusterEventWithHint(event, self._hint)]

    def _hint(self, pod, old, new):
        raise RuntimeError("boom")

    def filter(self, state, pod, nodes):
        if not pod.priority:
            return NodeToStatus.passing(len(nodes))
        return NodeToStatus.everywhere(len(nodes), unschedulable("no"))


class Loose(PreBindPlugin):
    name = "Loose"

    def pre_bind_pre_flight(self, cycle, pod, node_name):
        return SUCCESS

    async def pre_bind(self, cycle, pod, node_name):
        raise RuntimeError("boom")


class Late(PostBindPlugin):
    name = "Late"

    def post_bind(self, cycle, pod, node_name):
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


_SCENARIO = """
version: 1
name: one pod
duration: 60s
nodes: [{name: alpha, allocatable: {cpu: 4, memory: 8Gi}}]
workloads: [{name: web, deployment: {replicas: 1}, requests: {cpu: 1, memory: 1Gi}}]
"""


@pytest.fixture(name="faulty")
def _faulty(tmp_path: Path) -> Path:
    file = tmp_path / "faulty.py"
    file.write_text(_PLUGINS)
    return file


def _line(text: str) -> int:
    return _PLUGINS.splitlines().index(text) + 1


_RAISE = '        raise RuntimeError("boom")'

_FAULTS = [
    pytest.param(
        "Gate", "raised in PreEnqueue", "RuntimeError: boom", "pre_enqueue", id="PreEnqueue"
    ),
    pytest.param(
        "Short",
        "answered wrongly in Score",
        "score must return an array of int64, one for each of 2 rows, not the shape (1,)",
        "score",
        id="scores of some rows",
    ),
    pytest.param(
        "Lax",
        "answered wrongly in Filter",
        "filter must return a NodeToStatus",
        "filter",
        id="no answer",
    ),
    pytest.param("Rude", "raised in Filter", "RuntimeError: boom", "filter", id="Filter"),
    pytest.param(
        "Greedy", "raised in Unreserve", "RuntimeError: boom", "unreserve", id="Unreserve"
    ),
    pytest.param("Shy", "raised in Sign", "RuntimeError: boom", "sign", id="Sign"),
    pytest.param("Deaf", "raised in QueueingHint", "RuntimeError: boom", "_hint", id="hint"),
]


@pytest.mark.parametrize(("name", "deed", "error", "method"), _FAULTS)
def test_a_plugin_that_raises_ends_a_simulation(
    name: str, deed: str, error: str, method: str, faulty: Path, tmp_path: Path
) -> None:
    """Plugin, extension point, pod, error and place are named; there is no report."""
    pods = [pod("b", priority=1), pod("a")] if name == "Deaf" else [pod("a")]
    cluster = write(tmp_path, [node("alpha"), node("beta"), *pods])
    result = run("simulate", cluster, "--plugin", f"{faulty}:{name}")
    assert (1, "") == (result.exit_code, result.stdout)
    first, place, *_ = result.stderr.splitlines()
    subject = "shop/b" if name == "Deaf" else "shop/a"
    expected = f"kubesched: error: plugin {name} {deed} for pod {subject}: {error}"
    assert first.startswith(expected)
    assert place.startswith(f"  {faulty}:")
    assert place.endswith(f", in {name}.{method}")
    assert "  File " not in result.stderr


def test_traceback_of_a_plugin(faulty: Path, tmp_path: Path) -> None:
    """It has only the plugin's lines; KUBESCHED_DEBUG=1 shows all of it."""
    cluster = write(tmp_path, [node("alpha"), pod("a")])
    result = run("simulate", cluster, "--plugin", f"{faulty}:Nested")
    calls = "        return self._helper(pod)"
    assert result.stderr.splitlines() == [
        "kubesched: error: plugin Nested raised in Filter for pod shop/a: RuntimeError: boom",
        f"  {faulty}:{_line(calls)}, in Nested.filter_node",
        f"    {calls.strip()}",
        f"  {faulty}:{_line(calls) + 3}, in Nested._helper",
        f"    {_RAISE.strip()}",
        "kubesched: KUBESCHED_DEBUG=1 shows the whole traceback",
    ]


@pytest.mark.parametrize("name", ["Gate", "Rude", "Vague"])
def test_explain_with_a_plugin_that_raises(name: str, faulty: Path, tmp_path: Path) -> None:
    """There is no explanation, also if only `describe` raises."""
    cluster = write(tmp_path, [node("alpha"), pod("a")])
    result = run("explain", "a", cluster, "--plugin", f"{faulty}:{name}")
    assert (1, "") == (result.exit_code, result.stdout)
    assert f"plugin {name} raised in " in result.stderr
    assert "for pod shop/a: RuntimeError: boom" in result.stderr


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Terse", "answered wrongly in Describe for pod shop/a: describe must return a text, not"),
        ("Needy", "raised in DescribeRejection for pod shop/a: RuntimeError: boom"),
    ],
)
def test_explain_with_a_plugin_that_describes_wrongly(
    name: str, error: str, faulty: Path, tmp_path: Path
) -> None:
    """It is the plugin's error, not one of the command."""
    cluster = write(tmp_path, [node("alpha"), pod("a")])
    result = run("explain", "a", cluster, "--plugin", f"{faulty}:{name}")
    assert (1, "") == (result.exit_code, result.stdout)
    assert f"plugin {name} {error}" in result.stderr


@pytest.mark.parametrize(
    ("name", "point"),
    [("Gate", "PreEnqueue"), ("Rude", "Filter"), ("Loose", "PreBind"), ("Late", "PostBind")],
)
@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_plugin_that_raises_ends_a_simulation_over_time(
    command: str, name: str, point: str, faulty: Path, tmp_path: Path
) -> None:
    """The simulation ends at once, wherever the plugin raises."""
    file = tmp_path / "scenario.yaml"
    file.write_text(_SCENARIO)
    files = [file] if command == "simulate" else [file, file]
    result = run(command, *files, "--plugin", f"{faulty}:{name}")
    assert (1, "") == (result.exit_code, result.stdout)
    expected = rf"plugin {name} raised in {point} for pod default/web-\S+: RuntimeError: boom"
    assert re.search(expected, result.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "cluster.json"),
        ("explain", "a", "cluster.json"),
        ("compare", "cluster.json", "other.json"),
        ("sweep", "--input", "cluster.json", "-o", "results.csv"),
    ],
    ids=lambda command: command[0],
)
def test_slow_plugins_are_named(
    command: tuple[str, ...], faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning comes once, however often a command runs the scheduler."""
    monkeypatch.setattr(plugin_answers, "_SLOW_SECONDS", 1e-12)
    for name in ("cluster.json", "other.json"):
        write(tmp_path, [node("n"), pod("a")], name)
    monkeypatch.chdir(tmp_path)
    result = run(*command, "--plugin", f"{faulty}:Fine")
    assert 0 == result.exit_code, result.output
    [line] = [line for line in result.stderr.splitlines() if "is slow: filter takes" in line]
    assert re.fullmatch(
        r"kubesched: warning: plugin Fine is slow: filter takes \S+s per call", line
    )


def test_errors_name_the_plugin(faulty: Path, tmp_path: Path) -> None:
    """An exception in a QueueSort plugin has no status, and is reported as the plugin's."""
    plugins = "{queueSort: {enabled: [{name: Sort}], disabled: [{name: '*'}]}}"
    configuration = config(tmp_path, f"profiles: [{{plugins: {plugins}}}]\n")
    cluster = write(tmp_path, [node("alpha"), pod("a"), pod("b")])
    result = run("simulate", cluster, "--plugin", f"{faulty}:Sort", "--config", configuration)
    assert (
        "error: plugin Sort raised in QueueSort for pod shop/a: RuntimeError: boom" in result.stderr
    )
    assert "in Sort.sort_key" in result.stderr
    assert "bug in kubesched" not in result.stderr
    assert result.exit_code == 1
