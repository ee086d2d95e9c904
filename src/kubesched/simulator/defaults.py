"""API server defaults of the fields that scheduling reads.

Objects from an API server have them already; objects from manifests do not.

Upstream: pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go,
          plugin/pkg/admission/{priority,storage/storageclass/setdefault} (v1.36)
Reads:    requests and limits, also of whole pods; ports, priorityClassName; label keys of pod
          affinity; capacity of nodes; names of namespaces; volumeBindingMode; templates of
          ReplicationControllers; PriorityClass and StorageClass objects
Differs:  LimitRange, RuntimeClass, ServiceAccount and default tolerations are not applied; a pod
          with an unknown class is kept without a priority instead of refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from kubesched.api.core import (
    Affinity,
    Container,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ReplicationController,
    ResourceRequirements,
)
from kubesched.api.meta import KubeObject, LabelSelectorRequirement
from kubesched.api.names import CPU, MEMORY
from kubesched.api.pod_requests import is_pod_level_resource, pod_request_amounts
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup, PriorityClass
from kubesched.api.storage import StorageClass
from kubesched.api.volume import PersistentVolumeClaim
from kubesched.api.well_known import BETA_STORAGE_CLASS, NAMESPACE_NAME, SYSTEM_CLASSES

T = TypeVar("T", bound=KubeObject)
AffinityT = TypeVar("AffinityT", bound=PodAffinity)


class PriorityClasses:
    """Priority classes by name, the default class, and names that no class has."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._classes = {name: PriorityClass(value=value) for name, value in SYSTEM_CLASSES.items()}
        self._classes |= {found.metadata.name: found for found in classes}
        defaults = [found for found in self._classes.values() if found.global_default]
        # As upstream, the default class with the lowest value counts.
        self._default = min(defaults, key=lambda found: found.value, default=None)
        self.unknown: dict[str, None] = {}

    def resolve(self, spec: PodSpec) -> PodSpec:
        """Return the spec with the priority and preemption policy of its class."""
        if spec.priority is not None:
            return spec
        found = self.named(spec.priority_class_name)
        if found is None:
            return spec
        return replace(
            spec,
            priority=found.value,
            preemption_policy=spec.preemption_policy or found.preemption_policy,
        )

    def named(self, name: str) -> PriorityClass | None:
        """Return the class of that name, the default class without one; None if there is none."""
        if not name:
            return self._default
        found = self._classes.get(name)
        if found is None:
            self.unknown[name] = None
        return found


def with_defaults(
    item: KubeObject, classes: PriorityClasses, storage_class: str | None
) -> KubeObject:
    """Return the object with defaults; pods, their groups and claims of devices get a uid too.

    `storage_class` is the name of the default class, None if there is none.
    """
    if isinstance(item, Pod):
        return pod_with_defaults(item, classes)
    if isinstance(item, PodGroup):
        return pod_group_with_defaults(item, classes)
    if isinstance(item, PersistentVolumeClaim):
        return claim_with_defaults(item, storage_class)
    return with_uid(item) if isinstance(item, ResourceClaim) else own_defaults(item)


def own_defaults(item: KubeObject) -> KubeObject:
    """Return an object with the defaults that depend on no other object.

    Allocatable of a node is its capacity, a namespace has a label with its name, a storage class
    binds at once, and a ReplicationController selects its pods.
    """
    match item:
        case Node(status=status) if status.capacity and not status.allocatable:
            return replace(item, status=replace(status, allocatable=status.capacity))
        case Namespace(metadata=metadata):
            labels = {**metadata.labels, NAMESPACE_NAME: metadata.name}
            return replace(item, metadata=replace(metadata, labels=labels))
        case StorageClass(volume_binding_mode=None):
            return replace(item, volume_binding_mode="Immediate")
        case ReplicationController(spec=spec) if spec.template and not spec.selector:
            return replace(item, spec=replace(spec, selector=spec.template.metadata.labels))
        case _:
            return item


def pod_with_defaults(pod: Pod, classes: PriorityClasses) -> Pod:
    """Return the pod with defaults, and with a uid if it has none."""
    spec = classes.resolve(pod.spec)
    containers = _all_with_defaults(spec.containers, spec.host_network)
    init_containers = _all_with_defaults(spec.init_containers, spec.host_network)
    if containers is not spec.containers or init_containers is not spec.init_containers:
        spec = replace(spec, containers=containers, init_containers=init_containers)
    if spec.resources is not None and spec.resources.limits:
        resources = _with_pod_requests(spec, spec.resources)
        spec = replace(spec, resources=resources)
    if spec.affinity is not None:
        affinity = _with_label_keys(spec.affinity, pod.metadata.labels)
        if affinity is not spec.affinity:
            spec = replace(spec, affinity=affinity)
    return with_uid(pod if spec is pod.spec else replace(pod, spec=spec))


