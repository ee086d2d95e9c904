# ruff: noqa: N806 - S and T are states, as in docs/model.md
"""Bound and unbound pods, and equal states."""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod, Service
from kubesched.testing.builders import make_node, make_pod

from .state import Bound, BoundTo, Objects, On, Same, Unbound, priority

A, B = make_node("a"), make_node("b")
ON_A, ON_GONE, WAITING = (
    make_pod("on-a", node_name="a"),
    make_pod("on-gone", node_name="gone"),
    make_pod("waiting"),
)
S = Objects.of([A, B, ON_A, ON_GONE, WAITING])


@pytest.mark.parametrize(
    ("p", "bound_to"),
    [
        pytest.param(ON_A, ["a"], id="on a node"),
        pytest.param(ON_GONE, [], id="on a node that is not there"),
        pytest.param(WAITING, [], id="without a node"),
        pytest.param(make_pod("absent", node_name="a"), [], id="not in the set"),
    ],
)
def test_bound(p: Pod, bound_to: list[str]) -> None:
    """A pod is bound to the node it names, if both exist."""
    assert bound_to == [name for name, n in S.nodes.items() if BoundTo(p, n, S)]
    assert bool(bound_to) == Bound(p, S)


def test_unbound() -> None:
    """A pod that is not bound is unbound, also if its node is deleted."""
    assert [ON_GONE, WAITING] == Unbound(S)
    assert [ON_A] == On(A, S)
    assert [] == On(B, S)


def test_a_step_makes_a_new_set() -> None:
    """Binding and evicting do not change the old one."""
    T = S.bind(WAITING, B)
    assert [WAITING.metadata.name] == [p.metadata.name for p in On(B, T)]
    assert [] == On(B, S)
    assert [ON_GONE, WAITING] == list((S - [ON_A]).Pods)
    assert Same(S, (S - [ON_A]).put(ON_A))


def test_only_nodes_and_pods_are_in_the_set() -> None:
    """Other objects are left out."""
    T = Objects.of([A, Service(), ON_A])
    assert [A, ON_A] == list(T)
    assert A in T
    assert B not in T


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        pytest.param(make_pod("waiting", nominated_node_name="a"), True, id="nominated to a node"),
        pytest.param(make_pod("waiting", status={"phase": "Pending"}), True, id="status"),
        pytest.param(make_pod("waiting", metadata={"resourceVersion": "7"}), True, id="version"),
        pytest.param(make_pod("waiting", node_name="a"), False, id="bound"),
        pytest.param(make_pod("waiting", priority=1), False, id="priority"),
        pytest.param(make_pod("waiting", labels={"app": "web"}), False, id="labels"),
    ],
)
def test_same(p: Pod, expected: bool) -> None:
    """The status, and metadata that writes change, do not matter."""
    assert expected == Same(S, S.put(p))


def test_different_states() -> None:
    """Another node, another label of a node, another pod."""
    assert not Same(S, S.put(make_node("c")))
    assert not Same(S, S.put(make_node("a", labels={"zone": "z"})))
    assert not Same(S, S - [WAITING])


def test_the_default_priority_is_zero() -> None:
    """A pod without a priority has it."""
    assert [0, 0, -7] == [priority(make_pod(priority=given)) for given in (None, 0, -7)]
