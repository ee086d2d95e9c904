"""The events.k8s.io/v1 kinds.

Upstream: staging/src/k8s.io/api/events/v1/types.go (v1.36)
Differs:  the deprecated core fields are not read.
"""

from kubesched.api.integers import Int32
from kubesched.api.meta import KubeObject, KubeStruct
from kubesched.api.volume import ObjectReference


class EventSeries(KubeStruct):
    """The number of repetitions of an event."""

    count: Int32 = 0
    last_observed_time: str | None = None


class Event(KubeObject):
    """Something that a controller did to an object or observed about it."""

    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