def _with_pod_requests(spec: PodSpec, resources: ResourceRequirements) -> ResourceRequirements:
    """Use what containers request, or else the limits, as missing requests of the whole pod."""
    only_containers = PodSpec(containers=spec.containers, init_containers=spec.init_containers)
    of_containers = pod_request_amounts(Pod(spec=only_containers))
    requests = {name: str(of_containers[name]) for name in (CPU, MEMORY) if name in of_containers}
    limits = {
        name: limit for name, limit in resources.limits.items() if is_pod_level_resource(name)
    }
    return replace(resources, requests={**limits, **requests, **resources.requests})


def _with_label_keys(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    """Merge the pod's own values of matchLabelKeys and mismatchLabelKeys into the selectors."""
    merged = replace(
        affinity,
        pod_affinity=_with_merged_terms(affinity.pod_affinity, labels),
        pod_anti_affinity=_with_merged_terms(affinity.pod_anti_affinity, labels),
    )
    return affinity if merged == affinity else merged


def _with_merged_terms(affinity: AffinityT | None, labels: Mapping[str, str]) -> AffinityT | None:
    if affinity is None:
        return None
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return replace(
        affinity,
        required_during_scheduling_ignored_during_execution=tuple(
            _merged(term, labels) for term in required
        ),
        preferred_during_scheduling_ignored_during_execution=tuple(
            replace(one, pod_affinity_term=_merged(one.pod_affinity_term, labels))
            for one in preferred
        ),
    )


def _merged(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = term.label_selector
    if selector is None:
        return term
    # A stored selector has the keys already, with the values at the pod's creation; a key of
    # mismatchLabelKeys may have other expressions, too.
    stored = {(expression.key, expression.operator) for expression in selector.match_expressions}
    merged = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for keys, operator in ((term.match_label_keys, "In"), (term.mismatch_label_keys, "NotIn"))
        for key in keys
        if key in labels and (key, operator) not in stored
    )
    expressions = (*selector.match_expressions, *merged)
    selector = replace(selector, match_expressions=expressions)
    return replace(term, label_selector=selector)


def pod_group_with_defaults(group: PodGroup, classes: PriorityClasses) -> PodGroup:
    """Return the group with the priority of its class, and with a uid if it has none."""
    spec = group.spec
    found = None if spec.priority is not None else classes.named(spec.priority_class_name)
    if found is not None:
        spec = replace(spec, priority=found.value)
    return with_uid(replace(group, spec=spec))


def claim_with_defaults(
    claim: PersistentVolumeClaim, default_class: str | None
) -> PersistentVolumeClaim:
    """Return the claim with the default class, if it names none and has no volume."""
    spec = claim.spec
    if default_class is None or spec.storage_class_name is not None or spec.volume_name:
        return claim
    if BETA_STORAGE_CLASS in claim.metadata.annotations:
        return claim
    spec = replace(spec, storage_class_name=default_class)
    return replace(claim, spec=spec)


def with_uid(item: T) -> T:
    """Return an object with a uid, which those of manifests lack: others refer to it by that."""
    metadata = item.metadata
    if metadata.uid:
        return item
    return replace(item, metadata=replace(metadata, uid=metadata.key))


def _all_with_defaults(
    containers: tuple[Container, ...], host_network: bool
) -> tuple[Container, ...]:
    completed = tuple([_with_defaults(container, host_network) for container in containers])
    return containers if completed == containers else completed


def _with_defaults(container: Container, host_network: bool) -> Container:
    """Use limits as missing requests and, in the host's network, ports as missing host ports."""
    resources, ports = container.resources, container.ports
    given = resources.requests
    missing = {name: amount for name, amount in resources.limits.items() if name not in given}
    if missing:
        resources = replace(resources, requests={**given, **missing})
    elif not host_network:
        return container
    if host_network:
        ports = tuple(
            replace(port, host_port=port.host_port or port.container_port) for port in ports
        )
    return replace(container, resources=resources, ports=ports)
