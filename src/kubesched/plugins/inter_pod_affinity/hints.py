"""When a change of a pod or node may make a pod schedulable that InterPodAffinity rejected.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, isSchedulableAfterPodChange
          and isSchedulableAfterNodeChange (v1.36)
Reads:    pod.spec.affinity.podAffinity, podAntiAffinity; pod.metadata.labels; node.metadata.labels
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubesched.api.core import Node, Pod
from kubesched.framework.cluster_event import Filing, names_of_labels, names_of_pods
from kubesched.snapshot.affinity_terms import AffinityTerm, AffinityTerms, affinity_terms_of

_NO_TERMS: Final = AffinityTerms()
_NO_LABELS: Final[dict[str, str]] = {}
_AVOIDED: Final = "avoided: "
_SHUNNED: Final = "shunned: "


def after_pod_change(pod: Pod, old: object | None, new: object | None) -> bool:
    """Whether the addition, deletion or update of a pod may make `pod` schedulable."""
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
    """Whether the addition or update of a node may make `pod` schedulable."""
    terms = affinity_terms_of(pod) or _NO_TERMS
    if terms.error or not isinstance(new, Node):
        return True
    after = new.metadata.labels
    if not isinstance(old, Node):
        comes_with_key = any(term.topology_key in after for term in terms.required_affinity)
        # A node without the key cannot violate anti-affinity.
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
    """Whether there are terms and all match `pod`.

    As upstream, and unlike in a scheduling cycle, namespace selectors are matched as if the
    namespace had no labels.
    """
    metadata = pod.metadata
    return bool(terms) and all(
        term.matches(metadata.namespace, metadata.labels, _NO_LABELS) for term in terms
    )


# The filing.


def _names_of(pod: Pod) -> Iterator[str]:
    """Yield labels: those that pods need for affinity, for anti-affinity, and the pod's own."""
    terms = affinity_terms_of(pod) or _NO_TERMS
    for mark, group in (("", terms.required_affinity), (_AVOIDED, terms.required_anti_affinity)):
        needed = None if terms.error else _needed_labels(group)
        yield from map(mark.__add__, names_of_labels(needed))
    yield from map(_SHUNNED.__add__, names_of_labels(pod.metadata.labels.items()))


def _names_of_change(old: object | None, new: object | None) -> Iterable[str] | None:
    """Return the labels of the pod, and those that its anti-affinity needed, marked as above."""
    names = names_of_pods(old, new)
    if names is None or not isinstance(old, Pod):
        return names
    avoided = [_AVOIDED + name for name in names]
    if new is not None:
        return [*names, *avoided]
    terms = affinity_terms_of(old) or _NO_TERMS
    labels = None if terms.error else _needed_labels(terms.required_anti_affinity)
    return None if labels is None else [*avoided, *map(_SHUNNED.__add__, names_of_labels(labels))]


def _needed_labels(terms: tuple[AffinityTerm, ...]) -> tuple[tuple[str, str], ...] | None:
    """Return labels of which each pod that all terms match has one; None if none are known."""
    if not terms:
        return ()
    needed = [term.selector.needed_labels for term in terms]
    return min((labels for labels in needed if labels is not None), key=len, default=None)


BY_LABELS: Final = Filing(_names_of, _names_of_change)
