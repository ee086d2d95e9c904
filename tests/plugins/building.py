"""Builds plugins from arguments as they are written in a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kubesched.framework import Plugin
from kubesched.testing.handle import FakeHandle

P = TypeVar("P", bound=Plugin)


def build(
    plugin: type[P], raw: Mapping[str, object] | None = None, handle: FakeHandle | None = None
) -> P:
    """Decode the arguments and build the plugin."""
    handle = handle or FakeHandle()
    written = None if raw is None else dict(raw)
    return plugin(plugin.decode_args(written, handle, "args"), handle)
