"""Verdicts are computed once and again when something that they depend on changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.cache.cache import Cache
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Plugin
from kubesched.framework.preemption import verdict_memory
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.report import Candidate
from kubesched.framework.preemption.verdict_memory import VerdictMemory
from kubesched.framework.preemption.victims import Question, Verdict, select_victims_on_node
from kubesched.framework.status import SUCCESS, NodeToStatus
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod, make_snapshot

from .cluster import (
    CpuFit,
    Fragile,
    Ports,
    ScopedHandle,
    ZoneCrowd,
    make_budget,
    question_of,
    rivals_in,
)


class _Handle(ScopedHandle):
    """Counts the rows that were filtered.

    Attributes:
        filtered: The names of the rows.
    """

    def __init__(self, plugins: Sequence[type[Plugin]]) -> None:
        super().__init__(plugins)
        self.filtered: list[str] = []

    def filter_rows(
        self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, *, counts: bool = True
    ) -> NodeToStatus:
        """Count the rows and filter them."""
        self.filtered += nodes.names
        return super().filter_rows(cycle, pod, nodes, counts=counts)


class _Cluster:
    """Three nodes with two pods each, one of which must go for a preemptor."""

    def __init__(self, plugins: Sequence[type[Plugin]] = (CpuFit, Ports)) -> None:
        self.cache, self.handle, self.memory = Cache(), _Handle(plugins), VerdictMemory()
        self.nominator = Nominator()
        for name in ("n0", "n1", "n2"):
            self.cache.add_node(make_node(name, allocatable={"cpu": 4}))
            for number in range(2):
                self.cache.add_pod(self.pod(f"{name}-{number}", name))

    @staticmethod
    def pod(name: str, node: str, **more: object) -> Pod:
        """Return a pod that can be evicted."""
        fields = {"node_name": node, "requests": {"cpu": 2}, "labels": {"app": name}, **more}
        return make_pod(name, **fields)  # type: ignore[arg-type]  # the keywords are TypedDict's

    def question(
        self, *, priority: int = 5, name: str = "new", host_ports: Sequence[int] = ()
    ) -> Question:
        """Return the question who must go for a preemptor."""
        fields = make_pod(name, priority=priority, requests={"cpu": 2}, host_ports=host_ports)
        pod = PodInfo(fields)
        snapshot = self.cache.snapshot(self.nominator)
        cycle = CycleState()
        assert SUCCESS == self.handle.pre_filter(cycle, pod, snapshot)
        budgets = DisruptionBudgets(snapshot.objects)
        return Question(self.handle, cycle, pod, snapshot, budgets)

    def judge(
        self, *, priority: int = 5, name: str = "new", host_ports: Sequence[int] = ()
    ) -> dict[str, list[str]]:
        """Return the victims per node, after comparing them with fresh ones."""
        question = self.question(priority=priority, name=name, host_ports=host_ports)
        snapshot = question.snapshot
        expected = [select_victims_on_node(question, row) for row in range(len(snapshot.nodes))]
        self.handle.filtered.clear()
        verdicts = self.memory.about(question)
        rows = np.arange(len(snapshot.nodes))
        verdicts.judge(question, verdicts.unknown(snapshot.nodes, rows))
        found = verdicts.found.tolist()
        assert expected == found
        return dict(zip(snapshot.nodes.names, map(_victims, found), strict=True))


def _victims(verdict: Verdict) -> list[str]:
    return [pod.name for pod in verdict.victims] if isinstance(verdict, Candidate) else []


def _starts(cluster: _Cluster) -> None:
    pod = cluster.pod("n1-0", "n1")
    status = msgspec.structs.replace(pod.status, start_time="2026-01-01T00:00:00Z")
    cluster.cache.update_pod(msgspec.structs.replace(pod, status=status))


def _leaves(cluster: _Cluster) -> None:
    cluster.cache.remove_pod(next(iter(cluster.cache.nodes.pods[1])))


def _is_replaced(cluster: _Cluster) -> None:
    _leaves(cluster)
    cluster.cache.add_pod(cluster.pod("other", "n1"))


def _is_protected(cluster: _Cluster) -> None:
    cluster.cache.put(make_budget("budget", {"matchLabels": {"app": "n0-1"}}))


def _has_new_filters(cluster: _Cluster) -> None:
    cluster.handle.versions = (1,)


def _is_nominated_to(cluster: _Cluster, name: str = "rival") -> None:
    pod = make_pod(name, priority=5, requests={"cpu": 1})
    cluster.nominator.add(PodInfo(pod), "n1")


def _node_changes(cluster: _Cluster) -> None:
    cluster.cache.add_node(make_node("n1", allocatable={"cpu": 6}))


@pytest.mark.parametrize(
    ("change", "again"),
    [
        pytest.param(lambda _: None, set(), id="nothing"),
        pytest.param(_starts, {"n1"}, id="a pod starts"),
        pytest.param(_leaves, {"n1"}, id="a pod leaves"),
        pytest.param(_is_replaced, {"n1"}, id="a pod is replaced"),
        pytest.param(_is_protected, {"n0", "n1", "n2"}, id="a budget comes"),
        pytest.param(_is_nominated_to, {"n1"}, id="a pod is nominated"),
        pytest.param(_has_new_filters, {"n0", "n1", "n2"}, id="filters change"),
        pytest.param(_node_changes, {"n0", "n1", "n2"}, id="a node changes"),
    ],
)
@pytest.mark.parametrize(
    "plugins", [pytest.param([CpuFit], id="sums"), pytest.param([CpuFit, Ports], id="pods")]
)
def test_only_what_changed_is_judged_again(
    plugins: Sequence[type[Plugin]], change: Callable[[_Cluster], None], again: set[str]
) -> None:
    """Verdicts equal fresh ones, and the rows that did not change are not filtered."""
    cluster = _Cluster(plugins)
    cluster.judge()
    change(cluster)
    cluster.judge()
    filtered = set(cluster.handle.filtered)
    # Rows with equal sums share what was found.
    assert again == filtered or (Ports not in plugins and filtered < again)


class _IgnoringPorts(Ports):
    """Ignores pods without host ports."""

    def ignores(self, state: None, pod: PodInfo, other: PodInfo) -> bool:
        """Return whether the other pod has none."""
        return not other.template.host_ports


def test_a_pod_that_stays_may_take_the_port() -> None:
    """It has a higher priority, so that the filter rejects the node whoever else leaves."""
    cluster = _Cluster([_IgnoringPorts, CpuFit])
    assert ["n1-0"] == cluster.judge(host_ports=[80])["n1"]
    cluster.cache.add_pod(cluster.pod("first", "n1", priority=9, host_ports=[80], requests={}))
    assert [] == cluster.judge(host_ports=[80])["n1"]


def test_a_budget_with_another_status_concerns_the_nodes_of_its_pods() -> None:
    """An eviction uses up a budget, which may change the victims on the other nodes of its pods."""
    cluster = _Cluster()
    selector = {"matchLabels": {"app": "n0-0"}}
    cluster.cache.put(make_budget("budget", selector, allowed=1))
    cluster.cache.put(make_budget("other", {"matchLabels": {"app": "n2-0"}}, allowed=1))
    assert ["n0-0"] == cluster.judge()["n0"]
    cluster.cache.put(make_budget("budget", selector, allowed=0))
    assert ["n0-1"] == cluster.judge()["n0"]
    assert {"n0"} == set(cluster.handle.filtered)


def test_a_contested_node_is_judged_again_when_its_pods_change() -> None:
    """The pods nominated to a node are part of what its verdict depends on."""
    cluster = _Cluster()
    _is_nominated_to(cluster)
    cluster.judge()
    cluster.judge()
    assert [] == cluster.handle.filtered
    _is_nominated_to(cluster, "second")
    cluster.judge()
    assert {"n1"} == set(cluster.handle.filtered)
    _leaves(cluster)
    cluster.judge()
    assert {"n1"} == set(cluster.handle.filtered)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(["", "n0", "n1", "gone"]), st.sampled_from("ab")
        )
    )
)
def test_own_nominations_do_not_count(history: list[tuple[str, str, str]]) -> None:
    """Pods of one template are nominated, and share verdicts, but not with their own nomination."""
    cluster = _Cluster()
    for name, node, asking in history:
        cluster.nominator.add(PodInfo(make_pod(name, priority=5, requests={"cpu": 2})), node)
        cluster.judge(name=asking)


def test_templates_have_their_own_verdicts() -> None:
    """A preemptor of another priority is not mistaken for the first."""
    cluster = _Cluster()
    assert ["n0-0"] == cluster.judge(priority=5)["n0"]
    assert [] == cluster.judge(priority=0)["n0"]
    assert ["n0-0"] == cluster.judge(priority=5)["n0"]
    assert [] == cluster.handle.filtered


def test_without_a_stamp_nothing_is_kept() -> None:
    """Filters that read more than the row run every time."""
    cluster = _Cluster()
    cluster.handle.plugins.append(ZoneCrowd(None, cluster.handle))
    cluster.judge()
    cluster.judge()
    assert {"n0", "n1", "n2"} == set(cluster.handle.filtered)


def test_failures_are_not_kept() -> None:
    """A node whose filter contradicts itself is filtered again."""
    cluster = _Cluster()
    _leaves(cluster)
    cluster.judge()
    cluster.judge()
    assert {"n1"} == set(cluster.handle.filtered)


def test_an_exception_that_is_kept_does_not_keep_the_table_from_changing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its traceback refers to what the frames refer to."""
    cluster = _Cluster()
    question = cluster.question()
    verdicts = cluster.memory.about(question)
    monkeypatch.setattr(verdict_memory, "select_victims_on_node", _broken)
    monkeypatch.setattr(verdict_memory, "select_victims_by_sums", _broken)
    with pytest.raises(RuntimeError) as kept:
        verdicts.judge(question, np.arange(3))
    cluster.cache.remove_node("n0")
    cluster.cache.add_node(make_node("n3"))
    assert kept.value.__traceback__


