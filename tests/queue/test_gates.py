from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.queue.gates import Gates
from kubesched.testing.builders import make_pod_info

from .scene import PROFILE, Answers


def closing(plugins: str) -> Answers:
    """Return answers with which these plugins reject the pod p."""
    answers = Answers()
    answers.closed |= {plugin: {"p"} for plugin in plugins.split()}
    return answers


def gates(answers: Answers) -> tuple[Gates, Counter[tuple[str, str]]]:
    """Return the gates of a scene, and their counts."""
    counts: Counter[tuple[str, str]] = Counter()
    return Gates(answers.rules(), counts), counts


@pytest.mark.parametrize(
    ("before", "closed", "after", "asked"),
    [
        pytest.param("", "", "", "Gates Preemption", id="open"),
        pytest.param("", "Gates", "Gates", "Gates", id="the-first-no-ends-it"),
        pytest.param("", "Preemption", "Preemption", "Gates Preemption", id="second"),
        pytest.param("Preemption", "Preemption", "Preemption", "Preemption", id="gating-first"),
        pytest.param("Preemption", "", "", "Preemption Gates", id="opens"),
        pytest.param("Preemption", "Gates", "Gates", "Preemption Gates", id="another-closes"),
        pytest.param("Gone", "", "", "Gates Preemption", id="plugin-is-no-more"),
    ],
)
def test_the_gating_plugin_runs_first(before: str, closed: str, after: str, asked: str) -> None:
    """Each plugin runs at most once, until one rejects the pod."""
    answers = closing(closed)
    queued = QueuedPodInfo(make_pod_info("p"), gating_plugin=before)
    gates(answers)[0].ask(queued)
    assert after == queued.gating_plugin
    assert [(plugin, "p") for plugin in asked.split()] == answers.gated
    assert {after} - {""} == queued.unschedulable_plugins


@pytest.mark.parametrize(
    ("gating", "closed", "expected", "asked"),
    [
        pytest.param("Preemption", "Gates Preemption", True, ["Preemption"], id="closed"),
        pytest.param("Preemption", "Gates", False, ["Preemption"], id="open"),
        pytest.param("Gone", "Gates", False, [], id="plugin-is-no-more"),
    ],
)
def test_a_gate_stays_closed(
    gating: str, closed: str, expected: bool, asked: Sequence[str]
) -> None:
    """Only the gating plugin runs, and nothing changes."""
    answers = closing(closed)
    queued = QueuedPodInfo(make_pod_info("p"), gating_plugin=gating)
    assert expected == bool(gates(answers)[0].still_gated([queued]))
    assert [(plugin, "p") for plugin in asked] == answers.gated
    assert gating == queued.gating_plugin
    assert not queued.unschedulable_plugins


def test_a_gating_plugin_is_a_rejecting_plugin() -> None:
    """The gauge counts it once."""
    answers = closing("Gates")
    all_gates, counts = gates(answers)
    queued = QueuedPodInfo(make_pod_info("p"), unschedulable_plugins=frozenset({"Fit"}))
    for _ in range(2):
        all_gates.ask(queued)
        assert {"Fit", "Gates"} == queued.unschedulable_plugins
        assert {("Gates", PROFILE): 1} == counts
    answers.closed["Gates"] = set()
    all_gates.ask(queued)
    assert not queued.is_gated
    assert {"Fit", "Gates"} == queued.unschedulable_plugins


def test_a_pending_plugin_is_not_counted_again() -> None:
    """The gauge keeps its counts."""
    all_gates, counts = gates(closing("Gates"))
    all_gates.ask(QueuedPodInfo(make_pod_info("p"), pending_plugins=frozenset({"Gates"})))
    assert not counts


def test_an_error_gates_the_pod() -> None:
    """An error has the effect of a rejection."""
    answers = Answers()
    answers.broken = {"Gates"}
    queued = QueuedPodInfo(make_pod_info("p"))
    gates(answers)[0].ask(queued)
    assert "Gates" == queued.gating_plugin


def test_a_pod_of_an_unknown_profile_is_not_gated() -> None:
    """No plugin runs."""
    queued = QueuedPodInfo(make_pod_info("p", spec={"schedulerName": "unknown"}), gating_plugin="X")
    gates(Answers())[0].ask(queued)
    assert not queued.is_gated
