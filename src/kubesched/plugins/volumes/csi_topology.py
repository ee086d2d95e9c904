"""Translates the node affinity of in-tree volumes to the topology keys of their CSI drivers.

Upstream: staging/src/k8s.io/csi-translation-lib/plugins/{in_tree_volume,vsphere_volume}.go (v1.36)
Reads:    persistentvolume.spec.nodeAffinity, .metadata.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubesched.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_ZONE_DELIMITER: Final = "__"
_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_VSPHERE_ZONE: Final = "topology.csi.vmware.com/zone"
_VSPHERE_REGION: Final = "topology.csi.vmware.com/region"


def translate_zones(
    required: NodeSelector | None, labels: Mapping[str, str], topology_key: str
) -> NodeSelector | None:
    """Replace the zone label by `topology_key`; add the zone if only the volume's labels have it.

    A beta region label in the affinity is replaced by the current one.
    """
    zone, region = _topology_labels(required, labels)
    if _has_values(required, zone):
        required = _replace_key(required, zone, topology_key)
    elif zone in labels:
        required = _add_values(required, topology_key, labels[zone].split(_ZONE_DELIMITER))
    if region == _BETA_REGION and _has_values(required, region):
        required = _replace_key(required, region, _REGION)
    return required


def translate_vsphere_topology(
    required: NodeSelector | None, labels: Mapping[str, str]
) -> NodeSelector | None:
    """Replace zone and region labels by the driver's keys, each as in `translate_zones`."""
    zone, region = _topology_labels(required, labels)
    for key, driver_key in ((zone, _VSPHERE_ZONE), (region, _VSPHERE_REGION)):
        if _has_values(required, key):
            required = _replace_key(required, key, driver_key)
        elif labels.get(key):
            required = _add_values(required, driver_key, [labels[key]])
    return required


def _topology_labels(required: NodeSelector | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the zone and region keys of the volume, from its affinity or else its labels."""
    keys = [requirement.key for requirement in _requirements(required)]
    for used in (keys, labels):
        if _ZONE in used:
            return _ZONE, _REGION
        if _BETA_ZONE in used:
            return _BETA_ZONE, _BETA_REGION
    return _ZONE, _REGION


def _requirements(required: NodeSelector | None) -> Iterator[NodeSelectorRequirement]:
    if required is not None:
        for term in required.node_selector_terms:
            yield from term.match_expressions


def _has_values(required: NodeSelector | None, key: str) -> bool:
    return any(
        requirement.key == key and requirement.values for requirement in _requirements(required)
    )


def _replace_key(required: NodeSelector | None, old: str, new: str) -> NodeSelector | None:
    if required is None:
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    NodeSelectorRequirement(key=new, operator=one.operator, values=one.values)
                    if one.key == old
                    else one
                    for one in term.match_expressions
                ),
                match_fields=term.match_fields,
            )
            for term in required.node_selector_terms
        )
    )


def _add_values(required: NodeSelector | None, key: str, values: list[str]) -> NodeSelector | None:
    """Require one of the values in every term; return the selector unchanged if all are empty."""
    kept = tuple(sorted({value.strip() for value in values} - {""}))
    if not kept:
        return required
    demand = NodeSelectorRequirement(key=key, operator="In", values=kept)
    terms = required.node_selector_terms if required is not None else ()
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=(*term.match_expressions, demand),
                match_fields=term.match_fields,
            )
            for term in terms or (NodeSelectorTerm(),)
        )
    )
