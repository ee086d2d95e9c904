"""Changes of a pod that make it fit, of one field each.

Reads:    resources.requests of the pod and its containers; the fields of a pod that may keep it
          off a node
Invariants: every change that is returned was tried and places the pod.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from kubesched.answers.near_misses import NODE_STATE_TAINTS, near_labels
from kubesched.answers.trial import ChangeKind, ChangeTrial, SuggestedChange
from kubesched.api.core import (
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.api.field_errors import camel_case, child
from kubesched.api.meta import LabelSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.names import is_measured_in_bytes
from kubesched.api.pod_requests import pod_request_amounts
from kubesched.api.quantity import Quantity, canonical, milli_value, value
from kubesched.api.resource import ResourceClaim
from kubesched.api.selectors import required_node_selector
from kubesched.api.tolerations import HARD_EFFECTS, find_untolerated, taint_text
from kubesched.explain.sentences import count, grouped_by
from kubesched.snapshot.node_table import NodeTable

T = TypeVar("T")

_MEBIBYTE: Final = 1 << 20
_REMOVED: Final = msgspec.UNSET

Path: TypeAlias = tuple[str | int, ...]
"""Attributes, keys and positions that lead to a field of an object."""


def _part(item: Any, step: str | int) -> Any:
    return getattr(item, str(step)) if isinstance(item, msgspec.Struct) else item[step]


def _with_value(item: T, path: Path, new: object) -> T:
    """Return an object with another value at a path, or without an element that is `_REMOVED`."""
    step, rest = path[0], path[1:]
    parent: Any = item
    if rest:
        new = _with_value(_part(parent, step), rest, new)
    if isinstance(parent, msgspec.Struct):
        return cast("T", replace(parent, **{str(step): new}))
    if isinstance(parent, dict):
        return cast("T", {**parent, step: new})
    kept = () if new is _REMOVED else (new,)
    return cast("T", (*parent[: int(step)], *kept, *parent[int(step) + 1 :]))


def _field_text(path: Path) -> str:
    """Return a path as Kubernetes writes it: `spec.containers[0].ports[1].hostPort`."""
    return child("", *(step if isinstance(step, int) else camel_case(step) for step in path))


class ContainerRequest(NamedTuple):
    """What a container requests of one resource, or the pod, or all containers together.

    `field` is the path as Kubernetes writes it, and `paths` are where the amounts are. `container`
    is empty for the pod and for all containers together; of these, `amount` is the largest request.
    """

    field: str
    container: str
    resource: str
    amount: Quantity
    paths: tuple[Path, ...]

    def put(self, pod: Pod, amount: Quantity) -> Pod:
        """Return a pod that requests this amount where it requests more."""
        for path in self.paths:
            if milli_value(reduce(_part, path, pod)) > milli_value(amount):
                pod = _with_value(pod, path, amount)
        return pod

    def lowered(self, pod: Pod, amount: Quantity) -> SuggestedChange:
        """Return the change of the pod to a smaller amount."""
        before, after = canonical(self.amount), canonical(amount)
        if self.container:
            what = f"the {self.resource} request of container {self.container}"
        elif len(self.paths) == 1:
            what = f"the {self.resource} request of the pod"
        else:
            what = f"every {self.resource} request"
        if not milli_value(amount):
            sentence = f"drop {what}"
        elif len(self.paths) == 1:
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
            size=len(self.paths) - milli_value(amount) / milli_value(self.amount),
        )


def _containers_of(pod: Pod) -> Iterator[tuple[Path, Container]]:
    """Yield the containers that decide about nodes, each with its path."""
    for attribute in ("init_containers", "containers"):
        for at, container in enumerate(getattr(pod.spec, attribute)):
            yield ("spec", attribute, at), container


def requests_of(pod: Pod) -> Iterator[ContainerRequest]:
    """Yield what the pod's containers request."""
    for place, container in _containers_of(pod):
        path = (*place, "resources", "requests")
        for resource, amount in sorted(container.resources.requests.items()):
            if milli_value(amount):
                field = f"{_field_text(path)}.{resource}"
                paths = ((*path, resource),)
                yield ContainerRequest(field, container.name, resource, amount, paths)


def request_limits(pod: Pod) -> Iterator[ContainerRequest]:
    """Yield, for each resource that several containers request, their requests together."""
    for resource, requests in grouped_by(requests_of(pod), lambda one: one.resource).items():
        if len(requests) > 1:
            largest = max((request.amount for request in requests), key=milli_value)
            paths = tuple(path for request in requests for path in request.paths)
            field = f"spec.*.resources.requests.{resource}"
            yield ContainerRequest(field, "", resource, largest, paths)


