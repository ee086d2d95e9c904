"""Out-of-tree plugins: `module:Class`, `file.py:Class`, or by name from installed packages.

An installed package provides plugins as entry points of the group `kubesched.plugins`; the entry
point's name is the plugin's. They are used only if the configuration enables them, so that
installing a package changes no decision.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import msgspec

from kubesched.config.types import Configuration
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import PluginFactory, Registry
from kubesched.inputs.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP: Final = "kubesched.plugins"


def load_plugin(text: str | type[Plugin]) -> type[Plugin]:
    """Import the plugin class that `--plugin` names; a class is only checked.

    Raises:
        UserError: The module, file or class does not exist, or is not a plugin.
    """
    if not isinstance(text, str):
        return _checked(text, f"plugins: {text!r}")
    option = f"--plugin {text}"
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise UserError(f"{option}: write module:Class or path/to/file.py:Class")
    return _plugin_class(import_place(place, option), name, option)


def load_entry_points(registry: Registry, configuration: Configuration) -> None:
    """Register installed plugins that the configuration enables and the registry lacks.

    Raises:
        UserError: One of them cannot be imported, or is not a plugin.
    """
    wanted = _enabled(configuration) - frozenset(registry)
    if not wanted:
        return
    # Imported late: most configurations enable in-tree plugins only.
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda found: found.name):
        if entry.name in wanted and entry.name not in registry:
            registry.register(entry.name, PluginFactory(_entry_point_class(entry)))


def _enabled(configuration: Configuration) -> frozenset[str]:
    return frozenset(
        plugin.name
        for profile in configuration.profiles
        for plugin_set in msgspec.structs.astuple(profile.plugins)
        for plugin in plugin_set.enabled
    )


def _entry_point_class(entry: EntryPoint) -> type[Plugin]:
    option = f"installed plugin {entry.name} ({entry.value})"
    try:
        found = entry.load()
    except Exception as error:
        raise UserError(f"{option}: {_exception_text(error)}") from error
    return _checked(found, option)


def import_place(place: str, option: str) -> ModuleType:
    """Import a module or `path/to/file.py`.

    Raises:
        UserError: It does not exist or raises; the message begins with the option.
    """
    try:
        if place.endswith(".py"):
            return _module_of_file(Path(place), option)
        # As with `python -m`, modules of the working directory can be imported.
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(place)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{option}: cannot import {place}: {_exception_text(error)}") from error


def _module_of_file(file: Path, option: str) -> ModuleType:
    if not file.is_file():
        raise UserError(f"{option}: {file}: no such file")
    name = f"kubesched_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{option}: {file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _plugin_class(module: ModuleType, name: str, option: str) -> type[Plugin]:
    found = getattr(module, name, None)
    if found is None:
        offered = [
            key
            for key, value in vars(module).items()
            if inspect.isclass(value)
            and issubclass(value, Plugin)
            and value.__module__ == module.__name__
        ]
        hint = f"; it has {', '.join(offered)}" if offered else ""
        raise UserError(f"{option}: there is no {name} in {module.__name__}{hint}")
    return _checked(found, option)


def _checked(found: object, option: str) -> type[Plugin]:
    if not (inspect.isclass(found) and issubclass(found, Plugin)):
        raise UserError(f"{option}: it is no subclass of kubesched.framework.plugin.Plugin")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise UserError(f"{option}: the class does not implement {missing}")
    if not isinstance(getattr(found, "name", None), str) or not found.name:
        raise UserError(f"{option}: the class has no name; add `name: ClassVar = ...`")
    return found


def _exception_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
