from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.snapshot.affinity_terms import AffinityTerms, owned_terms_of
from kubesched.snapshot.label_groups import LabelGroup, LabelGroups
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.pod_sums import PodSum
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


def groups_with(pods: list[tuple[PodInfo, int]], rows: int = 4) -> LabelGroups:
    """Groups of pods on rows."""
    groups = LabelGroups()
    for _ in range(rows):
        groups.append_row()
    for pod, row in pods:
        groups.add(pod, row)
    return groups


def weigh_web(group: LabelGroup) -> int:
    """Count pods with a label that are not terminating."""
    return int(group.labels.get("app") == "web" and not group.is_terminating)


def weigh_anti(group: LabelGroup) -> int:
    """Count pods with terms, with another weight."""
    return -7 if group.affinity is not None else 0


WEB = ("app", "web")
TERMS = frozenset(
    owned_terms_of(make_pod_info(pod_anti_affinity=ANTI).template.affinity or AffinityTerms())
)
MANY_NAMESPACES = frozenset({"other", *(f"team-{number}" for number in range(20))})
QUESTIONS = (
    PodSum(weigh_web),
    PodSum(weigh_web, frozenset({"default"})),
    PodSum(weigh_web, frozenset({"other", "nowhere"})),
    PodSum(weigh_anti),
    PodSum(weigh_web, markers=[WEB]),
    PodSum(weigh_web, frozenset({"other"}), [WEB, ("app", "absent")]),
    PodSum(weigh_anti, markers=TERMS),
    PodSum(weigh_web, MANY_NAMESPACES),
    PodSum(weigh_web, MANY_NAMESPACES, [WEB]),
    PodSum(weigh_web, markers=[]),
)


@pytest.mark.slow
@given(PODS, PODS, st.data())
def test_sums_equal_fresh_ones(
    before: list[tuple[int, int]], after: list[tuple[int, int]], data: st.DataObject
) -> None:
    """A view created at any time follows added and removed pods and removed rows."""
    pods = [(make_pod_info(f"a{at}", **KINDS[kind]), row) for at, (kind, row) in enumerate(before)]
    groups = groups_with(pods)
    asked_before = data.draw(st.sets(st.sampled_from(range(len(QUESTIONS)))))
    for number in asked_before:
        groups.count(QUESTIONS[number])
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

    fresh = groups_with(pods, rows=3)
    for question in QUESTIONS[:-1]:
        plain = PodSum(question.weigh, question.namespaces)
        expected = fresh.count(plain).column().tolist()
        assert expected == groups.count(question).column().tolist()
    assert not groups.count(QUESTIONS[-1]).column().any()
    assert {g.key: g.rows for g in fresh} == {g.key: g.rows for g in groups}


def test_groups_are_what_selectors_can_tell_apart() -> None:
    """Requests do not make a group; labels, namespace, deletion and terms do."""
    groups = groups_with([(make_pod_info(f"p{n}", **kind), 0) for n, kind in enumerate(KINDS)])
    assert len(KINDS) - 1 == len(list(groups))


def test_asking_again_asks_no_group() -> None:
    """The same question returns the same counts."""
    groups = groups_with([(make_pod_info(), 0)])
    asked: list[LabelGroup] = []

    def weigh(group: LabelGroup) -> int:
        asked.append(group)
        return 1

    question = PodSum(weigh)
    groups.count(question)
    groups.count(question)
    assert 1 == len(asked)


def test_a_question_looks_only_at_groups_with_a_marker() -> None:
    """The group and the question may come in any order."""
    asked: list[str] = []

    def weigh(group: LabelGroup) -> int:
        asked.append(group.labels["app"])
        return 1

    groups = groups_with([(make_pod_info("web", labels={"app": "web"}), 0)])
    groups.add(make_pod_info("db", labels={"app": "db"}), 1)
    assert [1, 0, 0, 0] == groups.count(PodSum(weigh, markers=[WEB])).column().tolist()
    groups.add(make_pod_info("cache", labels={"app": "cache"}), 2)
    groups.add(make_pod_info("front", labels={"app": "web", "tier": "front"}), 3)
    assert ["web", "web"] == asked


def _weigh_as(weight: int) -> Callable[[LabelGroup], int]:
    return lambda group: weight


@pytest.mark.slow
def test_more_sums_than_are_kept() -> None:
    """All counts are right, also of sums that were dropped."""
    rows = 1 << 19
    groups = LabelGroups()
    for _ in range(2):
        groups.append_row()
    groups._by_row.extend({} for _ in range(rows - 2))  # as many rows as make the limit small
    for row in range(rows // 256 + 1):
        groups.add(make_pod_info(f"p{row}"), row)
    questions = [PodSum(_weigh_as(weight)) for weight in range(1, 70)]
    for weight, question in enumerate(questions, 1):
        assert weight == groups.count(question).column()[1]
    assert len(groups._sums) < len(questions)
    groups.remove(make_pod_info("p1"), 1)
    assert 0 == groups.count(questions[0]).column()[1]


def test_small_sums_are_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is bounded, and a group knows only the sums that are kept."""
    monkeypatch.setattr("kubesched.snapshot.label_groups._SUMS_MAX", 40)
    groups = groups_with([(make_pod_info(), 0)])
    for weight in range(1, 200):
        assert weight == groups.count(PodSum(_weigh_as(weight))).column()[0]
    [group] = groups
    assert 40 == len(groups._sums) == len(group.sums)


def test_sums_over_many_groups_are_dropped_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups list the sums in which they count, which takes more memory than the sums."""
    monkeypatch.setattr("kubesched.snapshot.label_groups._CELLS_MAX", 100_000)
    groups = groups_with([(make_pod_info(labels={"a": str(at)}), 0) for at in range(100)])
    for weight in range(1, 200):
        groups.count(PodSum(_weigh_as(weight)))
    assert len(groups._sums) < 100


def test_counts_are_read_only() -> None:
    """Readers cannot change the view."""
    counts = groups_with([]).count(PodSum(lambda group: 1)).column()
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 1
    assert np.int64 == counts.dtype
