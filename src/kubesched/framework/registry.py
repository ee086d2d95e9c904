"""Registry: plugin factories by name; SchedulerSetup: what a scheduler is built from.

Upstream: pkg/scheduler/framework/runtime/registry.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import Configuration
from kubesched.framework.handle import Handle
from kubesched.framework.plugin import Plugin


class RegistryError(ValueError):
    """A plugin name is already registered, or unknown."""


class PluginFactory:
    """Builds plugins of one class, by default by calling it.

    The class shows the extension points before a plugin is built.
    """

    __slots__ = ("_build", "plugin")

    def __init__(
        self,
        plugin: type[Plugin],
        build: Callable[[object, Handle], Plugin] | None = None,
    ) -> None:
        self.plugin = plugin
        self._build = build or plugin

    def __call__(self, args: object, handle: Handle) -> Plugin:
        """Build the plugin with decoded arguments."""
        return self._build(args, handle)


class Registry(Mapping[str, PluginFactory]):
    """Maps plugin names to factories."""

    def __init__(self, *plugins: type[Plugin]) -> None:
        self._factories: dict[str, PluginFactory] = {}
        for plugin in plugins:
            self.register(plugin.name, PluginFactory(plugin))

    def __getitem__(self, name: str) -> PluginFactory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def register(self, name: str, factory: PluginFactory) -> None:
        """Add a factory; raises RegistryError if the name is already registered."""
        if name in self._factories:
            raise RegistryError(f"a plugin named {name} already exists")
        self._factories[name] = factory

    def merge(self, other: Mapping[str, PluginFactory]) -> None:
        """Add all factories of another registry.

        Raises:
            RegistryError: At the first name that is already registered.
        """
        for name, factory in other.items():
            self.register(name, factory)


class SchedulerSetup(NamedTuple):
    """What a scheduler is built from: its configuration, the plugins it may name, and the gates.

    `now` is a clock in seconds by which slow plugins are named; by default it stands still.
    """

    configuration: Configuration
    registry: Registry
    feature_gates: FeatureGates
    now: Callable[[], float] = float
