"""Builds plugins from arguments as they are written in a configuration, and finds their hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kubesched.framework import Plugin
from kubesched.framework.cluster_event import QueueingHint
from kubesched.testing.handle import FakeHandle

P = TypeVar("P", bound=Plugin)


def build(
    plugin: type[P], raw: Mapping[str, object] | None = None, handle: FakeHandle | None = None
) -> P:
    """Decode the arguments and build the plugin."""
    handle = handle or FakeHandle()
    written = None if raw is None else dict(raw)
    return plugin(plugin.decode_args(written, handle, "args"), handle)


def hint_of(plugin: Plugin, resource: str) -> QueueingHint:
    """Return the hint that the plugin has registered for events of a resource."""
    events = plugin.events_to_register() or ()
    (hint,) = [each.hint for each in events if each.event.resource == resource]
    assert hint is not None
    return hint
