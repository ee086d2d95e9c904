from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.snapshot.nominator import Nominator
from kubesched.testing.builders import make_pod, make_pod_info


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
    """Of the pod that it replaces."""
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
