"""Registry: plugin classes by name; SchedulerSetup: what a scheduler is built from.

Upstream: pkg/scheduler/framework/runtime/registry.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import Configuration
from kubesched.framework.plugin import Plugin


class RegistryError(ValueError):
    """A plugin name is already registered."""


class Registry(Mapping[str, type[Plugin]]):
    """Maps plugin names to classes."""

    def __init__(self, *plugins: type[Plugin]) -> None:
        self._plugins: dict[str, type[Plugin]] = {}
        for plugin in plugins:
            self.register(plugin.name, plugin)

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)

    def register(self, name: str, plugin: type[Plugin]) -> None:
        """Add a plugin; raises RegistryError if the name is already registered."""
        if name in self._plugins:
            raise RegistryError(f"a plugin named {name} already exists")
        self._plugins[name] = plugin


class SchedulerSetup(NamedTuple):
    """What a scheduler is built from: its configuration, the plugins it may name, and the gates.

    `now` is a clock in seconds by which slow plugins are named; by default it stands still.
    """

    configuration: Configuration
    registry: Registry
    feature_gates: FeatureGates
    now: Callable[[], float] = float
