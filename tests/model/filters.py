# ruff: noqa: N802, N803 - the names are those of the formulas in docs/model.md
"""The filters of the model: predicates over a pod, a node and a set of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from kubesched.api.core import (
    Container,
    Node,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Taint,
    Toleration,
)
from kubesched.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from kubesched.api.quantity import Quantity, parse_quantity

from .state import Bound, Objects, On

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that stands for `spec.unschedulable`."""


# 1. Schedulability.


def Filter_1(p: Pod, n: Node, S: Objects) -> bool:
    """The node is schedulable, or the pod tolerates that it is not."""
    return not n.spec.unschedulable or Tolerates(p, CORDON)


# 2. Resources.


def Filter_2(p: Pod, n: Node, S: Objects) -> bool:
    """A pod slot is free, and the pod's requests fit into what is left on the node."""
    left = Left(n, S)
    return left.get("pods", 0) >= 1 and all(
        amount <= left.get(resource, 0) for resource, amount in Request(p).items() if amount > 0
    )


def Request(p: Pod) -> dict[str, Fraction]:
    """Of every resource: the sum over the containers, or the maximum of the init containers."""
    total: dict[str, Fraction] = {}
    for resource, amount in _requests(p.spec.containers):
        total[resource] = total.get(resource, Fraction(0)) + amount
    for resource, amount in _requests(p.spec.init_containers):
        total[resource] = max(total.get(resource, Fraction(0)), amount)
    return total


def Left(n: Node, S: Objects) -> dict[str, Fraction]:
    """What the node can allocate, less what the pods bound to it request; each takes a slot."""
    left = {resource: Amount(text) for resource, text in n.status.allocatable.items()}
    for q in On(n, S):
        for resource, amount in (*Request(q).items(), ("pods", Fraction(1))):
            left[resource] = left.get(resource, Fraction(0)) - amount
    return left


def Amount(text: Quantity) -> Fraction:
    """Return the number of a quantity."""
    amount = parse_quantity(text)
    return amount.unscaled * Fraction(10) ** amount.exponent


def _requests(containers: Iterable[Container]) -> Iterator[tuple[str, Fraction]]:
    for container in containers:
        for resource, text in container.resources.requests.items():
            yield resource, Amount(text)


# 3. Node selector.


def Filter_3(p: Pod, n: Node, S: Objects) -> bool:
    """The node has every label of the pod's node selector, with its value."""
    labels = n.metadata.labels
    return all(labels.get(label) == value for label, value in (p.spec.node_selector or {}).items())


# 4. Taints and tolerations.


def Filter_4(p: Pod, n: Node, S: Objects) -> bool:
    """Every NoSchedule and NoExecute taint is tolerated."""
    return all(Tolerates(p, taint) for taint in n.spec.taints if taint.effect != "PreferNoSchedule")


def Tolerates(p: Pod, taint: Taint) -> bool:
    """Some toleration of the pod matches the taint."""
    return any(Matches(toleration, taint) for toleration in p.spec.tolerations)


def Matches(toleration: Toleration, taint: Taint) -> bool:
    """Exists with the taint's key, or Equal with its key and value; and the same effect.

    A toleration without a key is for every key, one without an effect for every effect.
    """
    return (
        toleration.key in ("", taint.key)
        and toleration.effect in ("", taint.effect)
        and (
            toleration.operator == "Exists"
            or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
        )
    )


# 5. Affinity.


def Filter_5(p: Pod, n: Node, S: Objects) -> bool:
    """Affinity to nodes and pods holds, and no anti-affinity excludes the node."""
    return (
        NodeAffinityHolds(p, n)
        and PodAffinityHolds(p, n, S)
        and not PodAntiAffinityHolds(p, n, S)
        and not IsAvoided(p, n, S)
    )


def NodeAffinityHolds(p: Pod, n: Node) -> bool:
    """Some required node selector term matches the node."""
    required = node_affinity(p).required_during_scheduling_ignored_during_execution
    return required is None or any(TermMatches(term, n) for term in required.node_selector_terms)


def TermMatches(term: NodeSelectorTerm, n: Node) -> bool:
    """Every requirement of the term holds; a term without any matches no node."""
    fields = {"metadata.name": n.metadata.name}
    return bool(term.match_expressions or term.match_fields) and (
        all(Holds(requirement, n.metadata.labels) for requirement in term.match_expressions)
        and all(Holds(requirement, fields) for requirement in term.match_fields)
    )