def _pod_level_requests(pod: Pod) -> Iterator[ContainerRequest]:
    """Yield what the pod requests as a whole."""
    resources = pod.spec.resources
    for resource, amount in sorted(resources.requests.items() if resources else ()):
        path = ("spec", "resources", "requests", resource)
        yield ContainerRequest(f"{_field_text(path[:3])}.{resource}", "", resource, amount, (path,))


def _is_valid(request: ContainerRequest, pod: Pod, amount: Quantity) -> bool:
    """Whether a pod may request an amount as a whole: its containers request no more."""
    alone = replace(pod, spec=replace(pod.spec, overhead={}))
    least = pod_request_amounts(alone, pod_level=False).get(request.resource)
    return least is None or least.milli_value() <= milli_value(amount)


def _lower_requests(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Yield the change of each request after which the pod is placed."""
    for request in (*requests_of(trial.pod), *_pod_level_requests(trial.pod)):
        amount = most_that_fits(trial, trial.pod, request)
        if amount is not None and (request.container or _is_valid(request, trial.pod, amount)):
            node = trial.node_for(request.put(trial.pod, amount))
            yield replace(request.lowered(trial.pod, amount), node=node)


def most_that_fits(trial: ChangeTrial, pod: Pod, request: ContainerRequest) -> Quantity | None:
    """Return the largest amount below a request with which a pod fits, None if none does."""
    write, units = _in_units(request.resource, request.amount)

    def fits(cut: int) -> bool:
        return bool(trial.node_for(request.put(pod, write(units - cut))))

    least_cut = _least_that_fits(1, units, fits)
    return None if least_cut is None else write(units - least_cut)


def _in_units(resource: str, requested: Quantity) -> tuple[Callable[[int], str], int]:
    """Return how to write a number of units, and how many units are requested, rounded up.

    Units are those that people count in: millicores, mebibytes, and one of anything else.
    """
    if resource == "cpu":
        return (lambda number: f"{number}m"), milli_value(requested)
    amount = value(requested)
    if is_measured_in_bytes(resource) and amount >= _MEBIBYTE:
        return (lambda number: f"{number}Mi"), -(-amount // _MEBIBYTE)
    return str, amount


_Asking: TypeAlias = Callable[[int], ResourceClaim]


def _lower_device_counts(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Yield the change of each number of devices, in the pod's claims, after which it is placed."""
    pod, objects = trial.pod, trial.cluster.cache.objects
    for entry, claim_name in pod.resource_claims():
        claim = objects.get(ResourceClaim, claim_name, pod.metadata.namespace)
        if claim is None or claim.status.allocation is not None:
            continue
        template = entry.resource_claim_template_name
        kind = "ResourceClaimTemplate" if template else "ResourceClaim"
        name = template or claim_name
        for at, request in enumerate(claim.spec.devices.requests):
            wanted = 0 if request.exactly is None else request.exactly.count
            path = ("spec", "devices", "requests", at, "exactly", "count")
            asking = partial(_with_value, claim, path)

            def node_for(cut: int, asking: _Asking = asking, wanted: int = wanted) -> str:
                return trial.node_for_with(asking(wanted - cut))

            cut = _least_that_fits(1, wanted - 1, node_for)
            if cut is None:
                continue
            left = wanted - cut
            yield SuggestedChange(
                ChangeKind.LOWER_REQUEST,
                f"{kind.lower()} {pod.metadata.namespace}/{name}",
                _field_text(path),
                str(wanted),
                str(left),
                f"replace {kind} {name} by one whose request {request.name} asks for "
                f"{count(left, 'device')}, not {wanted}",
                node_for(cut),
                cut / wanted,
            )


def _least_that_fits(first: int, last: int, fits: Callable[[int], object]) -> int | None:
    """Return the least number of a range that fits, None if not even the last one does.

    Whatever is larger than a number that fits must fit, too.
    """
    if first > last or not fits(last):
        return None
    numbers = range(first, last)
    return first + bisect_left(numbers, True, key=lambda number: bool(fits(number)))


# All changes of one field.

_MAX_SKEW_TRIED: Final = 1 << 16


class Draft(NamedTuple):
    """A changed pod that is still to be tried."""

    change: SuggestedChange
    pod: Pod


def pod_changes(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    """Yield the changes of one field of the pod after which it is placed."""
    for draft in drafts(trial.pod, trial.cluster.cache.nodes):
        if node := trial.node_for(draft.pod):
            yield replace(draft.change, node=node)
    yield from _lower_requests(trial)
    yield from _lower_device_counts(trial)
    yield from _raise_max_skews(trial)


def drafts(pod: Pod, nodes: NodeTable) -> Iterator[Draft]:
    """Yield changes of one field that may help; amounts, which need a search, are left out."""
    yield from _without_gate(pod)
    yield from _with_tolerations(pod, nodes)
    yield from _with_other_node_selector(pod, nodes)
    yield from _with_other_node_affinity(pod, nodes)
    yield from _with_fewer_pod_terms(pod)
    yield from _with_softer_spread(pod)
    yield from _without_host_ports(pod)


def draft_of(
    pod: Pod,
    path: Path,
    new: object,
    kind: ChangeKind,
    sentence: str,
    before: str = "",
    after: str = "",
    *,
    field: str = "",
    size: float = 0.0,
) -> Draft:
    """Return a change of what is at a path; `field` is its name if it is only a part of that."""
    field = field or _field_text(path)
    change = SuggestedChange(
        kind, f"pod {pod.metadata.key}", field, before, after, sentence, size=size
    )
    return Draft(change, _with_value(pod, path, new))


# Gates, tolerations.


def _without_gate(pod: Pod) -> Iterator[Draft]:
    for at, gate in enumerate(pod.spec.scheduling_gates):
        path, sentence = ("spec", "scheduling_gates", at), f"remove the scheduling gate {gate.name}"
        yield draft_of(pod, path, _REMOVED, ChangeKind.REMOVE_GATE, sentence, gate.name)


def _with_tolerations(pod: Pod, nodes: NodeTable) -> Iterator[Draft]:
    """Yield a toleration for each taint that some node has and the pod does not tolerate.

    Taints that show a node's state, such as not-ready, are left out: a pod that tolerates them
    would go where it cannot run.
    """
    taints = {
        (taint.key, taint.value, taint.effect): taint
        for listed in nodes.taints.values
        for taint in listed
        if taint.effect in HARD_EFFECTS and not taint.key.startswith(NODE_STATE_TAINTS)
    }
    for _, taint in sorted(taints.items()):
        if find_untolerated([taint], pod.spec.tolerations) is None:
            continue
        new = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        path, text = ("spec", "tolerations", len(pod.spec.tolerations)), taint_text(taint)
        sentence = f"tolerate the taint {text}"
        yield draft_of(pod, path, new, ChangeKind.ADD_TOLERATION, sentence, after=text)


# Selection of nodes.


def _with_other_node_selector(pod: Pod, nodes: NodeTable) -> Iterator[Draft]:
    selector, path = pod.spec.node_selector or {}, ("spec", "node_selector")
    for key, wanted in sorted(selector.items()):
        field = f"{_field_text(path)}[{key}]"
        rest = {name: text for name, text in selector.items() if name != key}
        for near_key, near in near_labels(nodes, key, wanted):
            other = {**rest, near_key: near}
            after = near if near_key == key else f"{near_key}={near}"
            sentence = _correction(key, wanted, near_key, near)
            kind = ChangeKind.CORRECT_VALUE
            yield draft_of(pod, path, other, kind, sentence, wanted, after, field=field)
        sentence = f"drop the node selector {key}={wanted}"
        yield draft_of(pod, path, rest, ChangeKind.DROP_CONSTRAINT, sentence, wanted, field=field)


def _correction(key: str, wanted: str, near_key: str, near: str) -> str:
    before = wanted if near_key == key else f"{key}={wanted}"
    return f"ask for {near_key}={near} instead of {before}"


_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"
_AFFINITY: Final = ("spec", "affinity")


def _with_other_node_affinity(pod: Pod, nodes: NodeTable) -> Iterator[Draft]:
    required = required_node_selector(pod.spec)
    if required is None:
        return
    whole: Path = (*_AFFINITY, "node_affinity", _REQUIRED)
    for term_at, term in enumerate(required.node_selector_terms):
        for attribute in ("match_expressions", "match_fields"):
            listed: tuple[NodeSelectorRequirement, ...] = getattr(term, attribute)
            for at, requirement in enumerate(listed):
                path = (*whole, "node_selector_terms", term_at, attribute, at)
                text = _requirement_text(requirement)
                for near_key, near in _near_labels_of(nodes, requirement):
                    correct = replace(requirement, key=near_key, values=(near,))
                    sentence = _correction(requirement.key, requirement.values[0], near_key, near)
                    after = _requirement_text(correct)
                    kind = ChangeKind.CORRECT_VALUE
                    yield draft_of(pod, path, correct, kind, sentence, text, after)
                # A term without requirements matches no node.
                if len(term.match_expressions) + len(term.match_fields) > 1:
                    sentence = f"drop the node affinity {text}"
                    yield draft_of(pod, path, _REMOVED, ChangeKind.DROP_CONSTRAINT, sentence, text)
    text = " or ".join(_term_text(term) for term in required.node_selector_terms)
    sentence = f"drop the node affinity {text}"
    yield draft_of(pod, whole, None, ChangeKind.DROP_CONSTRAINT, sentence, text, size=0.5)


def _near_labels_of(
    nodes: NodeTable, requirement: NodeSelectorRequirement
) -> list[tuple[str, str]]:
    if requirement.operator != "In" or len(requirement.values) != 1:
        return []
    return near_labels(nodes, requirement.key, requirement.values[0])


def _requirement_text(requirement: NodeSelectorRequirement) -> str:
    values = ", ".join(requirement.values)
    match requirement.operator:
        case "In" if len(requirement.values) == 1:
            return f"{requirement.key}={values}"
        case "Exists" | "DoesNotExist":
            return f"{requirement.key} {requirement.operator}"
        case operator:
            return f"{requirement.key} {operator} ({values})"


def _term_text(term: NodeSelectorTerm) -> str:
    requirements = (*term.match_expressions, *term.match_fields)
    return " and ".join(_requirement_text(one) for one in requirements) or "that matches no node"


# Other pods.


def required_pod_terms(pod: Pod) -> Iterator[tuple[Path, str, tuple[PodAffinityTerm, ...]]]:
    """Yield the required terms of pod affinity and anti-affinity: path, words, and the terms."""
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for attribute, words in (
        ("pod_affinity", "pod affinity"),
        ("pod_anti_affinity", "pod anti-affinity"),
    ):
        side: PodAffinity | PodAntiAffinity | None = getattr(affinity, attribute)
        if side is not None:
            terms = side.required_during_scheduling_ignored_during_execution
            yield (*_AFFINITY, attribute, _REQUIRED), words, terms


def _with_fewer_pod_terms(pod: Pod) -> Iterator[Draft]:
    for path, words, terms in required_pod_terms(pod):
        for at, term in enumerate(terms):
            text = _pod_term_text(term)
            sentence = f"drop the {words} to {text}"
            yield draft_of(pod, (*path, at), _REMOVED, ChangeKind.DROP_CONSTRAINT, sentence, text)


def _pod_term_text(term: PodAffinityTerm) -> str:
    pods = "no pod" if term.label_selector is None else _selector_text(term.label_selector)
    places = [*term.namespaces]
    if term.namespace_selector is not None:
        labels = _selector_text(term.namespace_selector)
        places.append(f"namespaces with {labels}" if labels else "any namespace")
    where = f" in {' or '.join(places)}" if places else ""
    return f"{pods or 'any pod'}{where} by {term.topology_key}"


def _selector_text(selector: LabelSelector) -> str:
    parts = [f"{key}={text}" for key, text in sorted(selector.match_labels.items())]
    parts += [
        f"{one.key} {one.operator.lower()} ({', '.join(one.values)})"
        for one in selector.match_expressions
    ]
    return ", ".join(parts)


def _hard_spreads(pod: Pod) -> Iterator[tuple[Path, TopologySpreadConstraint]]:
    for at, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            yield ("spec", "topology_spread_constraints", at), constraint


def _with_softer_spread(pod: Pod) -> Iterator[Draft]:
    for path, constraint in _hard_spreads(pod):
        hard, soft = constraint.when_unsatisfiable, "ScheduleAnyway"
        other = replace(constraint, when_unsatisfiable=soft, min_domains=None)
        field = _field_text((*path, "when_unsatisfiable"))
        kind, over = ChangeKind.DROP_CONSTRAINT, f"the spread over {constraint.topology_key}"
        sentence = f"make {over} a preference"
        yield draft_of(pod, path, other, kind, sentence, hard, soft, field=field)
        if constraint.min_domains is not None:
            sentence, before = f"drop minDomains of {over}", str(constraint.min_domains)
            yield draft_of(pod, (*path, "min_domains"), None, kind, sentence, before)


def _raise_max_skews(trial: ChangeTrial) -> Iterator[SuggestedChange]:
    pod = trial.pod
    for place, constraint in _hard_spreads(pod):
        path = (*place, "max_skew")

        def node_for(skew: int, path: Path = path) -> str:
            return trial.node_for(_with_value(pod, path, skew))

        now = constraint.max_skew
        least = _least_that_fits(now + 1, _MAX_SKEW_TRIED, node_for)
        if least is not None:
            yield SuggestedChange(
                ChangeKind.RAISE_MAX_SKEW,
                f"pod {pod.metadata.key}",
                _field_text(path),
                str(now),
                str(least),
                f"raise maxSkew over {constraint.topology_key} from {now} to {least}",
                node_for(least),
                float(least - now),
            )


# Containers.


def _without_host_ports(pod: Pod) -> Iterator[Draft]:
    for place, container in _containers_of(pod):
        for at, port in enumerate(container.ports):
            if port.host_port:
                path = (*place, "ports", at, "host_port")
                sentence = f"drop the host port {port.host_port} of container {container.name}"
                before = str(port.host_port)
                yield draft_of(pod, path, 0, ChangeKind.DROP_CONSTRAINT, sentence, before)
