"""The CSINodes as columns of the node table.

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (getVolumeLimits),
          pkg/scheduler/framework/plugins/volumebinding/binder.go (v1.36)
Reads:    csinode.spec.drivers, csinode.metadata.annotations
Invariants: cached columns match the table's current rows and the objects' current version.
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.csi_translation import InTreePlugin, is_migrated_on
from kubesched.api.storage import CSINode
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.objects import Objects

NO_LIMIT: Final = 1 << 62
"""More than any limit."""


class CsiNodeColumns:
    """The CSINode of each row.

    Attributes:
        nodes: The CSINode per row; None if the node has none.
        exists: Bool per row: whether the node has a CSINode.
        cases: The values that occur in `exists`, True first.
        limits: Driver -> limit per row, for drivers that have a limit there.
        has_limits: Bool per row: whether a driver has a limit there.
        limited: Driver -> its least limit, for drivers that have a limit on some row.
    """

    def __init__(self, nodes: list[CSINode | None]) -> None:
        self.nodes = nodes
        self.exists = np.array([node is not None for node in nodes], np.bool_)
        self.cases = tuple(sorted({node is not None for node in nodes}, reverse=True))
        self.limits = [limits_of(node) for node in nodes]
        self.has_limits = np.array([bool(one) for one in self.limits], np.bool_)
        self.limited: dict[str, int] = {}
        for limits in self.limits:
            for driver, limit in limits.items():
                self.limited[driver] = min(limit, self.limited.get(driver, limit))
        self._limit_columns: dict[str, NDArray[np.int64]] = {}
        self._migrated: dict[str, NDArray[np.bool_] | None] = {}

    def limit(self, driver: str) -> NDArray[np.int64]:
        """Return, as int64 per row, the limit of a driver's volumes, or NO_LIMIT."""
        column = self._limit_columns.get(driver)
        if column is None:
            column = self._limit_columns[driver] = np.array(
                [limits.get(driver, NO_LIMIT) for limits in self.limits], np.int64
            )
        return column

    def has_driver(self, driver: str) -> NDArray[np.bool_]:
        """Return, as bool per row, whether the driver is installed."""
        installed = [node.spec.drivers if node is not None else () for node in self.nodes]
        return np.array([any(one.name == driver for one in each) for each in installed], np.bool_)

    def is_migrated(self, plugin: InTreePlugin) -> NDArray[np.bool_] | None:
        """Return, as bool per row, whether the node reports the plugin's volumes as migrated.

        None if no node does.
        """
        if plugin.name not in self._migrated:
            rows = np.array([is_migrated_on(plugin, node) for node in self.nodes], np.bool_)
            self._migrated[plugin.name] = rows if rows.any() else None
        return self._migrated[plugin.name]


class CsiNodes:
    """A cache of the columns of one table; they stay the same while no node comes or goes."""

    def __init__(self) -> None:
        self._made_for: tuple[object, ...] = ()
        self._columns = CsiNodeColumns([])

    def of(self, table: NodeColumns, objects: Objects) -> CsiNodeColumns:
        """Return the columns of all rows of the table."""
        made_for = (table.all_names, objects, objects.version(CSINode))
        if made_for != self._made_for:
            self._made_for = made_for
            self._columns = CsiNodeColumns([objects.get(CSINode, name) for name in table.names])
        return self._columns


def limits_of(node: CSINode | None) -> dict[str, int]:
    """Return driver -> limit, for drivers that have a limit on the node."""
    if node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
