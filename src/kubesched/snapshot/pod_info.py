"""PodInfo is a pod with the values that scheduling derives from it.

Most pods are created from a template, so derived values are kept per template and shared.

Upstream: pkg/scheduler/framework/types.go, PodInfo (v1.36)
Reads:    pod.metadata, pod.spec, and of pod.status what `api.pod_requests` reads
Differs:  nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from hashlib import blake2b
from operator import attrgetter
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

import msgspec

from kubesched.api.core import Container, Pod, PodSpec
from kubesched.api.meta import OwnerReference, controller_of
from kubesched.api.pod_requests import has_pod_level_requests, pod_requests, reported_resources
from kubesched.api.times import parse_time
from kubesched.api.volume import Volume
from kubesched.snapshot.affinity_terms import AffinityTerms, affinity_terms_of
from kubesched.snapshot.host_ports import HostPort, host_ports_of

_RECENT_MAX: Final = 1024
_CLAIM: Final = "claim"
_EPHEMERAL: Final = "ephemeral"

Labels = tuple[tuple[str, str], ...]
V = TypeVar("V")


class Derived(Generic[V]):
    """A value that a template computes on first use.

    `functools.cached_property` locks in Python 3.11, which takes longer than most of these values.
    """

    def __init__(self, compute: Callable[[PodTemplate], V]) -> None:
        self._compute = compute
        self._name = compute.__name__

    def __get__(self, template: PodTemplate, owner: type[PodTemplate] | None = None) -> V:
        value = self._compute(template)
        # It takes precedence over this descriptor from now on.
        template.__dict__[self._name] = value
        return value


class PodTemplate:
    """The values that pods of one template share, each computed on first use.

    Two pods share a template if their namespace, labels, controller, the spec's fields that
    scheduling reads, and the resources in their status are equal. Templates can be compared by
    identity: equal pods that exist at a time have the same template, different pods never do.

    Which claims a pod's volumes use is not part of it: pods with claims of their own would each
    have their own template, and answers for them depend on other objects anyway.
    """

    def __init__(self, pod: Pod) -> None:
        self.namespace: str = pod.metadata.namespace
        self.labels: dict[str, str] = pod.metadata.labels
        self.spec: PodSpec = pod.spec
        self._volumes = _volumes_of(pod.spec)
        self._pod = pod

    def has(self, pod: Pod) -> bool:
        """Whether the pod has this template. This takes less time than a digest."""
        mine, spec = self._pod.metadata, pod.spec
        metadata = pod.metadata
        return (
            metadata.labels == mine.labels
            and metadata.namespace == mine.namespace
            and metadata.owner_references == mine.owner_references
            and _volumes_of(spec) == self._volumes
            and (spec is self.spec or _fields_of(spec) == _fields_of(self.spec))
            and reported_resources(pod.status) == reported_resources(self._pod.status)
        )

    @Derived
    def base(self) -> bytes:
        """What is read of the spec to compare the pod with a node, except requests.

        That is images, host ports, volumes, tolerations and node selection. Pods with labels and
        requests of their own often share it.
        """
        spec = self.spec
        return _encode(
            (
                [*map(_base_of_container, spec.containers)],
                [*map(_base_of_container, spec.init_containers)],
                self._volumes,
                spec.node_selector,
                spec.affinity and spec.affinity.node_affinity,
                spec.tolerations,
                spec.host_network,
                spec.host_users,
            )
        )

    @Derived
    def label_items(self) -> Labels:
        """The labels as a hashable value."""
        return tuple(sorted(self.labels.items()))

    @Derived
    def controller(self) -> OwnerReference | None:
        """The owner reference that controls the pod."""
        return controller_of(self._pod.metadata)

    @Derived
    def requests(self) -> dict[str, int]:
        """What the pod requests when it is scheduled, cpu in milli, others in whole units."""
        return pod_requests(self._pod)

    @Derived
    def held(self) -> dict[str, int]:
        """The requests that count on the pod's node, with in-place resizes; units as `requests`."""
        if not self._reports_resources:
            return self.requests
        return pod_requests(self._pod, use_status=True)

    @Derived
    def held_non_zero(self) -> tuple[int, int]:
        """`held` milli cpu and bytes of memory, with defaults for containers without requests."""
        if self._reports_resources or has_pod_level_requests(self._pod):
            held = pod_requests(self._pod, use_status=True, default_missing=True)
        else:
            held = self.container_requests
        return held.get("cpu", 0), held.get("memory", 0)

    @Derived
    def amounts(self) -> Hashable:
        """A value that is equal for pods that occupy the same on their nodes."""
        return self.held_non_zero, tuple(sorted(self.held.items()))

    @Derived
    def container_requests(self) -> dict[str, int]:
        """The containers' requests, with defaults and without pod-level requests."""
        if self._names_cpu_and_memory and not has_pod_level_requests(self._pod):
            return self.requests
        return pod_requests(self._pod, pod_level=False, default_missing=True)

    @Derived
    def _reports_resources(self) -> bool:
        return reported_resources(self._pod.status) is not None

    @Derived
    def _names_cpu_and_memory(self) -> bool:
        """Whether every container requests both, so that defaults change nothing."""
        for container in (*self.spec.containers, *self.spec.init_containers):
            requests = container.resources.requests
            if "cpu" not in requests or "memory" not in requests:
                return False
        return True

    @Derived
    def host_ports(self) -> tuple[HostPort, ...]:
        """The host ports of containers and restartable init containers."""
        return host_ports_of(self.spec)

    @Derived
    def affinity(self) -> AffinityTerms | None:
        """The inter-pod affinity and anti-affinity terms; None if it has none."""
        return affinity_terms_of(self._pod)


