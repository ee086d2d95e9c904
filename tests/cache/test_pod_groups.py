"""The states of pod groups, alone and in the cache."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubesched.api.core import Pod
from kubesched.cache.cache import Cache
from kubesched.cache.pod_groups import PodGroupStore
from kubesched.framework.pod_groups import PodGroupState, pod_group_name_of
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod

_names = st.sampled_from(["p", "q", "r", "s"])
_nodes = st.sampled_from(["a", "b"])


def _pod(name: str, node_name: str = "", group: str = "gang") -> Pod:
    # Two groups, and one pod that is in none.
    group = {"r": "other", "s": ""}.get(name, group)
    spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return make_pod(name, node_name=node_name, spec=spec)


def _info(name: str, node_name: str = "") -> PodInfo:
    return PodInfo(_pod(name, node_name))


def _states(state: PodGroupState | None) -> dict[str, list[str]]:
    if state is None:
        return {}
    pods = {
        "unscheduled": state.unscheduled_pods,
        "assumed": state.assumed_pods,
        "assigned": state.assigned_pods,
    }
    return {name: [pod.name for pod in found] for name, found in pods.items() if found}


class GroupHistory(RuleBasedStateMachine):
    """Compares groups with a dictionary of pods and states, after random operations."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache(has_pod_groups=True)
        self.groups = self.cache.pod_groups
        self.cache.add_node(make_node("a"))
        self.state: dict[str, str] = {}

    @rule(name=_names)
    def appear(self, name: str) -> None:
        """Observe a pod without a node."""
        if name not in self.state:
            self.groups.add(_info(name))
            self.state[name] = "unscheduled"

    @rule(name=_names, node=_nodes)
    def appear_bound(self, name: str, node: str) -> None:
        """Observe a pod with a node first."""
        if name not in self.state:
            self.cache.add_pod(_pod(name, node))
            self.state[name] = "assigned"

    @rule(name=_names, node=_nodes)
    def assume(self, name: str, node: str) -> None:
        """Assume a pod, perhaps on an unknown node."""
        if self.state.get(name) == "unscheduled":
            self.cache.assume_pod(_info(name), node)
            self.state[name] = "assumed"

    @rule(name=_names)
    def forget(self, name: str) -> None:
        """Forget an assumed pod."""
        if self.state.get(name) == "assumed":
            self.cache.forget_pod(_info(name))
            self.state[name] = "unscheduled"

    @rule(name=_names, node=_nodes)
    def confirm(self, name: str, node: str) -> None:
        """Observe an assumed pod on its node, or on another one."""
        if self.state.get(name) == "assumed":
            self.cache.add_pod(_pod(name, node))
            self.state[name] = "assigned"

    @rule(name=_names)
    def change(self, name: str) -> None:
        """Update a pod without changing its node."""
        if self.state.get(name) == "assigned":
            known = self.cache.get_pod(_info(name).uid)
            assert known is not None
            self.cache.update_pod(known.pod)
        elif name in self.state:
            self.groups.update(_info(name), _info(name))

    @rule(name=_names)
    def disappear(self, name: str) -> None:
        """Delete a pod; forget it afterwards if it was assumed."""
        state = self.state.pop(name, None)
        if state == "assigned":
            self.cache.remove_pod(_info(name).uid)
        elif state is not None:
            self.groups.delete(_info(name))
            self.cache.forget_pod(_info(name))

    @invariant()
    def agrees(self) -> None:
        """Counts and lists equal the dictionary's; groups without pods do not exist."""
        self.cache.check()
        for group in ("gang", "other"):
            members = {n: s for n, s in self.state.items() if pod_group_name_of(_pod(n)) == group}
            state = self.groups.get("default", group)
            expected = {
                kind: sorted(n for n, s in members.items() if s == kind)
                for kind in dict.fromkeys(members.values())
            }
            assert expected == {kind: sorted(names) for kind, names in _states(state).items()}
            scheduled = sum(kind != "unscheduled" for kind in members.values())
            assert (not members) == (state is None)
            if state is not None:
                assert (len(members), scheduled) == (
                    state.all_pods_count,
                    state.scheduled_pods_count,
                )


TestGroupHistory = GroupHistory.TestCase
TestGroupHistory.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_pods_are_listed_in_the_order_of_arrival() -> None:
    """A forgotten pod is listed after the pods that stayed unscheduled."""
    groups = PodGroupStore()
    for name in ("p", "q"):
        groups.add(_info(name))
    groups.assume(_info("p").on_node("a"))
    groups.forget(_info("p"))
    assert {"unscheduled": ["q", "p"]} == _states(groups.get("default", "gang"))


def test_an_assumed_pod_is_listed_with_its_node() -> None:
    """The observed pod does not have it yet."""
    groups = PodGroupStore()
    groups.add(_info("p"))
    groups.assume(_info("p").on_node("a"))
    state = groups.get("default", "gang")
    assert state is not None
    assert ["a"] == [pod.node_name for pod in state.assumed_pods]


def test_a_pod_bound_by_another_client_stays_unscheduled_until_updated() -> None:
    """As upstream, it is in two states until its next update."""
    cache = Cache(has_pod_groups=True)
    groups = cache.pod_groups
    groups.add(_info("p"))
    cache.add_pod(_pod("p", "a"))
    state = groups.get("default", "gang")
    assert {"unscheduled": ["p"], "assigned": ["p"]} == _states(state)
    cache.update_pod(_pod("p", "a"))
    assert {"assigned": ["p"]} == _states(groups.get("default", "gang"))


def test_an_update_with_a_node_makes_a_pod_assigned() -> None:
    """It leaves the other states."""
    groups = PodGroupStore()
    groups.add(_info("p"))
    groups.assume(_info("p").on_node("a"))
    groups.update(_info("p"), _info("p", "a"))
    assert {"assigned": ["p"]} == _states(groups.get("default", "gang"))
    groups.forget(_info("p"))
    assert {"assigned": ["p"]} == _states(groups.get("default", "gang"))


@pytest.mark.parametrize("change", ["assume", "forget", "update", "delete"])
def test_a_late_operation_creates_no_group(change: str) -> None:
    """The pod has been deleted meanwhile."""
    groups = PodGroupStore()
    match change:
        case "update":
            groups.update(_info("p"), _info("p"))
        case "assume":
            groups.assume(_info("p").on_node("a"))
        case "forget":
            groups.forget(_info("p"))
        case "delete":
            groups.delete(_info("p"))
    assert groups.get("default", "gang") is None


def test_equal_group_names_in_two_namespaces() -> None:
    """They name two groups."""
    groups = PodGroupStore()
    spec = {"schedulingGroup": {"podGroupName": "gang"}}
    for namespace in ("one", "two"):
        groups.add(PodInfo(make_pod("p", namespace=namespace, spec=spec)))
    found = [groups.get(namespace, "gang") for namespace in ("one", "two", "default")]
    assert [1, 1, None] == [state and state.all_pods_count for state in found]
