"""The victims of preemption for a pod group, compared with a slow twin on plain numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.scheduling import PodGroup
from kubesched.cache.cache import Cache
from kubesched.framework.preemption.budgets import DisruptionBudgets
from kubesched.framework.preemption.group_victims import (
    NO_VICTIMS,
    by_importance,
    choose_group_victims,
    victim_units,
)
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod

from .cluster import make_budget

NODES: Final = ("n0", "n1", "n2")
FULL: Final = unschedulable("full")


def group(name: str, priority: int | None = 9, mode: str | None = None) -> PodGroup:
    """Return a pod group."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"priority": priority, "disruptionMode": mode},
        },
        PodGroup,
    )


def bound(name: str, node: str, priority: int = 0, member_of: str = "", start: int = 0) -> Pod:
    """Return a pod on a node."""
    spec = {"schedulingGroup": {"podGroupName": member_of}} if member_of else {}
    started = f"2026-01-{start:02}T00:00:00Z" if start else None
    return make_pod(
        name,
        node_name=node,
        priority=priority,
        spec=spec,
        start_time=started,
        labels={"app": name[0]},
    )


def budget(app: str, allowed: int) -> PodDisruptionBudget:
    """Return a budget for the pods of an app."""
    return make_budget(app, {"matchLabels": {"app": app}}, allowed=allowed)


class Rooms:
    """A what-if in which the group fits if enough nodes have few pods."""

    def __init__(self, cache: Cache, most: Sequence[int]) -> None:
        self.there = {info.uid: info for pods in cache.nodes.pods for info in pods.values()}
        self._most = most

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods."""
        for pod in pods:
            del self.there[pod.uid]

    def put_back(self, pods: Iterable[PodInfo]) -> None:
        """Return pods."""
        self.there.update({pod.uid: pod for pod in pods})

    async def schedule(self) -> Status:
        """Count."""
        counts = [sum(p.node_name == node for p in self.there.values()) for node in NODES]
        fits = all(count <= most for count, most in zip(counts, self._most, strict=True))
        return SUCCESS if fits else FULL


def _cache(items: Iterable[Pod | PodGroup | PodDisruptionBudget]) -> Cache:
    cache = Cache()
    for name in NODES:
        cache.add_node(make_node(name))
    for item in items:
        if isinstance(item, Pod):
            cache.add_pod(item)
        else:
            cache.put(item)
    return cache


def choose(
    items: Sequence[Pod | PodGroup | PodDisruptionBudget], most: Sequence[int]
) -> tuple[Status, list[str]]:
    """Return the result for a gang of priority 9."""
    cache = _cache(items)
    pods = [PodInfo(make_pod("p"))]
    question = choose_group_victims(group("gang"), pods, cache.snapshot(), Rooms(cache, most))
    result = asyncio.run(question)
    return result.status, [pod.name for pod in result.victims]


def test_pods_of_a_group_leave_together() -> None:
    """Only with disruption mode PodGroup; the group's priority counts, not that of its pods."""
    items = [group("g", 3, "PodGroup"), group("h", 3, "Pod")]
    pods = [bound("g1", "n0", 7, "g"), bound("g2", "n1", 8, "g"), bound("h1", "n0", 5, "h")]
    cache = _cache([*items, *pods, bound("s1", "n2", 4, "unknown")])
    units = victim_units(cache.nodes, cache.objects)
    expected = [(["g1", "g2"], 3), (["h1"], 5), (["s1"], 4)]
    assert expected == [([pod.name for pod in unit.pods], unit.priority) for unit in units]


def test_importance() -> None:
    """Priority, then membership in a group, then size, then age."""
    items = [group("g", 1, "PodGroup"), group("h", 1, "PodGroup"), group("i", 1, "PodGroup")]
    pods = [
        bound("young", "n0", 1, start=9),
        bound("old", "n0", 1, start=2),
        bound("never", "n0", 1),
        bound("alone", "n0", 1, "other", start=8),
        bound("g1", "n0", 1, "g", start=7),
        bound("g2", "n1", 1, "g", start=7),
        # When its first pod in the order of the nodes started, not the earliest.
        bound("h1", "n0", 1, "h", start=5),
        bound("h2", "n1", 1, "h", start=1),
        bound("i1", "n1", 1, "i", start=4),
        bound("i2", "n1", 1, "i", start=6),
        bound("top", "n2", 2),
    ]
    cache = _cache([*items, *pods])
    units = by_importance(victim_units(cache.nodes, cache.objects))
    expected = ["top", "i1", "h1", "g1", "alone", "old", "young", "never"]
    assert expected == [unit.pods[0].name for unit in units]


