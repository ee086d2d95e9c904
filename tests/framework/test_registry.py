"""The registry: names to factories."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.registry import Registry, RegistryError
from kubesched.framework.status import NodeToStatus
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo


class First(FilterPlugin[None]):
    """Lets everything pass."""

    name: ClassVar = "First"

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Pass."""
        return NodeToStatus.passing(len(nodes))


class Second(First):
    """Another name for it."""

    name: ClassVar = "Second"


def test_register() -> None:
    """Plugins are found by name, in order of registration."""
    registry = Registry(Second, First)
    assert (["Second", "First"], 2) == (list(registry), len(registry))
    assert First is registry["First"]
    with pytest.raises(KeyError):
        registry["Third"]


def test_a_name_is_taken() -> None:
    """A second plugin of the same name is refused, and the first stays."""
    registry = Registry(First)
    with pytest.raises(RegistryError, match=r"^a plugin named First already exists$"):
        registry.register("First", Second)
    assert First is registry["First"]


def test_alias() -> None:
    """A plugin may have another name than its own."""
    registry = Registry()
    registry.register("Alias", Second)
    assert Second is registry["Alias"]
