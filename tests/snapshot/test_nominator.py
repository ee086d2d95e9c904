"""Nominated pods by node, compared with a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.snapshot.nominator import ChangedNominations, Nominator
from kubesched.testing.builders import make_node, make_pod, make_pod_info, make_snapshot

PODS = {name: make_pod_info(name) for name in ("p", "q", "r")}

_steps = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), st.sampled_from(["a", "b", "", None])), max_size=20
)


@given(_steps)
def test_nominations_equal_a_dictionary(steps: list[tuple[str, str | None]]) -> None:
    """A pod has its last nomination; a node's pods are in the order of nomination."""
    nominator, twin = Nominator(), dict[str, str]()
    for name, node in steps:
        twin.pop(name, None)
        if node is None:
            nominator.delete(PODS[name].uid)
        else:
            nominator.add(PODS[name], node)
            if node:
                twin[name] = node
        nominator.check()
        assert bool(twin) == bool(nominator)
        assert {name: twin.get(name, "") for name in PODS} == {
            name: nominator.node_of(info.uid) for name, info in PODS.items()
        }
        for node_name in ("a", "b", ""):
            expected = [other for other, at in twin.items() if at == node_name]
            assert expected == [info.name for info in nominator.on_node(node_name)]
        assert set(twin.values()) == set(nominator.by_node)


def test_nodes_are_in_the_order_of_their_first_nomination() -> None:
    """The order does not depend on hashes."""
    nominator = Nominator()
    for name, node in (("p", "b"), ("q", "a"), ("r", "b")):
        nominator.add(PODS[name], node)
    assert ["b", "a"] == list(nominator.by_node)


def test_a_repeated_nomination_keeps_the_newer_object() -> None:
    """The nominator returns it."""
    nominator = Nominator()
    nominator.add(PODS["p"], "a")
    newer = make_pod_info("p", priority=9)
    nominator.add(newer, "a")
    assert [newer] == list(nominator.on_node("a"))


def test_results_do_not_change_afterwards() -> None:
    """They can be iterated over while nominations are deleted."""
    nominator = Nominator()
    for info in PODS.values():
        nominator.add(info, "a")
    for info in nominator.on_node("a"):
        nominator.delete(info.uid)
    assert not nominator


def test_nodes_whose_nominations_changed() -> None:
    """Those that were made or deleted since the last call; None for another nominator."""
    nominator, changed = Nominator(), ChangedNominations()
    nominator.add(PODS["p"], "a")
    assert changed.read(nominator, "other") is None
    assert {""} == set(changed.read(nominator, "other") or ())
    nominator.add(PODS["p"], "b")
    nominator.add(PODS["q"], "c")
    assert {"a", "b", "c", ""} == set(changed.read(nominator, "other") or ())
    assert changed.read(Nominator(), "other") is None


def test_own_nominations_do_not_count() -> None:
    """So those of a node differ between the pod that is nominated there and other pods."""
    nominator, changed = Nominator(), ChangedNominations()
    nominator.add(PODS["p"], "a")
    assert changed.read(nominator, "other") is None
    assert ["", "a"] == changed.read(nominator, PODS["p"].uid)
    assert ["a", "a"] == changed.read(nominator, PODS["p"].uid)
    assert ["a", ""] == changed.read(nominator, "other")


@pytest.mark.parametrize("harm", ["pair", "node"])
def test_check_finds_contradictions(harm: str) -> None:
    """Each broken invariant raises."""
    nominator = Nominator()
    nominator.add(PODS["p"], "a")
    if harm == "pair":
        del nominator._node_of[PODS["p"].uid]
    else:
        nominator.by_node["b"] = ()
    with pytest.raises(AssertionError):
        nominator.check()


def test_nominated_pods_that_count() -> None:
    """Others of equal or higher priority on that node; not lower ones, and not the pod itself."""
    pods = [
        make_pod(name, nominated_node_name=node, priority=priority)
        for name, node, priority in (
            ("low", "a", 4),
            ("equal", "a", 5),
            ("high", "a", 6),
            ("pod", "a", 9),
            ("elsewhere", "b", 9),
        )
    ]
    snapshot = make_snapshot([make_node("a"), make_node("b")], pods)
    found = snapshot.nominated.ahead_of(make_pod_info("pod", priority=5), "a")
    assert ["equal", "high"] == [info.name for info in found]