def test_no_less_important_pods() -> None:
    """Without pods of lower priority, the result is unresolvable."""
    status, victims = choose([bound("a1", "n0", 9)], (0, 0, 0))
    assert (NO_VICTIMS, []) == (status.message, victims)


def test_it_may_not_help() -> None:
    """If the group does not fit on the empty nodes, its rejection is the result."""
    assert (FULL, []) == choose([bound("a1", "n0", 9), bound("a2", "n0", 1)], (0, 9, 9))


def test_the_protected_stay_if_they_can() -> None:
    """Budgets take precedence over importance."""
    pods = [bound("a1", "n0", 1), bound("b1", "n0", 5)]
    assert ["a1"] == choose(pods, (1, 9, 9))[1]
    assert ["b1"] == choose([*pods, budget("a", 0)], (1, 9, 9))[1]


def test_the_rest_of_a_protected_unit_is_not_counted() -> None:
    """The other pods of the unit leave their disruptions to later units."""
    cache = _cache([budget("a", 1), budget("b", 1)])
    a1, a2, a3, b1, b2 = (PodInfo(bound(n, "n0")) for n in ("a1", "a2", "a3", "b1", "b2"))
    budgets = DisruptionBudgets(cache.objects)
    assert [True, True, False] == budgets.protects([[a1, a2, b1], [a3], [b2]])


UNITS = st.lists(
    st.tuples(
        st.sampled_from("aabgh"), st.sampled_from(NODES), st.integers(0, 3), st.integers(1, 9)
    ),
    max_size=7,
)


@given(UNITS, st.tuples(*(st.integers(0, 3) for _ in NODES)), st.integers(0, 2))
def test_slow_twin(
    pods: list[tuple[str, str, int, int]], most: tuple[int, ...], allowed: int
) -> None:
    """Removing all pods and returning them one by one, with plain dictionaries."""
    items: list[Pod | PodGroup | PodDisruptionBudget] = [
        group("g", 2, "PodGroup"),
        group("h", 1, "PodGroup"),
        budget("a", allowed),
    ]
    made = [
        bound(f"{kind}{number}", node, priority, kind if kind in "gh" else "", start)
        for number, (kind, node, priority, start) in enumerate(pods)
    ]
    status, victims = choose([*items, *made], most)
    assert _slow(made, most, allowed) == (status.is_success, sorted(victims))


def _slow(pods: list[Pod], most: tuple[int, ...], allowed: int) -> tuple[bool, list[str]]:
    ordered = [p for node in NODES for p in pods if p.spec.node_name == node]
    units: dict[str, list[Pod]] = {}
    for p in ordered:
        kind = p.metadata.name[0]
        units.setdefault(kind if kind in "gh" else p.metadata.name, []).append(p)

    def worth(name: str) -> tuple[int, int, int, str]:
        first = units[name][0]
        priority = {"g": 2, "h": 1}.get(name, first.spec.priority or 0)
        grouped = int(name in "gh")
        return -priority, -grouped, -len(units[name]) * grouped, first.status.start_time or ""

    def fits(away: set[str]) -> bool:
        left = [p for name, unit in units.items() if name not in away for p in unit]
        return all(
            sum(p.spec.node_name == node for p in left) <= room
            for node, room in zip(NODES, most, strict=True)
        )

    names = sorted(units, key=worth)
    away = set(names)
    if not names or not fits(away):
        return False, []
    apps = [name for name in names if name.startswith("a")]
    protected = apps[allowed:]
    for name in [*protected, *(name for name in names if name not in protected)]:
        if fits(away - {name}):
            away.discard(name)
    return True, sorted(p.metadata.name for name in away for p in units[name])
