"""The events.k8s.io/v1 kinds.

Upstream: staging/src/k8s.io/api/events/v1/types.go (v1.36)
Differs:  no field is read; `client.event_recorder` writes the JSON.
"""

from kubesched.api.meta import KubeObject


class Event(KubeObject):
    """Something that a controller did to an object or observed about it."""