def Holds(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, labels: Mapping[str, str]
) -> bool:
    """In, NotIn, Exists, DoesNotExist; Gt and Lt on integers."""
    label, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return label in values
        case "NotIn":
            return label not in values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
        case "Gt":
            return _is_integer(label) and int(label or "") > int(values[0])
        case "Lt":
            return _is_integer(label) and int(label or "") < int(values[0])
    raise ValueError(requirement.operator)


def _is_integer(label: str | None) -> bool:
    digits = (label or "").removeprefix("-").removeprefix("+")
    return digits.isascii() and digits.isdigit()


def PodAffinityHolds(p: Pod, n: Node, S: Objects) -> bool:
    """For every required term there is a pod in reach that matches all of the terms.

    If there is none anywhere, and all terms are about p itself, p may be the first of its kind
    on any node that has the terms' topology keys.
    """
    terms = pod_affinity(p).required_during_scheduling_ignored_during_execution
    mates = [q for q in S.Pods if all(About(term, p, q) for term in terms)]
    if not all(term.topology_key in n.metadata.labels for term in terms):
        return False
    if all(any(InReach(term, q, n, S) for q in mates) for term in terms):
        return True
    nobody = not any(HasDomain(term, q, S) for term in terms for q in mates)
    return nobody and all(About(term, p, p) for term in terms)


def PodAntiAffinityHolds(p: Pod, n: Node, S: Objects) -> bool:
    """A required anti-affinity term of p matches a pod in reach."""
    terms = pod_anti_affinity(p).required_during_scheduling_ignored_during_execution
    return any(About(term, p, q) and InReach(term, q, n, S) for term in terms for q in S.Pods)


def IsAvoided(p: Pod, n: Node, S: Objects) -> bool:
    """A required anti-affinity term of a pod in reach matches p."""
    return any(
        About(term, q, p) and InReach(term, q, n, S)
        for q in S.Pods
        for term in pod_anti_affinity(q).required_during_scheduling_ignored_during_execution
    )


def About(term: PodAffinityTerm, owner: Pod, q: Pod) -> bool:
    """The owner's term matches q: by its namespaces and its selector."""
    namespaces = term.namespaces
    if not namespaces and term.namespace_selector is None:
        namespaces = (owner.metadata.namespace,)
    everywhere = term.namespace_selector == LabelSelector()
    return (everywhere or q.metadata.namespace in namespaces) and Selects(term.label_selector, q)


def Selects(selector: LabelSelector | None, q: Pod) -> bool:
    """Every label and requirement of the selector holds; no selector matches nothing."""
    labels = q.metadata.labels
    return selector is not None and (
        all(labels.get(label) == value for label, value in selector.match_labels.items())
        and all(Holds(requirement, labels) for requirement in selector.match_expressions)
    )


def InReach(term: PodAffinityTerm, q: Pod, n: Node, S: Objects) -> bool:
    """Whether q is bound to a node with n's value of the topology key."""
    domain = n.metadata.labels.get(term.topology_key)
    return (
        domain is not None
        and Bound(q, S)
        and S.nodes[q.spec.node_name].metadata.labels.get(term.topology_key) == domain
    )


def HasDomain(term: PodAffinityTerm, q: Pod, S: Objects) -> bool:
    """Whether q is bound to a node that has the label of the topology key."""
    return Bound(q, S) and term.topology_key in S.nodes[q.spec.node_name].metadata.labels


# A pod's affinity; a pod without one has no terms.


def node_affinity(p: Pod) -> NodeAffinity:
    """Return p.spec.affinity.nodeAffinity."""
    affinity = p.spec.affinity
    return (affinity.node_affinity if affinity else None) or NodeAffinity()


def pod_affinity(p: Pod) -> PodAffinity:
    """Return p.spec.affinity.podAffinity."""
    affinity = p.spec.affinity
    return (affinity.pod_affinity if affinity else None) or PodAffinity()


def pod_anti_affinity(p: Pod) -> PodAntiAffinity:
    """Return p.spec.affinity.podAntiAffinity."""
    affinity = p.spec.affinity
    return (affinity.pod_anti_affinity if affinity else None) or PodAntiAffinity()
