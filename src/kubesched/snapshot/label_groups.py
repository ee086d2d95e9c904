"""Pods on nodes, grouped by the properties that selectors read and counted per group and row.

"How many pods that match this selector are on each node" is a sum over a few groups. The sum is
kept, and every added or removed pod updates it, so reading it again costs nothing. Groups and sums
are indexed by labels and terms, so that neither a new group nor a new sum has to visit all of the
others.

Reads:      pod.metadata.namespace, labels, deletionTimestamp; pod.spec.affinity
Invariants: a kept sum equals the same sum computed from scratch (`check()`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from kubesched.snapshot.affinity_terms import AffinityTerms, OwnedTerm, OwnedTerms, owned_terms_of
from kubesched.snapshot.pod_info import Labels, PodInfo, PodTemplate
from kubesched.snapshot.pod_sums import Marker, PodCounts, PodSum

_CELLS_MAX: Final = 1 << 24
"""How many numbers all sums may hold; the least recently used sum is dropped first."""

_SUMS_MIN: Final = 32
_SUMS_MAX: Final = 16_384
"""How many sums are kept at most: plugins forget questions, whose sums are not read again."""
_FORGOTTEN_AT_ONCE: Final = 8
"""How many sums are dropped for a new one: each visits all groups that may count in it."""

_NAMESPACES_FEW: Final = 16
"""Sums over more namespaces are filed as if they counted in all."""

K = TypeVar("K")
V = TypeVar("V")
X = TypeVar("X")

GroupKey = tuple[str, Labels, bool, AffinityTerms | None]
_Place = tuple[str | None, Marker | None]
"""A namespace, or None for all, and a marker there, or None for all pods."""


class LabelGroup:
    """Pods that no selector and no affinity term can distinguish.

    Attributes:
        namespace, labels: Those of all pods of the group.
        is_terminating: Whether the pods are being deleted.
        affinity: The pods' own inter-pod affinity terms, None if they have none.
        rows: Row -> number of these pods there.
        sums: The sums in which the pods count, each with its values and the weight of a pod.
    """

    __slots__ = (
        "affinity",
        "is_terminating",
        "key",
        "labels",
        "namespace",
        "rows",
        "sums",
        "templates",
    )

    def __init__(self, key: GroupKey, labels: dict[str, str]) -> None:
        self.key = key
        self.namespace, _, self.is_terminating, self.affinity = key
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.sums: dict[PodSum, tuple[PodCounts, int]] = {}
        self.templates: list[PodTemplate] = []


class LabelGroups:
    """The groups of a table's pods, and the sums over them.

    `owned_terms` has the affinity terms of the pods, counted once per group.
    """

    def __init__(self) -> None:
        self.owned_terms = OwnedTerms()
        self._groups: dict[GroupKey, LabelGroup] = {}
        self._namespaces: Counter[str] = Counter()
        self._by_row: list[dict[LabelGroup, None]] = []
        # Comparing templates is cheaper than comparing labels and terms.
        self._by_template: dict[tuple[PodTemplate, bool], LabelGroup] = {}
        # Only label keys that some question names are indexed.
        self._indexed_keys: set[str] = set()
        self._by_place: dict[_Place, dict[LabelGroup, None]] = {}
        self._sums: OrderedDict[PodSum, PodCounts] = OrderedDict()
        self._sums_by_place: dict[_Place, dict[PodSum, PodCounts]] = {}
        self._sums_next = _SUMS_MIN + 1
        self._cells_to_free = 0
        self._priorities: Counter[int] = Counter()

    @property
    def least_priority(self) -> int | None:
        """The lowest priority of a pod on a node; None if there are no pods."""
        return min(self._priorities, default=None)

    def __iter__(self) -> Iterator[LabelGroup]:
        return iter(self._groups.values())

    def count(self, question: PodSum) -> PodCounts:
        """Return, per row, the sum of `question.weigh(group)` over the pods there.

        Questions are compared by identity; `weigh` is called once per group.
        """
        counts = self._sums.get(question)
        if counts is None:
            return self._new_sum(question)
        self._sums.move_to_end(question)
        return counts

    def _new_sum(self, question: PodSum) -> PodCounts:
        counts = PodCounts(self._by_row)
        for group in self._candidates(question):
            _attach(question, counts, group)
        for place in _places_of_sum(question):
            self._sums_by_place.setdefault(place, {})[question] = counts
            counts.entries += 1
        self._sums[question] = counts
        self._forget_old_sums()
        return counts

    def _candidates(self, question: PodSum) -> Iterable[LabelGroup]:
        """Return the groups that may count in a sum, without duplicates."""
        namespaces = question.namespaces
        if namespaces is None and question.markers is None:
            return self._groups.values()
        self._index_keys(question.markers or ())
        # Labels are filed by namespace.
        places = _places(question, self._namespaces if namespaces is None else namespaces)
        return dict.fromkeys(group for place in places for group in self._by_place.get(place, ()))

    def _index_keys(self, markers: Iterable[Marker]) -> None:
        for marker in markers:
            if isinstance(marker, OwnedTerm):
                continue
            key, _ = marker
            if key not in self._indexed_keys:
                self._indexed_keys.add(key)
                for group in self._groups.values():
                    value = group.labels.get(key)
                    if value is not None:
                        place = (group.namespace, (key, value))
                        self._by_place.setdefault(place, {})[group] = None

    def _places_of(self, group: LabelGroup) -> Iterator[_Place]:
        yield group.namespace, None
        for item in group.labels.items():
            if item[0] in self._indexed_keys:
                yield group.namespace, item
        if group.affinity is not None:
            for term in owned_terms_of(group.affinity):
                yield None, term

    def _forget_old_sums(self) -> None:
        # Adding up sizes takes long, so it is done when the number of sums has grown by an eighth.
        if len(self._sums) >= self._sums_next:
            cells = sum([counts.cells for counts in self._sums.values()])
            self._cells_to_free = cells - _CELLS_MAX
            self._sums_next = max(_SUMS_MIN + 1, len(self._sums) * 9 // 8)
        for _ in range(_FORGOTTEN_AT_ONCE):
            size = len(self._sums)
            if size <= _SUMS_MIN or (self._cells_to_free <= 0 and size <= _SUMS_MAX):
                return
            question, counts = self._sums.popitem(last=False)
            self._cells_to_free -= counts.cells
            for group in self._candidates(question):
                group.sums.pop(question, None)
            for place in _places_of_sum(question):
                _discard(self._sums_by_place, place, question)

    # Changes; called only by the table that owns the groups.

    def append_row(self) -> None:
        """Add an empty row at the end."""
        self._by_row.append({})

    def swap_remove_row(self, row: int) -> None:
        """Remove an empty row; the last row takes its place."""
        last = len(self._by_row) - 1
        moved = self._by_row.pop()
        if row != last:
            self._by_row[row] = moved
            for group in moved:
                group.rows[row] = group.rows.pop(last)
                for counts, _ in group.sums.values():
                    counts.move(last, row)

    def add(self, info: PodInfo, row: int) -> None:
        """Count a pod on `row`."""
        group = self._group_of(info)
        self._priorities[info.priority] += 1
        group.rows[row] = group.rows.get(row, 0) + 1
        self._by_row[row][group] = None
        for counts, weight in group.sums.values():
            counts.add(row, weight)

    def remove(self, info: PodInfo, row: int) -> None:
        """Uncount a pod on `row`."""
        group = self._group_of(info)
        self._priorities[info.priority] -= 1
        if not self._priorities[info.priority]:
            del self._priorities[info.priority]
        group.rows[row] -= 1
        if not group.rows[row]:
            del group.rows[row], self._by_row[row][group]
        for counts, weight in group.sums.values():
            counts.add(row, -weight)
        if not group.rows:
            self._drop_group(group)

    def _group_of(self, info: PodInfo) -> LabelGroup:
        template = info.template
        terminating = info.is_terminating
        group = self._by_template.get((template, terminating))
        if group is None:
            key = (info.namespace, template.label_items, terminating, template.affinity)
            group = self._groups.get(key) or self._new_group(key, template.labels)
            group.templates.append(template)
            self._by_template[template, terminating] = group
        return group

    def _new_group(self, key: GroupKey, labels: dict[str, str]) -> LabelGroup:
        group = self._groups[key] = LabelGroup(key, labels)
        self._namespaces[group.namespace] += 1
        if group.affinity is not None:
            self.owned_terms.count(group.affinity, 1)
        places = list(self._places_of(group))
        for place in places:
            self._by_place.setdefault(place, {})[group] = None
        for place in (*places, *((None, marker) for _, marker in places)):
            for question, counts in self._sums_by_place.get(place, {}).items():
                if question not in group.sums:
                    _attach(question, counts, group)
        return group

    def _drop_group(self, group: LabelGroup) -> None:
        del self._groups[group.key]
        for template in group.templates:
            del self._by_template[template, group.is_terminating]
        self._namespaces[group.namespace] -= 1
        if not self._namespaces[group.namespace]:
            del self._namespaces[group.namespace]
        for place in self._places_of(group):
            _discard(self._by_place, place, group)
        for counts, _ in group.sums.values():
            counts.entries -= 1
        if group.affinity is not None:
            self.owned_terms.count(group.affinity, -1)

    def check(self) -> None:
        """Assert that every sum equals the one computed from scratch."""
        for question, counts in self._sums.items():
            expected = [0] * len(self._by_row)
            for group in self._groups.values():
                weight = _weight_in(question, group)
                for row, pods in group.rows.items():
                    expected[row] += weight * pods
            assert expected == counts.column().tolist(), f"{question} drifted"


def _attach(question: PodSum, counts: PodCounts, group: LabelGroup) -> None:
    """Add the pods of a group to a sum, and all of its pods that come later."""
    weight = _weight_in(question, group)
    if weight:
        group.sums[question] = (counts, weight)
        counts.entries += 1
        for row, pods in group.rows.items():
            counts.add(row, weight * pods)


def _weight_in(question: PodSum, group: LabelGroup) -> int:
    namespaces = question.namespaces
    counts = namespaces is None or group.namespace in namespaces
    return question.weigh(group) if counts else 0


def _places_of_sum(question: PodSum) -> Iterator[_Place]:
    """Iterate over the places where a sum is filed."""
    namespaces = question.namespaces
    if namespaces is None or len(namespaces) > _NAMESPACES_FEW:
        return _places(question, (None,))
    return _places(question, namespaces)


def _places(question: PodSum, namespaces: Iterable[str | None]) -> Iterator[_Place]:
    for marker in (None,) if question.markers is None else question.markers:
        # Terms are sought in all namespaces.
        for namespace in (None,) if isinstance(marker, OwnedTerm) else namespaces:
            yield namespace, marker


def _discard(index: dict[K, dict[V, X]], key: K, value: V) -> None:
    entries = index.get(key)
    if entries is not None:
        entries.pop(value, None)
        if not entries:
            del index[key]
