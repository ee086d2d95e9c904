from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.pod_groups import PodGroup, PodGroups
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import PodFields, make_pod_info

ANTI = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    ],
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 5, "podAffinityTerm": {"topologyKey": "host", "labelSelector": {}}}
    ],
}
KINDS: tuple[PodFields, ...] = (
    {"labels": {"app": "web"}},
    {"labels": {"app": "web"}, "requests": {"cpu": 1}},
    {"labels": {"app": "db"}},
    {"labels": {"app": "web"}, "namespace": "other"},
    {"labels": {"app": "web"}, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    {"labels": {"app": "web"}, "pod_anti_affinity": ANTI},
)
PODS = st.lists(st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, 3)), max_size=20)


def groups_with(pods: list[tuple[PodInfo, int]], rows: int = 4) -> PodGroups:
    """Groups of pods on rows."""
    groups = PodGroups()
    for _ in range(rows):
        groups.append_row()
    for pod, row in pods:
        groups.add(pod, row)
    return groups


def weigh_web(group: PodGroup) -> int:
    """Count pods that stay and are labelled so."""
    return int(group.labels.get("app") == "web" and not group.is_terminating)


def weigh_anti(group: PodGroup) -> int:
    """Count pods with terms, by a weight of their own."""
    return -7 if group.affinity is not None else 0


QUESTIONS: tuple[tuple[Callable[[PodGroup], int], frozenset[str] | None], ...] = (
    (weigh_web, None),
    (weigh_web, frozenset({"default"})),
    (weigh_web, frozenset({"other", "nowhere"})),
    (weigh_anti, None),
)


@given(PODS, PODS, st.data())
def test_views_equal_fresh_sums(
    before: list[tuple[int, int]], after: list[tuple[int, int]], data: st.DataObject
) -> None:
    """A view asked for at any time follows the pods that come and go, and rows that go."""
    pods = [(make_pod_info(f"a{at}", **KINDS[kind]), row) for at, (kind, row) in enumerate(before)]
    groups = groups_with(pods)
    for key, (weigh, namespaces) in enumerate(QUESTIONS):
        groups.count(key, weigh, namespaces)
    for at, (kind, row) in enumerate(after):
        pods.append((make_pod_info(f"b{at}", **KINDS[kind]), row))
        groups.add(*pods[-1])
    for place in data.draw(st.lists(st.sampled_from(pods), unique_by=id)) if pods else []:
        groups.remove(*place)
        pods.remove(place)
    gone = data.draw(st.integers(0, 3))
    for pod, row in [pair for pair in pods if pair[1] == gone]:
        groups.remove(pod, row)
    groups.swap_remove_row(gone)
    pods = [(pod, gone if row == 3 else row) for pod, row in pods if row != gone]

    groups.check()
    fresh = groups_with(pods, rows=3)
    for key, (weigh, namespaces) in enumerate(QUESTIONS):
        expected = fresh.count(key, weigh, namespaces).tolist()
        assert expected == groups.count(key, weigh, namespaces).tolist()
    assert {g.key: g.rows for g in fresh} == {g.key: g.rows for g in groups}
    assert sorted(fresh.affinity_topology_keys) == sorted(groups.affinity_topology_keys)
    assert sorted(fresh.required_anti_affinity_topology_keys) == sorted(
        groups.required_anti_affinity_topology_keys
    )


def test_groups_are_what_selectors_can_tell_apart() -> None:
    """Requests do not make a group; labels, namespace, deletion and terms do."""
    groups = groups_with([(make_pod_info(f"p{n}", **kind), 0) for n, kind in enumerate(KINDS)])
    assert len(KINDS) - 1 == len(list(groups))


def test_topology_keys_of_terms_in_use() -> None:
    """Keys are listed while a pod with such a term is on a node."""
    pod = make_pod_info(pod_anti_affinity=ANTI)
    groups = groups_with([(pod, 0)])
    assert ["host", "zone"] == sorted(groups.affinity_topology_keys)
    assert ["zone"] == sorted(groups.required_anti_affinity_topology_keys)
    groups.remove(pod, 0)
    assert [] == sorted(groups.affinity_topology_keys)
    assert [] == sorted(groups.required_anti_affinity_topology_keys)


def test_asking_again_asks_no_group() -> None:
    """The second answer to a question is the kept one."""
    groups = groups_with([(make_pod_info(), 0)])
    asked: list[PodGroup] = []

    def weigh(group: PodGroup) -> int:
        asked.append(group)
        return 1

    groups.count("question", weigh)
    groups.count("question", weigh)
    assert 1 == len(asked)


def _weigh_as(weight: int) -> Callable[[PodGroup], int]:
    return lambda group: weight


def test_old_questions_are_forgotten_not_broken() -> None:
    """More questions than are kept: each is still answered right."""
    rows = 1 << 19
    groups = PodGroups()
    for _ in range(2):
        groups.append_row()
    groups._by_row.extend([{}] * (rows - 2))  # as many rows as make the limit small
    pod = make_pod_info()
    groups.add(pod, 1)
    for key in range(40):
        assert key == groups.count(key, _weigh_as(key))[1]
    assert len(groups._views) < 40
    assert 0 == groups.count(0, lambda group: 0)[1]


def test_counts_are_read_only() -> None:
    """Who asks cannot change the view."""
    counts = groups_with([]).count("question", lambda group: 1)
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 1
    assert np.int64 == counts.dtype