class PodInfo:
    """A pod and its template.

    Attributes:
        pod: The Kubernetes object.
        template: The derived values.
        namespace: That of `pod`.
        name: That of `pod`.
        uid: That of `pod`; `namespace/name` if it has none.
        priority: That of `pod`; 0 if it has none.
        node_name: The node that it is bound to or assumed on; "" if none.
    """

    __slots__ = ("name", "namespace", "node_name", "pod", "priority", "template", "uid")

    def __init__(self, pod: Pod, before: PodInfo | None = None) -> None:
        """Derive the values; `before` is another version of the pod, which saves time."""
        metadata = pod.metadata
        self.pod = pod
        self.namespace = metadata.namespace
        self.name = metadata.name
        self.uid = uid_of(pod)
        self.priority = pod.spec.priority or 0
        self.node_name = pod.spec.node_name
        self.template: PodTemplate
        if before is not None and before.template.has(pod):
            self.template = before.template
        else:
            self.template = _template_of(pod)

    def on_node(self, node_name: str) -> PodInfo:
        """Return the same pod with another `node_name`."""
        there = object.__new__(PodInfo)
        there.pod = self.pod
        there.namespace = self.namespace
        there.name = self.name
        there.uid = self.uid
        there.priority = self.priority
        there.node_name = node_name
        there.template = self.template
        return there

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def spec(self) -> PodSpec:
        """The pod's specification."""
        return self.pod.spec

    @property
    def scheduler_name(self) -> str:
        """The profile that schedules the pod."""
        return self.pod.spec.scheduler_name or "default-scheduler"

    @property
    def labels(self) -> dict[str, str]:
        """The pod's labels."""
        return self.pod.metadata.labels

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The claim names of persistentVolumeClaim volumes."""
        volumes = self.pod.spec.volumes
        if not volumes:
            return ()
        claims = [volume.persistent_volume_claim for volume in volumes]
        return tuple([claim.claim_name for claim in claims if claim is not None])

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def start_time(self) -> int | None:
        """When the kubelet accepted the pod, in nanoseconds since the epoch; None if not yet."""
        started = self.pod.status.start_time
        return parse_time(started) if started else None

    @property
    def containers(self) -> tuple[Container, ...]:
        """Init containers and containers."""
        return self.pod.spec.init_containers + self.pod.spec.containers


def uid_of(pod: Pod) -> str:
    """Return the pod's uid, or `namespace/name` if it has none."""
    metadata = pod.metadata
    return metadata.uid or metadata.key


def scheduler_name_of(pod: Pod) -> str:
    """Return the profile that schedules a pod; the API server's default if it names none."""
    return pod.spec.scheduler_name or "default-scheduler"


_templates: WeakValueDictionary[bytes, PodTemplate] = WeakValueDictionary()
# By the identity of the first pod's containers, which the template keeps alive, its labels, and
# whether it has started: a started pod reports resources, which makes it another template.
_by_parts: WeakValueDictionary[tuple[object, ...], PodTemplate] = WeakValueDictionary()
# Keeps templates alive: the next pod often arrives when no other of its template is left.
_recent: deque[PodTemplate] = deque(maxlen=_RECENT_MAX)
_encode = msgspec.msgpack.Encoder().encode
_base_of_container = attrgetter("image", "ports", "restart_policy", "restart_policy_rules")
_fields_of = attrgetter(
    "containers",
    "init_containers",
    "resources",
    "overhead",
    "affinity",
    "node_selector",
    "tolerations",
    "topology_spread_constraints",
    "priority",
    "preemption_policy",
    "scheduler_name",
    "host_network",
    "host_users",
    "resource_claims",
    "scheduling_gates",
    "scheduling_group",
)
"""The fields of a spec that are part of its template, without its volumes."""


def _template_of(pod: Pod) -> PodTemplate:
    # The pods of a new template mostly arrive one after another.
    if _recent and _recent[-1].has(pod):
        return _recent[-1]
    # The pods of a simulation mostly share the parts of a spec.
    is_started = bool(pod.status.container_statuses)
    parts = id(pod.spec.containers), *pod.metadata.labels.values(), is_started
    known = _by_parts.get(parts)
    if known is not None and known.has(pod):
        return known
    key = _template_key(pod)
    template = _templates.get(key)
    if template is None:
        template = _templates[key] = _by_parts[parts] = PodTemplate(pod)
        _recent.append(template)
    return template


def _template_key(pod: Pod) -> bytes:
    """Return a digest of a template's content, which would take as much memory as the template."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    content = _encode(
        (
            metadata.namespace,
            metadata.labels,
            metadata.owner_references,
            _volumes_of(spec),
            reported_resources(status),
            *_fields_of(spec),
        )
    )
    return blake2b(content, digest_size=16).digest()


def _volumes_of(spec: PodSpec) -> tuple[Volume | str, ...]:
    """Return the volumes whose source a plugin reads: disks, for example, but no ConfigMaps.

    Claims are constants among them, so that pods with claims of their own share a template.
    """
    if not spec.volumes:
        return ()
    return tuple(
        [
            _CLAIM
            if volume.persistent_volume_claim is not None
            else _EPHEMERAL
            if volume.ephemeral is not None
            else volume
            for volume in spec.volumes
            if volume.is_seen_by_scheduling
        ]
    )
