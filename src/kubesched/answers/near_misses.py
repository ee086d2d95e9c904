"""Near misses: names, labels and values that a pod asks for and that almost exist.

Reads:    nodeSelector, node affinity, tolerations, topology keys and requests of a pod, its group,
          its claims with their templates and classes; labels, taints and allocatable resources of
          nodes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

import numpy as np

from kubesched.api.core import Pod, PodAffinityTerm
from kubesched.api.meta import KubeObject, NodeSelectorTerm
from kubesched.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate
from kubesched.api.scheduling import PodGroup
from kubesched.api.selectors import required_node_selector
from kubesched.api.storage import StorageClass
from kubesched.api.tolerations import find_untolerated
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.explain.saving import KUBECTL_NAMES
from kubesched.explain.sentences import grouped_by, names, there_are
from kubesched.framework.pod_groups import pod_group_name_of
from kubesched.inputs.errors import near_names
from kubesched.plugins.volumes.claims import claims_of
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.objects import Objects

_NEAR_MAX: Final = 3
_KNOWN_KEYS_MAX: Final = 2_000
NODE_STATE_TAINTS: Final = "node.kubernetes.io/"
"""What the keys of taints that show a node's state begin with."""


def near_misses(pod: Pod, nodes: NodeTable, objects: Objects) -> Iterator[str]:
    """Yield a sentence for each thing that the pod asks for and that is missing: what exists."""
    yield from _missing_objects(pod, objects)
    if not len(nodes):
        return
    labels = (one for key, wanted in _wanted(pod) for one in _missing_label(nodes, key, wanted))
    yield from dict.fromkeys(labels)
    yield from _missing_nodes(pod, nodes)
    yield from _missing_topology_keys(pod, nodes)
    yield from _near_taints(pod, nodes)
    yield from _near_taint_keys(pod, nodes)
    yield from _missing_resources(pod, nodes)
    yield from _missing_neighbours(pod, nodes)


def near_labels(nodes: NodeTable, key: str, wanted: str) -> list[tuple[str, str]]:
    """Return labels of nodes, each with key and value, that are similar to one that no node has."""
    if _values(nodes, key):
        return [(key, near) for near in _near_values(nodes, key, wanted)]
    return [
        (other, text)
        for other in _near_keys(_label_keys(nodes), key)
        for text in (
            [wanted] if wanted in _values(nodes, other) else _near_values(nodes, other, wanted)
        )
    ]


def _near_keys(existing: Iterable[str], key: str) -> list[str]:
    """Return existing keys of the same name in any domain, or else of a similar name."""
    keys_of = grouped_by(existing, lambda other: other.rpartition("/")[2])
    name = key.rpartition("/")[2]
    near = [name] if name in keys_of else _in_other_case(name, keys_of) or near_names(name, keys_of)
    return [other for text in near for other in keys_of[text]][:_NEAR_MAX]


def _near_values(nodes: NodeTable, key: str, wanted: str) -> list[str]:
    """Return existing values that are similar to one of a label; none if a node has that one."""
    existing = _values(nodes, key)
    if wanted in existing:
        return []
    near = _in_other_case(wanted, existing)
    near = near or [text for text in existing if text.startswith(wanted) and wanted]
    near = near or get_close_matches(wanted, existing, n=_NEAR_MAX)
    # Labels of roles have no value, but are asked for as "true".
    return near[:_NEAR_MAX] or (existing if existing == [""] else [])


def _in_other_case(wanted: str, existing: Iterable[str]) -> list[str]:
    return [text for text in existing if text.casefold() == wanted.casefold()]


def _values(nodes: NodeTable, key: str) -> list[str]:
    """Return the values of a label that nodes have, sorted."""
    column = nodes.label(key)
    found = (column.values[code] for code in np.unique(column.codes))
    return sorted(text for text in found if text is not None)