def test_a_stripped_pod_keeps_its_name() -> None:
    """It counts for pods without priority alone, as a pod that requests nothing."""
    nominator = Nominator()
    nominator.add(make_pod_info("p", requests={"cpu": "1"}, priority=5), "a")
    nominator.strip_pod(PODS["p"].uid)
    nominator.strip_pod("unknown")
    nominator.check()
    assert [] == nominator.ahead_of(make_pod_info("other", priority=1), "a")
    (left,) = nominator.ahead_of(make_pod_info("other"), "a")
    assert ("default/p", "a") == (left.key, nominator.node_of(left.uid))
    assert not left.pod.spec.containers


# How a pod is nominated.


@pytest.mark.parametrize(
    ("in_status", "given", "expected"),
    [
        pytest.param("", None, "", id="nothing-said"),
        pytest.param("n1", None, "n1", id="by-status"),
        pytest.param("n1", "n2", "n2", id="override"),
        pytest.param("", "n2", "n2", id="ahead-of-status"),
        pytest.param("n1", "", "", id="clear"),
    ],
)
@pytest.mark.parametrize("before", ["", "n0"])
def test_a_nomination_replaces_the_previous_one(
    before: str, in_status: str, given: str | None, expected: str
) -> None:
    """Without a node the one in the pod's status is used."""
    nominator = Nominator()
    pod = make_pod_info("p", nominated_node_name=in_status)
    nominator.add(pod, before)
    nominator.add(pod, given)
    nominator.check()
    assert expected == nominator.node_of(pod.uid)
    assert [expected] * bool(expected) == list(nominator.by_node)


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        pytest.param(make_pod("p"), "n1", id="waits"),
        pytest.param(make_pod("p", node_name="n9"), "", id="has-a-node"),
        pytest.param(None, "", id="is-gone"),
    ],
)
def test_only_pending_pods_are_nominated(observed: Pod | None, expected: str) -> None:
    """A deleted or bound pod loses its nomination."""
    pods: dict[tuple[str, str], Pod | None] = {("default", "p"): make_pod("p")}
    nominator = Nominator(lambda namespace, name: pods[namespace, name])
    pod = make_pod_info("p")
    nominator.add(pod, "n0")
    assert "n0" == nominator.node_of(pod.uid)
    pods["default", "p"] = observed
    nominator.add(pod, "n1")
    assert expected == nominator.node_of(pod.uid)
    nominator.check()


@pytest.mark.parametrize(
    ("memory", "before", "after", "expected"),
    [
        pytest.param("", "", "", "", id="nothing"),
        pytest.param("n1", "", "", "n1", id="patch-on-its-way"),
        pytest.param("", "", "n1", "n1", id="added"),
        pytest.param("n1", "", "n2", "n2", id="added-wins"),
        pytest.param("n1", "n1", "n2", "n2", id="changed"),
        pytest.param("n1", "n1", "n1", "n1", id="kept"),
        pytest.param("n2", "n1", "n1", "n1", id="status-wins"),
        pytest.param("n1", "n1", "", "", id="removed"),
    ],
)
def test_a_nomination_in_memory_survives_updates_without_a_node(
    memory: str, before: str, after: str, expected: str
) -> None:
    """Otherwise the node in the new status counts."""
    nominator = Nominator()
    old = make_pod_info("p", nominated_node_name=before)
    new = make_pod_info("p", nominated_node_name=after)
    nominator.add(old, memory)
    nominator.update(old, new)
    nominator.check()
    assert expected == nominator.node_of(new.uid)
    if expected:
        assert [new] == list(nominator.on_node(expected))


def test_a_pod_of_the_same_name_inherits_the_nomination() -> None:
    """It replaces the pod that had it."""
    nominator = Nominator()
    old, new = make_pod_info("p", uid="1"), make_pod_info("p", uid="2")
    nominator.add(old, "n1")
    nominator.update(old, new)
    assert ("", "n1") == (nominator.node_of("1"), nominator.node_of("2"))


def test_update_moves_to_the_end() -> None:
    """The pods of a node are in the order of their last nomination."""
    nominator = Nominator()
    first, second = make_pod_info("first"), make_pod_info("second")
    nominator.add(first, "n")
    nominator.add(second, "n")
    nominator.update(first, first)
    assert [second, first] == list(nominator.on_node("n"))
