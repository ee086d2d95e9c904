"""Changes of what a pod's containers request: the largest amounts with which it fits.

Reads:    resources.requests of containers and init containers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubesched.answers.changes import ChangeKind, SuggestedChange
from kubesched.answers.trial import ChangeTrial
from kubesched.api.core import Container, Pod, PodSpec
from kubesched.api.quantity import Quantity, canonical, milli_value, value
from kubesched.snapshot.pod_info import PodInfo

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
        is_dropped = not milli_value(amount)
        return SuggestedChange(
            ChangeKind.LOWER_REQUEST,
            f"pod {PodInfo(pod).key}",
            self.field,
            before,
            after,
            _lowering(what, before, after, together=not self.container, dropped=is_dropped),
            size=1 - milli_value(amount) / milli_value(self.amount),
        )


def _lowering(what: str, before: str, after: str, *, together: bool, dropped: bool) -> str:
    if dropped:
        return f"drop {what}"
    return (
        f"lower {what} to at most {after}" if together else f"lower {what} from {before} to {after}"
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

        def limited(limit: Quantity, resource: str = resource) -> Pod:
            other = pod
            for field in [request.field for request in requests_of(pod)]:
                # Each change makes another pod, in which the next request is looked up.
                found = next((one for one in requests_of(other) if one.field == field), None)
                is_above = found is not None and milli_value(found.amount) > milli_value(limit)
                if found is not None and found.resource == resource and is_above:
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


def least_that_fits(first: int, last: int, fits: Callable[[int], bool]) -> int | None:
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
