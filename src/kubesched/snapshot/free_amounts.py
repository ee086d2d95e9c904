"""FreeAmounts knows the least that any row of a table has free: pods that need less fit everywhere.

Reads:    nodes.{allocatable,requested,allowed_pods,pod_counts}
Invariants: the known amounts are at most the least free ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubesched.snapshot.changed_rows import ChangedRows
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_table import PLAIN_MAX, NodeTable, SelectedRows


class FreeAmounts:
    """The least free amounts of one table at a time. Pods make them smaller."""

    _CHANGED_MAX: Final = 16

    def __init__(self) -> None:
        self._changed = ChangedRows()
        self._least: dict[str, int] = {}
        # 0 means that nothing is known.
        self._least_slots = 0

    def suffice(self, requests: Mapping[str, int], nodes: NodeTable) -> bool:
        """Whether every row of a table or of a selection has a pod slot and these amounts free.

        False if that is not known. Amounts that do not suffice are forgotten: in a full cluster,
        few pods fit everywhere.
        """
        if not self._least_slots:
            return False
        table = nodes.origin[0] if isinstance(nodes, SelectedRows) and nodes.origin else nodes
        if not isinstance(table, NodeColumns):
            return False
        self._update(table)
        least = self._least
        if not least.keys() >= requests.keys():
            return False
        if not all([least[name] >= amount for name, amount in requests.items()]):  # noqa: C419
            self._least_slots = 0
        return self._least_slots > 0

    def _update(self, table: NodeColumns) -> None:
        changed = self._changed.read(table)
        if changed is None or len(changed) > self._CHANGED_MAX or not table.is_plain:
            self._least_slots = 0
            return
        for row in changed:
            slots = table.allowed_pods.item(row) - table.pod_counts.item(row)
            self._least_slots = max(0, min(self._least_slots, slots))
            for name, amount in self._least.items():
                offered, used = table.amounts_on(row, name)
                if offered - used < amount:
                    self._least[name] = offered - used

    def measure(self, names: Iterable[str], nodes: NodeTable) -> None:
        """Read all rows of a table; it pays after all rows were found to have enough."""
        if isinstance(nodes, NodeColumns) and nodes.is_plain:
            names = tuple(dict.fromkeys((*names, *self._least)))
            self._changed.read(nodes)
            free, _ = nodes.free_for(names)
            least_slots, *least = free.min(axis=1, initial=PLAIN_MAX).tolist()
            self._least_slots = max(0, least_slots)
            self._least = dict(zip(names, least, strict=True))
