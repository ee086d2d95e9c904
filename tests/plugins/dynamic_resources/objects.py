"""Short ways to write devices, slices, classes and claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesched.api.core import Node
from kubesched.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from kubesched.api.resource import (
    AllocationResult,
    CapacityRequirements,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.framework.dra.claim_tracker import AllocatedState
from kubesched.framework.dra.devices import DeviceClasses
from kubesched.framework.dra.pools import PoolIndex
from kubesched.plugins.dynamic_resources.allocator import Allocator
from kubesched.plugins.dynamic_resources.node_devices import DeviceMatcher, Features
from kubesched.testing.builders import make_node

DRIVER = "gpu.example.com"
CLASS = "gpu"
NODE = make_node("n1")

TAINT = DeviceTaint(key="broken", effect="NoSchedule")
TOLERATE_ALL = (DeviceToleration(operator="Exists"),)

Value = str | int | bool


def attribute(value: Value) -> DeviceAttribute:
    """An attribute; a text that begins with v is a version."""
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    if value.startswith("v"):
        return DeviceAttribute(version_value=value.removeprefix("v"))
    return DeviceAttribute(string_value=value)


def device(name: str, attributes: Mapping[str, Value] | None = None, **fields: object) -> Device:
    """A device."""
    given = {key: attribute(value) for key, value in (attributes or {}).items()}
    return Device(name=name, attributes=given, **fields)  # type: ignore[arg-type]  # as given


def slice_of(
    devices: Iterable[Device] = (),
    name: str = "s1",
    *,
    driver: str = DRIVER,
    pool: str = "p1",
    generation: int = 1,
    count: int = 1,
    **fields: object,
) -> ResourceSlice:
    """A slice of a pool, by default for all nodes."""
    if not fields.keys() & {"node_name", "node_selector", "per_device_node_selection"}:
        fields.setdefault("all_nodes", True)
    spec = ResourceSliceSpec(
        driver=driver,
        pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
        devices=tuple(devices),
        **fields,  # type: ignore[arg-type]  # as given
    )
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    """Selectors with these expressions."""
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=one)) for one in expressions)


def node_selector(key: str, *values: str, operator: str = "In") -> NodeSelector:
    """A node selector with one expression."""
    expression = NodeSelectorRequirement(key=key, operator=operator, values=values)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(expression,)),))


def device_class(name: str = CLASS, *expressions: str, **fields: object) -> DeviceClass:
    """A class with these selectors."""
    spec = DeviceClassSpec(selectors=selectors(*expressions), **fields)  # type: ignore[arg-type]  # as given
    return DeviceClass(metadata=ObjectMeta(name=name), spec=spec)


def request(name: str = "r", *, count: int = 1, **fields: object) -> DeviceRequest:
    """An exact request."""
    fields.setdefault("device_class_name", CLASS)
    fields.setdefault("allocation_mode", "ExactCount")
    if fields["allocation_mode"] == "ExactCount":
        fields["count"] = count
    return DeviceRequest(name=name, exactly=ExactDeviceRequest(**fields))  # type: ignore[arg-type]  # as given


def alternative(name: str, *, count: int = 1, **fields: object) -> DeviceSubRequest:
    """An alternative of a prioritized list."""
    fields.setdefault("device_class_name", CLASS)
    fields.setdefault("allocation_mode", "ExactCount")
    if fields["allocation_mode"] == "ExactCount":
        fields["count"] = count
    return DeviceSubRequest(name=name, **fields)  # type: ignore[arg-type]  # as given


def first_available(name: str, *alternatives: DeviceSubRequest) -> DeviceRequest:
    """A request with a prioritized list."""
    return DeviceRequest(name=name, first_available=alternatives)


def claim(
    *requests: DeviceRequest,
    name: str = "c1",
    constraints: Sequence[DeviceConstraint] = (),
    allocation: AllocationResult | None = None,
    reserved_for: Sequence[str] = (),
    **metadata: object,
) -> ResourceClaim:
    """A claim; `reserved_for` are uids of pods."""
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=uid, uid=uid) for uid in reserved_for
    )
    metadata.setdefault("uid", f"uid-{name}")
    return ResourceClaim(
        metadata=ObjectMeta(namespace="default", name=name, **metadata),  # type: ignore[arg-type]  # as given
        spec=ResourceClaimSpec(
            devices=DeviceClaim(requests=requests, constraints=tuple(constraints))
        ),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=users),
    )


def result(device_name: str, pool: str = "p1", **fields: object) -> DeviceRequestAllocationResult:
    """One device of an allocation."""
    return DeviceRequestAllocationResult(
        request="r",
        driver=DRIVER,
        pool=pool,
        device=device_name,
        **fields,  # type: ignore[arg-type]  # as given
    )


def allocation_of(*devices: str | DeviceRequestAllocationResult) -> AllocationResult:
    """An allocation of devices of pool p1."""
    results = tuple(result(one) if isinstance(one, str) else one for one in devices)
    return AllocationResult(devices=DeviceAllocationResult(results=results))


def allocated_state(*allocations: AllocationResult) -> AllocatedState:
    """Return the devices of these allocations."""
    state = AllocatedState()
    for one in allocations:
        state.count(one, 1, consumable=True)
    return state


def allocator(
    slices: Iterable[ResourceSlice],
    *,
    classes: Iterable[DeviceClass] | None = None,
    allocated: AllocatedState | None = None,
    features: Features | None = None,
    tries_max: int = 0,
) -> Allocator:
    """An allocator, by default with one class that selects every device."""
    return Allocator(
        allocated or AllocatedState(),
        DeviceClasses([device_class()] if classes is None else classes),
        PoolIndex(slices),
        DeviceMatcher(),
        features or Features(),
        tries_max,
    )


def chosen(
    found: tuple[AllocationResult, ...] | None,
) -> list[list[tuple[str, str]]] | None:
    """Per claim, the requests and devices of a solution; None if there is none."""
    if found is None:
        return None
    return [[(one.request, one.device) for one in each.devices.results] for each in found]


def solve(
    slices: Iterable[ResourceSlice], *claims: ResourceClaim, node: Node = NODE, **options: object
) -> list[list[tuple[str, str]]] | None:
    """What an allocator chooses on a node."""
    return chosen(allocator(slices, **options).allocate(node, claims))  # type: ignore[arg-type]  # as given


def consumes(amount: int) -> tuple[DeviceCounterConsumption, ...]:
    """What a device takes of the counter `memory`."""
    return (
        DeviceCounterConsumption(counter_set="set", counters={"memory": Counter(value=amount)}),
    )


def counted(*amounts: int, total: int) -> list[ResourceSlice]:
    """A pool of devices that share `total`."""
    stock = CounterSet(name="set", counters={"memory": Counter(value=total)})
    parts = [
        device(f"d{at}", consumes_counters=consumes(amount)) for at, amount in enumerate(amounts)
    ]
    return [
        slice_of((), "counters", count=2, shared_counters=(stock,)),
        slice_of(parts, "devices", count=2),
    ]


def share(amount: int, name: str = "r") -> DeviceRequest:
    """A request of a share."""
    return request(name, capacity=CapacityRequirements(requests={"memory": amount}))
