"""Events in their two forms: that of the core group, which is stored, and that of events.k8s.io.

Upstream: pkg/apis/events/v1/conversion.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.apiserver.plain import Plain

EVENTS_GROUP: Final = "events.k8s.io"
# Names in events.k8s.io, and in the core group.
_RENAMED: Final = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_TO_CORE: Final = dict(_RENAMED)
_FROM_CORE: Final = {core: newer for newer, core in _RENAMED}
# What the core form always says, and the newer form only if there is something to say.
_OPTIONAL_IN_NEWER: Final = ("reportingController", "reportingInstance")


def to_core(event: Plain) -> Plain:
    """Return an event of events.k8s.io as the core group has it."""
    core = {_TO_CORE.get(name, name): value for name, value in event.items()}
    core |= {"kind": "Event", "apiVersion": "v1"}
    for name in ("involvedObject", "source"):
        core.setdefault(name, {})
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        core.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        core.setdefault(name, "")
    return core


def from_core(event: Plain) -> Plain:
    """Return an event of the core group as events.k8s.io has it."""
    newer = {_FROM_CORE.get(name, name): value for name, value in event.items()}
    newer |= {"kind": "Event", "apiVersion": f"{EVENTS_GROUP}/v1"}
    for name in _OPTIONAL_IN_NEWER:
        if not newer.get(name):
            newer.pop(name, None)
    return newer
