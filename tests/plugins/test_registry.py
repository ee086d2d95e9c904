from __future__ import annotations

import importlib
import pkgutil

import pytest

from kubesched import plugins
from kubesched.config.args import ARGS_PLUGINS, complete_args
from kubesched.framework.plugin import Plugin
from kubesched.plugins.registry import in_tree_registry
from kubesched.testing.handle import FakeHandle


def _plugin_classes() -> set[type[Plugin]]:
    """Return the plugins that modules of the room define."""
    found: set[type[Plugin]] = set()
    for module in pkgutil.walk_packages(plugins.__path__, f"{plugins.__name__}."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and issubclass(item, Plugin) and "name" in vars(item):
                found.add(item)
    return found


def test_every_plugin_is_registered_under_its_class_name() -> None:
    """The name in the configuration is the name of the class."""
    registered = dict(in_tree_registry())
    assert {plugin.__name__: plugin for plugin in _plugin_classes()} == registered


def test_each_registry_is_new() -> None:
    """A change of one registry does not affect another."""
    first = in_tree_registry()
    first.register("Other", first["NodeName"])
    assert "Other" not in in_tree_registry()


@pytest.mark.parametrize("name", sorted({*ARGS_PLUGINS} - {"DynamicResources"}))
def test_defaults_of_arguments_are_those_of_a_configuration(name: str) -> None:
    """But for DynamicResources, whose defaults depend on feature gates."""
    plugin, handle = in_tree_registry()[name], FakeHandle()
    completed = complete_args(name, None, handle.feature_gates)
    assert plugin.decode_args(None, handle, "") == plugin.decode_args(completed, handle, "")
