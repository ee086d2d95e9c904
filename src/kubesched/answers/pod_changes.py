"""Changes of a pod that make it fit: one field each, found by trying.

Reads:    resources.requests of containers and init containers; the fields of a pod that may keep it
          off a node
Invariants: every change that is returned was tried and places the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubesched.answers.near_misses import near_labels, requirement_text, term_text
from kubesched.answers.trial import ChangeKind, ChangeTrial, SuggestedChange
from kubesched.api.core import (
    Affinity,
    Container,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.api.meta import LabelSelector
from kubesched.api.quantity import Quantity, canonical, milli_value, value
from kubesched.api.resource import ResourceClaim
from kubesched.api.tolerations import HARD_EFFECTS, find_untolerated, taint_text
from kubesched.explain.sentences import count

_MEBIBYTE: Final = 1 << 20


def containers_of(spec: PodSpec) -> Iterator[tuple[str, Container, Callable[[Container], PodSpec]]]:
    """Yield each container with its field, and how to put another one in its place."""
    for attribute, name in (("init_containers", "initContainers"), ("containers", "containers")):
        listed: tuple[Container, ...] = getattr(spec, attribute)
        for at, container in enumerate(listed):

            def put(
                new: Container,
                attribute: str = attribute,
                listed: tuple[Container, ...] = listed,
                at: int = at,
            ) -> PodSpec:
                changed: PodSpec = replace(
                    spec, **{attribute: (*listed[:at], new, *listed[at + 1 :])}
                )
                return changed

            yield f"spec.{name}[{at}]", container, put


class ContainerRequest(NamedTuple):
    """What a container requests of one resource.

    Attributes:
        field: The field's path.
        container: The container's name; empty for all containers together.
        resource: The resource's name.
        amount: What is requested; of all containers together, the largest request.
        put: Returns the pod with another amount, or with no request above it.
    """

    field: str
    container: str
    resource: str
    amount: Quantity
    put: Callable[[Quantity], Pod]

    def lowered(self, pod: Pod, amount: Quantity) -> SuggestedChange:
        """Return the change of the pod to a smaller amount."""
        before, after = canonical(self.amount), canonical(amount)
        if self.container:
            what = f"the {self.resource} request of container {self.container}"
        else:
            what = f"every {self.resource} request"
        if not milli_value(amount):
            sentence = f"drop {what}"
        elif self.container:
            sentence = f"lower {what} from {before} to {after}"
        else:
            sentence = f"lower {what} to at most {after}"
        return SuggestedChange(
            ChangeKind.LOWER_REQUEST,
            f"pod {pod.metadata.key}",
            self.field,
            before,
            after,
            sentence,
            size=1 - milli_value(amount) / milli_value(self.amount),
        )


def requests_of(pod: Pod) -> Iterator[ContainerRequest]:
    """Yield what the pod's containers request."""
    for field, container, put in containers_of(pod.spec):
        for resource, amount in sorted(container.resources.requests.items()):

            def requesting(
                other: Quantity,
                resource: str = resource,
                container: Container = container,
                put: Callable[[Container], PodSpec] = put,
            ) -> Pod:
                resources = container.resources
                requests = {**resources.requests, resource: other}
                changed = replace(container, resources=replace(resources, requests=requests))
                return replace(pod, spec=put(changed))

            if milli_value(amount):
                place = f"{field}.resources.requests.{resource}"
                yield ContainerRequest(place, container.name, resource, amount, requesting)


def request_limits(pod: Pod) -> Iterator[ContainerRequest]:
    """Yield, for each resource that several containers request, their requests together."""
    by_resource: dict[str, list[ContainerRequest]] = {}
    for request in requests_of(pod):
        by_resource.setdefault(request.resource, []).append(request)
    for resource, requests in by_resource.items():
        if len(requests) == 1:
            continue

        def limited(limit: Quantity, requests: Sequence[ContainerRequest] = tuple(requests)) -> Pod:
            other = pod
            for request in requests:
                # Each change makes another pod, in which the next request is looked up.
                found = next(one for one in requests_of(other) if one.field == request.field)
                if milli_value(found.amount) > milli_value(limit):
                    other = found.put(limit)
            return other

        largest = max((request.amount for request in requests), key=milli_value)
        yield ContainerRequest(
            f"spec.*.resources.requests.{resource}", "", resource, largest, limited
        )


