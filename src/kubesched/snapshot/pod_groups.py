"""Pods on nodes, grouped by what selectors can see of them and counted per group and row.

"How many pods that match this selector are on each node" is a sum over a few groups. The sum is
kept as a view and moved by each pod that comes or goes, so asking again costs nothing.

Reads:      pod.metadata.namespace, labels, deletionTimestamp; pod.spec.affinity
Invariants: a view equals the same sum taken from scratch (`check()`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.snapshot.affinity_terms import AffinityTerms
from kubesched.snapshot.pod_info import Labels, PodInfo, PodTemplate
from kubesched.snapshot.term_index import OwnedTerms

_VIEW_CELLS_MAX: Final = 1 << 24
"""Views times rows that are kept; the least recently asked view goes first."""

_VIEWS_MIN: Final = 32

GroupKey = tuple[str, Labels, bool, AffinityTerms | None]


class PodGroup:
    """Pods that no selector and no affinity term can tell apart.

    Attributes:
        namespace, labels: What selectors see.
        is_terminating: Whether the pods are being deleted.
        affinity: The pods' own inter-pod affinity terms, if any.
        rows: Row -> how many of the pods are there.
    """

    __slots__ = (
        "affinity",
        "is_terminating",
        "key",
        "labels",
        "namespace",
        "rows",
        "templates",
        "views",
    )

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.namespace, items, self.is_terminating, self.affinity = key
        self.labels = dict(items)
        self.rows: dict[int, int] = {}
        self.views: dict[int, tuple[_View, int]] = {}
        self.templates: list[PodTemplate] = []


class _View:
    __slots__ = ("column", "counts", "identity", "namespaces", "weigh")

    def __init__(
        self,
        identity: int,
        rows: int,
        weigh: Callable[[PodGroup], int],
        namespaces: frozenset[str] | None,
    ) -> None:
        self.identity = identity
        self.weigh = weigh
        self.namespaces = namespaces
        self.resize(np.zeros(rows, np.int64))

    def resize(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts
        self.column = counts.view()
        self.column.flags.writeable = False

    def weight_of(self, group: PodGroup) -> int:
        if self.namespaces is not None and group.namespace not in self.namespaces:
            return 0
        return self.weigh(group)


class PodGroups:
    """The groups of a table's pods and the sums asked of them.

    Attributes:
        owned_terms: The affinity terms of the pods, each once however many pods own it.
    """

    def __init__(self) -> None:
        self.owned_terms = OwnedTerms()
        self._groups: dict[GroupKey, PodGroup] = {}
        self._by_namespace: dict[str, dict[GroupKey, PodGroup]] = {}
        self._by_row: list[dict[PodGroup, int]] = []
        # Comparing templates is cheaper than comparing labels and terms.
        self._by_template: dict[tuple[PodTemplate, bool], PodGroup] = {}
        self._views: OrderedDict[Hashable, _View] = OrderedDict()
        self._view_number = 0
        self._affinity_keys: Counter[str] = Counter()
        self._anti_affinity_keys: Counter[str] = Counter()

    @property
    def affinity_topology_keys(self) -> Iterable[str]:
        """Topology keys of any affinity or anti-affinity term of a pod on a node."""
        return self._affinity_keys.keys()

    @property
    def required_anti_affinity_topology_keys(self) -> Iterable[str]:
        """Topology keys of the required anti-affinity terms of pods on nodes."""
        return self._anti_affinity_keys.keys()

    def __iter__(self) -> Iterator[PodGroup]:
        return iter(self._groups.values())

    def count(
        self,
        key: Hashable,
        weigh: Callable[[PodGroup], int],
        namespaces: frozenset[str] | None = None,
    ) -> NDArray[np.int64]:
        """Return, per row, the sum of `weigh(group)` over the pods there; read-only.

        Args:
            key: Identifies the question. Equal keys must mean equal `weigh` and `namespaces`.
            weigh: What one pod of a group counts; asked once per group.
            namespaces: Leave out groups of other namespaces; None looks at all.
        """
        view = self._views.get(key)
        if view is not None:
            self._views.move_to_end(key)
            return view.column
        view = self._views[key] = self._new_view(weigh, namespaces)
        self._forget_old_views()
        return view.column

    def _new_view(
        self, weigh: Callable[[PodGroup], int], namespaces: frozenset[str] | None
    ) -> _View:
        self._view_number += 1
        view = _View(self._view_number, len(self._by_row), weigh, namespaces)
        for group in self._groups_in(namespaces):
            self._attach(view, group)
        return view

    def _groups_in(self, namespaces: frozenset[str] | None) -> Iterable[PodGroup]:
        if namespaces is None:
            yield from self._groups.values()
            return
        for namespace in sorted(namespaces):
            yield from self._by_namespace.get(namespace, {}).values()

    def _attach(self, view: _View, group: PodGroup) -> None:
        weight = view.weight_of(group)
        if weight == 0:
            return
        group.views[view.identity] = (view, weight)
        for row, pods in group.rows.items():
            view.counts[row] += weight * pods

    def _forget_old_views(self) -> None:
        limit = max(_VIEWS_MIN, _VIEW_CELLS_MAX // max(1, len(self._by_row)))
        while len(self._views) > limit:
            _, view = self._views.popitem(last=False)
            for group in self._groups_in(view.namespaces):
                group.views.pop(view.identity, None)

    # Changes; only the table that owns the groups calls them.

    def append_row(self) -> None:
        """Add an empty row at the end."""
        self._by_row.append({})
        for view in self._views.values():
            view.resize(np.append(view.counts, 0))

    def swap_remove_row(self, row: int) -> None:
        """Remove an empty row; the last row takes its place."""
        last = len(self._by_row) - 1
        moved = self._by_row.pop()
        if row != last:
            self._by_row[row] = moved
            for group, pods in moved.items():
                del group.rows[last]
                group.rows[row] = pods
        for view in self._views.values():
            counts = view.counts
            counts[row] = counts[last]
            view.resize(counts[:last].copy())

    def add(self, info: PodInfo, row: int) -> None:
        """Count a pod that is on `row` now."""
        group = self._group_of(info)
        group.rows[row] = group.rows.get(row, 0) + 1
        here = self._by_row[row]
        here[group] = here.get(group, 0) + 1
        for view, weight in group.views.values():
            view.counts[row] += weight

    def remove(self, info: PodInfo, row: int) -> None:
        """Uncount a pod that leaves `row`."""
        group = self._group_of(info)
        here = self._by_row[row]
        pods = here[group] - 1
        if pods:
            group.rows[row] = here[group] = pods
        else:
            del group.rows[row], here[group]
        for view, weight in group.views.values():
            view.counts[row] -= weight
        if not group.rows:
            self._drop_group(group)

    def _group_of(self, info: PodInfo) -> PodGroup:
        template = info.template
        terminating = info.is_terminating
        group = self._by_template.get((template, terminating))
        if group is None:
            key = (info.namespace, template.label_items, terminating, template.affinity)
            group = self._groups.get(key) or self._new_group(key)
            group.templates.append(template)
            self._by_template[template, terminating] = group
        return group

    def _new_group(self, key: GroupKey) -> PodGroup:
        group = self._groups[key] = PodGroup(key)
        self._by_namespace.setdefault(group.namespace, {})[key] = group
        if group.affinity is not None:
            self._count_topology_keys(group.affinity, 1)
        for view in self._views.values():
            self._attach(view, group)
        return group

    def _drop_group(self, group: PodGroup) -> None:
        del self._groups[group.key]
        for template in group.templates:
            del self._by_template[template, group.is_terminating]
        siblings = self._by_namespace[group.namespace]
        del siblings[group.key]
        if not siblings:
            del self._by_namespace[group.namespace]
        if group.affinity is not None:
            self._count_topology_keys(group.affinity, -1)

    def _count_topology_keys(self, terms: AffinityTerms, sign: int) -> None:
        self.owned_terms.count(terms, sign)
        for term in terms.required_anti_affinity:
            _count(self._anti_affinity_keys, term.topology_key, sign)
        for term in terms.all_terms:
            _count(self._affinity_keys, term.topology_key, sign)

    def check(self) -> None:
        """Assert that every view equals the sum taken from scratch."""
        for key, view in self._views.items():
            expected = np.zeros(len(self._by_row), np.int64)
            for group in self._groups.values():
                for row, pods in group.rows.items():
                    expected[row] += view.weight_of(group) * pods
            assert np.array_equal(expected, view.counts), f"view {key!r} drifted"


def _count(counter: Counter[str], key: str, sign: int) -> None:
    counter[key] += sign
    if not counter[key]:
        del counter[key]
