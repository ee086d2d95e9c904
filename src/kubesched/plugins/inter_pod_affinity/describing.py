"""Describes which pods and terms made InterPodAffinity reject a node.

Reads:    pods on nodes, nodes.labels
Differs:  not in upstream; for explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesched.api.requirements import CompiledSelector
from kubesched.plugins.inter_pod_affinity.state import AffinityState, IncomingTerm
from kubesched.snapshot.affinity_terms import AffinityTerm
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_NAMED_MAX: Final = 3


def describe_affinity(state: AffinityState, pod: PodInfo, nodes: NodeTable) -> str:
    """Return the domain, the pods and the term because of which the only row is rejected."""
    if state.affinity and state.lacks_affinity(pod, nodes)[0]:
        return _describe_missing(state, nodes)
    for key, domains in state.anti_affinity.items():
        label = nodes.label(key)
        if domains.above(label, 0)[0]:
            terms = [term for term in state.requirements.anti_affinity if term.topology_key == key]
            place = f"{key}={label[0]}"
            for term in terms:
                if found := _pods_in(state, term, key, label[0], _about(term)):
                    return f"{place}: this pod avoids {_written(term)}: {found}"
            return f"{place}: {domains.at(label)[0]} pod(s) avoided by this pod"
    for key, domains in state.existing.items():
        label = nodes.label(key)
        if domains.above(label, 0)[0]:
            return _describe_existing(state, pod, key, label[0], int(domains.at(label)[0]))
    return ""


def _describe_missing(state: AffinityState, nodes: NodeTable) -> str:
    terms = state.requirements.affinity
    wanted = " and ".join(dict.fromkeys(map(_written, terms)))
    for key, domains in state.affinity.items():
        label = nodes.label(key)
        value = label[0]
        if value is None:
            return f"the node has no label {key}"
        if domains.above(label, 0)[0]:
            continue
        elsewhere = _pods_in(state, terms, key, None, state.requirements.are_met_by)
        if not elsewhere:
            return f"no pod on any node matches {wanted}"
        return f"{key}={value}: no pod matches {wanted}; elsewhere: {elsewhere}"
    return ""


def _describe_existing(
    state: AffinityState, pod: PodInfo, key: str, value: str | None, count: int
) -> str:
    """Return the pods of the domain whose anti-affinity matches the pod, and their first term."""
    for term in _avoiding_terms(state, pod, key):

        def owns(other: PodInfo, term: AffinityTerm = term) -> bool:
            owned = other.template.affinity
            return owned is not None and term in owned.required_anti_affinity

        if found := _pods_in(state, ("owners", term), key, value, owns):
            return f"{key}={value}: pods that avoid {_shown(term.selector)}: {found}"
    return f"{key}={value}: {count} pod(s) avoiding this pod"


def _avoiding_terms(state: AffinityState, pod: PodInfo, key: str) -> list[AffinityTerm]:
    if state.avoiding is None:
        owned = (group.affinity for group in state.table.groups if group.affinity is not None)
        terms = dict.fromkeys(term for each in owned for term in each.required_anti_affinity)
        about = pod.namespace, pod.labels, state.namespace_labels
        state.avoiding = [term for term in terms if term.matches(*about)]
    return [term for term in state.avoiding if term.topology_key == key]


def _about(term: IncomingTerm) -> Callable[[PodInfo], bool]:
    return lambda other: term.matches(other.namespace, other.labels)


def _written(term: IncomingTerm) -> str:
    selector = _shown(term.selector)
    if term.namespaces is None:
        return f"{selector} in any namespace"
    return f"{selector} in {', '.join(sorted(term.namespaces)) or 'no namespace'}"


def _shown(selector: CompiledSelector) -> str:
    return "no pod" if selector.is_nothing else str(selector) or "every pod"


def _pods_in(
    state: AffinityState,
    question: object,
    key: str,
    value: str | None,
    is_meant: Callable[[PodInfo], bool],
) -> str:
    """Return the names of matching pods in a domain, or with None in all domains.

    Nodes share domains, so the pods of all domains are collected once per question.
    """
    known = state.facts.get((key, question))
    if known is None:
        known = state.facts[key, question] = {}
        label = state.table.label(key)
        for row, pods in enumerate(state.table.pods):
            met = [
                f"{pod.key} on {state.table.names[row]}" for pod in pods.values() if is_meant(pod)
            ]
            known.setdefault(label[row], []).extend(met)
    found = (
        [pod for pods in known.values() for pod in pods] if value is None else known.get(value, [])
    )
    more = len(found) - _NAMED_MAX
    return ", ".join(found[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
