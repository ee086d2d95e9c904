"""Which changes of pods and nodes may help a pod that InterPodAffinity rejected.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go (v1.36)
Reads:    pod.spec.affinity, nodeName; pod.status.nominatedNodeName; labels of pods and nodes
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.core import Node, Pod
from kubesched.snapshot.affinity_terms import AffinityTerm, AffinityTerms, affinity_terms_of

_NO_LABELS: Final[dict[str, str]] = {}
_NO_TERMS: Final = AffinityTerms()


def after_pod_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether a pod that came, went or changed its labels may make room for `pod`."""
    before = old if isinstance(old, Pod) else None
    after = new if isinstance(new, Pod) else None
    if before is not None and after is not None and pod.metadata.uid == after.metadata.uid:
        return True
    if any(other is not None and not _has_place(other) for other in (before, after)):
        return False
    terms = affinity_terms_of(pod) or _NO_TERMS
    if terms.error:
        return True
    wanted, shunned = terms.required_affinity, terms.required_anti_affinity
    if before is None:
        return after is None or _are_all_about(wanted, after)
    if after is None:
        return _are_all_about(shunned, before) or _shuns(before, pod)
    begins = not _are_all_about(wanted, before) and _are_all_about(wanted, after)
    return begins or (_are_all_about(shunned, before) and not _are_all_about(shunned, after))


def after_node_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether a node that came or changed its labels may take `pod`."""
    terms = affinity_terms_of(pod) or _NO_TERMS
    if terms.error or not isinstance(new, Node):
        return True
    after = new.metadata.labels
    if not isinstance(old, Node):
        comes_with_key = any(term.topology_key in after for term in terms.required_affinity)
        # A node without the key takes any pod that only avoids others.
        return comes_with_key or bool(terms.required_anti_affinity)
    before = old.metadata.labels
    return any(
        term.topology_key in after and before.get(term.topology_key) != after[term.topology_key]
        for term in terms.required_affinity
    ) or any(
        term.topology_key in before and before[term.topology_key] != after.get(term.topology_key)
        for term in terms.required_anti_affinity
    )


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _shuns(pod: Pod, other: Pod) -> bool:
    terms = affinity_terms_of(pod) or _NO_TERMS
    return bool(terms.error) or _are_all_about(terms.required_anti_affinity, other)


def _are_all_about(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Whether there is a term and all are about `pod`, its namespace taken to have no labels.

    So upstream asks: unlike in a cycle, namespace selectors are not resolved.
    """
    metadata = pod.metadata
    return bool(terms) and all(
        term.matches(metadata.namespace, metadata.labels, _NO_LABELS) for term in terms
    )