def lower_requests(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Yield the change of each request after which the pod is placed."""
    for request in requests_of(trial.pod):
        amount = most_that_fits(trial, request, request.amount)
        if amount is not None:
            node = trial.node_for(request.put(amount))
            yield replace(request.lowered(trial.pod, amount), node=node)


def most_that_fits(
    trial: ChangeTrial, request: ContainerRequest, limit: Quantity
) -> Quantity | None:
    """Return the largest amount below a limit with which the pod fits, None if none does."""
    write, units = _in_units(request.resource, limit)

    def fits(cut: int) -> bool:
        return bool(trial.node_for(request.put(write(units - cut))))

    least_cut = least_that_fits(1, units, fits)
    return None if least_cut is None else write(units - least_cut)


def _in_units(resource: str, requested: Quantity) -> tuple[Callable[[int], str], int]:
    """Return how to write a number of units, and how many units are requested, rounded up.

    Units are those that people count in: millicores, mebibytes, and one of anything else.
    """
    if resource == "cpu":
        return (lambda number: f"{number}m"), milli_value(requested)
    amount = value(requested)
    is_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    if is_bytes and amount >= _MEBIBYTE:
        return (lambda number: f"{number}Mi"), -(-amount // _MEBIBYTE)
    return str, amount


def _lower_device_counts(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Yield the change of each number of devices, in the pod's claims, after which it is placed."""
    pod, objects = trial.pod, trial.cluster.cache.objects
    generated = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or generated.get(entry.name) or ""
        claim = objects.get(ResourceClaim, name, pod.metadata.namespace)
        if claim is None or claim.status.allocation is not None:
            continue
        template = entry.resource_claim_template_name
        kind, name = ("ResourceClaimTemplate", template) if template else ("ResourceClaim", name)
        for at, request in enumerate(claim.spec.devices.requests):
            wanted = 0 if request.exactly is None else request.exactly.count

            def node_for(cut: int, claim: ResourceClaim = claim, at: int = at) -> str:
                return trial.node_for_with(_with_fewer_devices(claim, at, cut))

            cut = least_that_fits(1, wanted - 1, node_for)
            if cut is None:
                continue
            left = wanted - cut
            yield SuggestedChange(
                ChangeKind.LOWER_REQUEST,
                f"{kind.lower()} {pod.metadata.namespace}/{name}",
                f"spec.devices.requests[{at}].exactly.count",
                str(wanted),
                str(left),
                f"replace {kind} {name} by one whose request {request.name} asks for "
                f"{count(left, 'device')}, not {wanted}",
                node_for(cut),
                cut / wanted,
            )


def _with_fewer_devices(claim: ResourceClaim, at: int, cut: int) -> ResourceClaim:
    requests = [*claim.spec.devices.requests]
    exactly = requests[at].exactly
    assert exactly is not None, "checked before"
    requests[at] = replace(requests[at], exactly=replace(exactly, count=exactly.count - cut))
    devices = replace(claim.spec.devices, requests=tuple(requests))
    return replace(claim, spec=replace(claim.spec, devices=devices))


def least_that_fits(first: int, last: int, fits: Callable[[int], object]) -> int | None:
    """Return the least number of a range that fits, None if not even the last one does.

    Whatever is larger than a number that fits must fit, too.
    """
    if first > last or not fits(last):
        return None
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return high


# All changes of one field.

_MAX_SKEW_TRIED: Final = 1 << 16
_NODE_STATE_TAINTS: Final = "node.kubernetes.io/"


class Draft(NamedTuple):
    """A changed pod that is still to be tried."""

    change: SuggestedChange
    pod: Pod


def pod_changes(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Yield the changes of one field of the pod after which it is placed."""
    for draft in drafts(trial):
        if node := trial.node_for(draft.pod):
            yield replace(draft.change, node=node)
    yield from lower_requests(trial)
    yield from _lower_device_counts(trial)
    yield from _raise_max_skews(trial)


def drafts(trial: ChangeTrial) -> Iterator[Draft]:
    """Yield changes of one field that may help; amounts, which need a search, are left out."""
    yield from _without_gate(trial.pod)
    yield from _with_tolerations(trial)
    yield from _with_other_node_selector(trial)
    yield from _with_other_node_affinity(trial)
    yield from _with_fewer_pod_terms(trial.pod)
    yield from _with_softer_spread(trial.pod)
    yield from _without_host_ports(trial.pod)


def _draft(
    pod: Pod,
    spec: PodSpec,
    kind: ChangeKind,
    field: str,
    sentence: str,
    before: str = "",
    after: str = "",
    size: float = 0.0,
) -> Draft:
    change = SuggestedChange(
        kind, f"pod {pod.metadata.key}", field, before, after, sentence, size=size
    )
    return Draft(change, replace(pod, spec=spec))


# Gates, tolerations.


def _without_gate(pod: Pod) -> Iterator[Draft]:
    gates = pod.spec.scheduling_gates
    for at, gate in enumerate(gates):
        spec = replace(pod.spec, scheduling_gates=(*gates[:at], *gates[at + 1 :]))
        sentence = f"remove the scheduling gate {gate.name}"
        field = f"spec.schedulingGates[{at}]"
        yield _draft(pod, spec, ChangeKind.REMOVE_GATE, field, sentence, before=gate.name)


def _with_tolerations(trial: ChangeTrial) -> Iterator[Draft]:
    """Yield a toleration for each taint that some node has and the pod does not tolerate.

    Taints that show a node's state, such as not-ready, are left out: a pod that tolerates them
    would go where it cannot run.
    """
    pod = trial.pod
    taints = {
        (taint.key, taint.value, taint.effect): taint
        for listed in trial.cluster.cache.nodes.taints.values
        for taint in listed
        if taint.effect in HARD_EFFECTS and not taint.key.startswith(_NODE_STATE_TAINTS)
    }
    for taint in (taints[key] for key in sorted(taints)):
        if find_untolerated([taint], pod.spec.tolerations) is None:
            continue
        new = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        spec = replace(pod.spec, tolerations=(*pod.spec.tolerations, new))
        text = taint_text(taint)
        yield _draft(
            pod,
            spec,
            ChangeKind.ADD_TOLERATION,
            f"spec.tolerations[{len(pod.spec.tolerations)}]",
            f"tolerate the taint {text}",
            after=text,
        )


# Selection of nodes.


def _with_other_node_selector(trial: ChangeTrial) -> Iterator[Draft]:
    pod = trial.pod
    selector = pod.spec.node_selector or {}
    for key, wanted in sorted(selector.items()):
        field = f"spec.nodeSelector[{key}]"
        rest = {name: text for name, text in selector.items() if name != key}
        for near_key, near in near_labels(trial.cluster.cache.nodes, key, wanted):
            spec = replace(pod.spec, node_selector={**rest, near_key: near})
            after = near if near_key == key else f"{near_key}={near}"
            sentence = _correction(key, wanted, near_key, near)
            yield _draft(pod, spec, ChangeKind.CORRECT_VALUE, field, sentence, wanted, after)
        spec = replace(pod.spec, node_selector=rest)
        sentence = f"drop the node selector {key}={wanted}"
        yield _draft(pod, spec, ChangeKind.DROP_CONSTRAINT, field, sentence, wanted)


def _correction(key: str, wanted: str, near_key: str, near: str) -> str:
    before = wanted if near_key == key else f"{key}={wanted}"
    return f"ask for {near_key}={near} instead of {before}"


_NODE_AFFINITY: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def _with_other_node_affinity(trial: ChangeTrial) -> Iterator[Draft]:
    pod = trial.pod
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return

    def selecting(selector: NodeSelector | None) -> PodSpec:
        assert affinity.node_affinity is not None, "checked above"
        node_affinity = replace(
            affinity.node_affinity, required_during_scheduling_ignored_during_execution=selector
        )
        return replace(pod.spec, affinity=replace(affinity, node_affinity=node_affinity))

    for field, requirement, selector in _without_one_requirement(required):
        text = requirement_text(requirement)
        for near_key, near in _near_labels_of(trial, requirement):
            correct = replace(requirement, key=near_key, values=(near,))
            other = _with_requirement(required, requirement, correct)
            sentence = _correction(requirement.key, requirement.values[0], near_key, near)
            yield _draft(
                pod,
                selecting(other),
                ChangeKind.CORRECT_VALUE,
                f"{_NODE_AFFINITY}.{field}",
                sentence,
                text,
                requirement_text(correct),
            )
        if selector is not None:
            yield _draft(
                pod,
                selecting(selector),
                ChangeKind.DROP_CONSTRAINT,
                f"{_NODE_AFFINITY}.{field}",
                f"drop the node affinity {text}",
                text,
            )
    whole = " or ".join(term_text(term) for term in required.node_selector_terms)
    yield _draft(
        pod,
        selecting(None),
        ChangeKind.DROP_CONSTRAINT,
        _NODE_AFFINITY,
        f"drop the node affinity {whole}",
        whole,
        size=0.5,
    )


def _without_one_requirement(
    required: NodeSelector,
) -> Iterator[tuple[str, NodeSelectorRequirement, NodeSelector | None]]:
    """Yield each requirement's field, and the selector without it; None if no term is left."""
    terms = required.node_selector_terms
    for at, term in enumerate(terms):
        for name, attribute in (
            ("matchExpressions", "match_expressions"),
            ("matchFields", "match_fields"),
        ):
            listed: tuple[NodeSelectorRequirement, ...] = getattr(term, attribute)
            for index, requirement in enumerate(listed):
                left = (*listed[:index], *listed[index + 1 :])
                smaller = replace(term, **{attribute: left})
                field = f"nodeSelectorTerms[{at}].{name}[{index}]"
                # A term without requirements matches no node.
                is_empty = not (smaller.match_expressions or smaller.match_fields)
                other = None if is_empty else _with_term(required, at, smaller)
                yield field, requirement, other


def _with_term(required: NodeSelector, at: int, term: NodeSelectorTerm) -> NodeSelector:
    terms = required.node_selector_terms
    return replace(required, node_selector_terms=(*terms[:at], term, *terms[at + 1 :]))


def _with_requirement(
    required: NodeSelector, old: NodeSelectorRequirement, new: NodeSelectorRequirement
) -> NodeSelector:
    terms = tuple(
        replace(
            term,
            match_expressions=tuple(
                new if requirement is old else requirement for requirement in term.match_expressions
            ),
        )
        for term in required.node_selector_terms
    )
    return replace(required, node_selector_terms=terms)


def _near_labels_of(
    trial: ChangeTrial, requirement: NodeSelectorRequirement
) -> list[tuple[str, str]]:
    if requirement.operator != "In" or len(requirement.values) != 1:
        return []
    return near_labels(trial.cluster.cache.nodes, requirement.key, requirement.values[0])


# Other pods.


def _with_fewer_pod_terms(pod: Pod) -> Iterator[Draft]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    sides: tuple[tuple[str, str, str, PodAffinity | PodAntiAffinity | None], ...] = (
        ("pod_affinity", "podAffinity", "pod affinity", affinity.pod_affinity),
        ("pod_anti_affinity", "podAntiAffinity", "pod anti-affinity", affinity.pod_anti_affinity),
    )
    for attribute, name, words, side in sides:
        terms = () if side is None else side.required_during_scheduling_ignored_during_execution
        for at, term in enumerate(terms):
            assert side is not None, "it has terms"
            left = (*terms[:at], *terms[at + 1 :])
            other = replace(side, required_during_scheduling_ignored_during_execution=left)
            smaller: Affinity = replace(affinity, **{attribute: other})
            text = _pod_term_text(term)
            yield _draft(
                pod,
                replace(pod.spec, affinity=smaller),
                ChangeKind.DROP_CONSTRAINT,
                f"spec.affinity.{name}.requiredDuringSchedulingIgnoredDuringExecution[{at}]",
                f"drop the {words} to {text}",
                text,
            )


def _pod_term_text(term: PodAffinityTerm) -> str:
    selector = term.label_selector or LabelSelector()
    parts = [f"{key}={text}" for key, text in sorted((selector.match_labels or {}).items())]
    parts += [
        f"{one.key} {one.operator.lower()} ({', '.join(one.values)})"
        for one in selector.match_expressions
    ]
    return f"{', '.join(parts) or 'any pod'} by {term.topology_key}"


def _with_softer_spread(pod: Pod) -> Iterator[Draft]:
    constraints = pod.spec.topology_spread_constraints
    for at, constraint in enumerate(constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        field = f"spec.topologySpreadConstraints[{at}]"
        soft = replace(constraint, when_unsatisfiable="ScheduleAnyway", min_domains=None)
        yield _draft(
            pod,
            _with_constraint(pod.spec, at, soft),
            ChangeKind.DROP_CONSTRAINT,
            f"{field}.whenUnsatisfiable",
            f"make the spread over {constraint.topology_key} a preference",
            constraint.when_unsatisfiable,
            soft.when_unsatisfiable,
        )
        if constraint.min_domains is not None:
            yield _draft(
                pod,
                _with_constraint(pod.spec, at, replace(constraint, min_domains=None)),
                ChangeKind.DROP_CONSTRAINT,
                f"{field}.minDomains",
                f"drop minDomains of the spread over {constraint.topology_key}",
                str(constraint.min_domains),
            )


def _with_constraint(spec: PodSpec, at: int, new: TopologySpreadConstraint) -> PodSpec:
    old = spec.topology_spread_constraints
    return replace(spec, topology_spread_constraints=(*old[:at], new, *old[at + 1 :]))


def _raise_max_skews(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    pod = trial.pod
    for at, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue

        def with_skew(skew: int, at: int = at, old: TopologySpreadConstraint = constraint) -> Pod:
            spec = _with_constraint(pod.spec, at, replace(old, max_skew=skew))
            return replace(pod, spec=spec)

        def fits(skew: int, pod_with: Callable[[int], Pod] = with_skew) -> bool:
            return bool(trial.node_for(pod_with(skew)))

        least = least_that_fits(constraint.max_skew + 1, _MAX_SKEW_TRIED, fits)
        if least is not None:
            yield SuggestedChange(
                ChangeKind.RAISE_MAX_SKEW,
                f"pod {pod.metadata.key}",
                f"spec.topologySpreadConstraints[{at}].maxSkew",
                str(constraint.max_skew),
                str(least),
                f"raise maxSkew over {constraint.topology_key} from {constraint.max_skew} to "
                f"{least}",
                trial.node_for(with_skew(least)),
                float(least - constraint.max_skew),
            )


# Containers.


def _without_host_ports(pod: Pod) -> Iterator[Draft]:
    for field, container, put in containers_of(pod.spec):
        for at, port in enumerate(container.ports):
            if not port.host_port:
                continue
            ports = (*container.ports[:at], replace(port, host_port=0), *container.ports[at + 1 :])
            yield _draft(
                pod,
                put(replace(container, ports=ports)),
                ChangeKind.DROP_CONSTRAINT,
                f"{field}.ports[{at}].hostPort",
                f"drop the host port {port.host_port} of container {container.name}",
                str(port.host_port),
            )