def _wanted(pod: Pod) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the labels that nodes must have, each with its allowed values."""
    for key, text in sorted((pod.spec.node_selector or {}).items()):
        yield key, (text,)
    for term in _required_terms(pod):
        for requirement in term.match_expressions:
            if requirement.operator == "In":
                yield requirement.key, requirement.values
            elif requirement.operator == "Exists":
                yield requirement.key, ()


def _required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    required = required_node_selector(pod.spec)
    return () if required is None else required.node_selector_terms


def _missing_nodes(pod: Pod, nodes: NodeTable) -> Iterator[str]:
    """Yield nodes that a pod asks for by name, as those of DaemonSets do, and that do not exist."""
    for term in _required_terms(pod):
        for field in term.match_fields:
            for name in field.values if field.operator == "In" else ():
                if name not in nodes.row_of:
                    yield f"node {name} is asked for; there is no such node"


def _missing_label(nodes: NodeTable, key: str, wanted: tuple[str, ...]) -> Iterator[str]:
    existing = _values(nodes, key)
    if not existing:
        yield _missing_key(nodes, f"the label {key} is asked for", key)
        return
    for text in wanted:
        if text not in existing:
            near = _near_values(nodes, key, text) or existing
            listed = names([near_text or '""' for near_text in near])
            yield f"{key}={text} is asked for; nodes have {listed}"


def _missing_key(nodes: NodeTable, asked: str, key: str) -> str:
    near = _near_keys(_label_keys(nodes), key)
    return f"{asked}; no node has it" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _label_keys(nodes: NodeTable) -> list[str]:
    keys: set[str] = set()
    for node in nodes.nodes:
        keys.update(node.metadata.labels)
        if len(keys) > _KNOWN_KEYS_MAX:
            break
    return sorted(keys)


def _missing_topology_keys(pod: Pod, nodes: NodeTable) -> Iterator[str]:
    for constraint in pod.spec.topology_spread_constraints:
        key = constraint.topology_key
        if constraint.when_unsatisfiable == "DoNotSchedule" and not _values(nodes, key):
            yield _missing_key(nodes, f"pods are to be spread over {key}", key)
    for term in _required_neighbours(pod):
        key = term.topology_key
        if not _values(nodes, key):
            yield _missing_key(nodes, f"pod affinity by {key} is asked for", key)


def _near_taints(pod: Pod, nodes: NodeTable) -> Iterator[str]:
    """Yield tolerations whose key nodes have in taints, but never with that value or effect."""
    taints = sorted({(t.key, t.value, t.effect) for listed in nodes.taints.values for t in listed})
    for toleration in pod.spec.tolerations:
        same_key = [taint for taint in taints if taint[0] == toleration.key]
        if not same_key or toleration.operator not in ("", "Equal"):
            continue
        is_met = any(
            text == toleration.value and toleration.effect in ("", effect)
            for _, text, effect in same_key
        )
        if not is_met:
            effect = f":{toleration.effect}" if toleration.effect else ""
            listed = names([f"{key}={text}:{effect}" for key, text, effect in same_key])
            yield f"{toleration.key}={toleration.value}{effect} is tolerated; nodes have {listed}"


def _near_taint_keys(pod: Pod, nodes: NodeTable) -> Iterator[str]:
    """Yield tolerated keys that no taint has, if taints that keep the pod away have similar ones.

    Taints that show a node's state are left out: every pod tolerates some of them.
    """
    taints = {taint for listed in nodes.taints.values for taint in listed}
    existing = {taint.key for taint in taints}
    lacking = {taint.key for taint in taints if find_untolerated([taint], pod.spec.tolerations)}
    near_to = sorted(key for key in lacking if not key.startswith(NODE_STATE_TAINTS))
    for key in dict.fromkeys(toleration.key for toleration in pod.spec.tolerations):
        if key and key not in existing and (near := _near_keys(near_to, key)):
            yield f"{key} is tolerated; no taint has this key; did you mean {' or '.join(near)}?"


def _missing_resources(pod: Pod, nodes: NodeTable) -> Iterator[str]:
    """Yield resources that are requested and that no node has, if nodes have similar ones."""
    spec = pod.spec
    containers = (*spec.init_containers, *spec.containers)
    wanted = {resource for one in containers for resource in one.resources.requests}
    offered = {resource for node in nodes.nodes for resource in node.status.allocatable}
    for resource in sorted(wanted - offered):
        if near := near_names(resource, sorted(offered)):
            yield f"{resource} is requested; no node has it; did you mean {' or '.join(near)}?"


def _required_neighbours(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return ()
    return affinity.pod_affinity.required_during_scheduling_ignored_during_execution


def _missing_neighbours(pod: Pod, nodes: NodeTable) -> Iterator[str]:
    """Yield labels that pods next to this one must have, if pods only have other values."""
    for term in _required_neighbours(pod):
        selector = term.label_selector
        if selector is None or term.namespace_selector is not None:
            continue
        spaces = term.namespaces or (pod.metadata.namespace,)
        others = [
            other
            for pods in nodes.pods
            for info in pods.values()
            if (other := info.pod.metadata).namespace in spaces
        ]
        for key, wanted in sorted(selector.match_labels.items()):
            existing = {one.labels[key] for one in (pod.metadata, *others) if key in one.labels}
            if wanted not in existing and (near := near_names(wanted, sorted(existing))):
                listed = names([f"{key}={text}" for text in near])
                yield f"pods with {key}={wanted} are asked for; pods have {listed}"


def _missing(pod: Pod, objects: Objects) -> Iterator[tuple[type[KubeObject], str, list[str]]]:
    """Yield kind and name of each object that is asked for and missing, and existing names."""
    for kind, namespace, name in dict.fromkeys(_references(pod, objects)):
        if objects.get(kind, name, namespace) is None:
            yield kind, name, sorted(one.metadata.name for one in objects.list(kind, namespace))


def _missing_objects(pod: Pod, objects: Objects) -> Iterator[str]:
    """Yield a sentence for each name that no object has, if similar names exist."""
    for kind, name, existing in _missing(pod, objects):
        if near := near_names(name, existing):
            asked = f"the {kind.__name__} {name} is asked for"
            yield f"{asked}; it does not exist; did you mean {' or '.join(near)}?"


def missing_objects(pod: Pod, objects: Objects) -> Iterator[str]:
    """Yield a sentence for each other name that no object has, with the remedy."""
    for kind, name, existing in _missing(pod, objects):
        # Saved clusters may lack other kinds. Pods name a group only where groups are in use.
        is_saved = kind.__name__ in KUBECTL_NAMES or kind is PodGroup or any(objects.list(kind))
        if kind is StorageClass and _has_volumes(name, objects):
            continue
        if is_saved and objects.knows(kind) and not near_names(name, existing):
            others = there_are(kind.__name__, existing)
            yield f"{kind.__name__} {name} does not exist: create it, or use another one; {others}."


def _has_volumes(class_name: str, objects: Objects) -> bool:
    """Whether volumes have this class: claims can be bound to them even if it does not exist."""
    volumes = objects.list(PersistentVolume)
    return any(volume.spec.storage_class_name == class_name for volume in volumes)


def _references(pod: Pod, objects: Objects) -> Iterator[tuple[type[KubeObject], str, str]]:
    """Yield kind, namespace and name of what the pod and its claims refer to."""
    namespace = pod.metadata.namespace
    if group := pod_group_name_of(pod):
        yield PodGroup, namespace, group
    for used in claims_of(pod):
        if not used.is_ephemeral:
            yield PersistentVolumeClaim, namespace, used.name
        claim = objects.get(PersistentVolumeClaim, used.name, namespace)
        if claim is not None and not claim.spec.volume_name and claim.spec.storage_class_name:
            yield StorageClass, "", claim.spec.storage_class_name
    for entry, name in pod.resource_claims():
        if entry.resource_claim_name is not None:
            yield ResourceClaim, namespace, name
        elif not name and entry.resource_claim_template_name:
            yield ResourceClaimTemplate, namespace, entry.resource_claim_template_name
        found = objects.get(ResourceClaim, name, namespace)
        for request in () if found is None else found.spec.devices.requests:
            exactly = () if request.exactly is None else (request.exactly,)
            for device in (*exactly, *request.first_available):
                yield DeviceClass, "", device.device_class_name