def _broken(*_: object) -> Sequence[Verdict]:
    raise RuntimeError("a plugin is broken")


def test_states_that_pods_change_are_judged_one_by_one() -> None:
    """With such a state the memory is not used."""
    cluster = _Cluster()
    cluster.handle.plugins.append(Fragile(None, cluster.handle))
    cluster.judge()
    cluster.judge()
    assert {"n0", "n1", "n2"} == set(cluster.handle.filtered)


def test_the_number_of_verdicts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The template that was not used for the longest time is dropped."""
    monkeypatch.setattr(verdict_memory, "_ROWS_MAX", 6)
    cluster = _Cluster()
    for priority in (5, 6, 5, 7, 5):
        cluster.judge(priority=priority)
    assert [] == cluster.handle.filtered
    cluster.judge(priority=6)
    assert {"n0", "n1", "n2"} == set(cluster.handle.filtered)


@pytest.mark.parametrize(
    ("priority", "name", "expected"),
    [
        pytest.param(5, "other", True, id="equal-priority"),
        pytest.param(6, "other", True, id="higher-priority"),
        pytest.param(4, "other", False, id="lower-priority"),
        pytest.param(9, "new", False, id="the-pod-itself"),
    ],
)
def test_rivals(priority: int, name: str, expected: bool) -> None:
    """Nominated pods of equal or higher priority are rivals."""
    rival = make_pod(name, priority=priority, nominated_node_name="n1")
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [rival])
    question = question_of(make_pod("new", priority=5), snapshot)
    rivals = rivals_in(question)
    assert ({0: [name]} if expected else {}) == {
        row: [other.name for other in others] for row, others in rivals.items()
    }
