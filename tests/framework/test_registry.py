"""The registry: names to factories."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kubesched.framework.plugin import FilterPlugin, Plugin
from kubesched.framework.registry import PluginFactory, Registry, RegistryError
from kubesched.framework.status import NodeToStatus
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.handle import FakeHandle


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
    """Factories are found by name, in order of registration."""
    registry = Registry(Second, First)
    assert (["Second", "First"], 2) == (list(registry), len(registry))
    assert First is registry["First"].plugin
    with pytest.raises(KeyError):
        registry["Third"]


def test_a_name_is_taken() -> None:
    """A second plugin of the same name is refused, and the first stays."""
    registry = Registry(First)
    factory = registry["First"]
    with pytest.raises(RegistryError, match=r"^a plugin named First already exists$"):
        registry.register("First", PluginFactory(Second))
    assert factory is registry["First"]


def test_merge() -> None:
    """The other registry's plugins follow; their names must be new."""
    registry = Registry(First)
    registry.merge(Registry(Second))
    assert ["First", "Second"] == list(registry)
    with pytest.raises(RegistryError, match=r"^a plugin named Second already exists$"):
        registry.merge(Registry(Second))


def test_factories() -> None:
    """A class builds itself; a function may build it, under any name."""
    handle = FakeHandle()
    plugin = PluginFactory(First)("args", handle)
    assert isinstance(plugin, First)
    assert handle is plugin.handle
    other: Plugin = Second(None, handle)
    registry = Registry()
    registry.register("Alias", PluginFactory(Second, lambda args, handle: other))
    assert other is registry["Alias"](None, handle)
