"""The search for devices: tables of upstream facts, and a twin that enumerates everything."""

from __future__ import annotations

import pytest

from kubesched.api.resource import (
    Device,
    DeviceCapacity,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceTaint,
    OpaqueDeviceConfiguration,
    ResourceClaim,
)
from kubesched.framework.dra.pools import AllocationError
from kubesched.plugins.dynamic_resources.allocator import (
    KnownDevices,
    NodeRejected,
    SearchExhausted,
)
from kubesched.plugins.dynamic_resources.node_devices import Features
from kubesched.testing.builders import make_node
from tests.plugins.dynamic_resources.objects import (
    CLASS,
    DRIVER,
    NODE,
    TAINT,
    TOLERATE_ALL,
    allocated_state,
    allocation_of,
    allocator,
    alternative,
    claim,
    counted,
    device,
    device_class,
    first_available,
    request,
    result,
    selectors,
    share,
    slice_of,
    solve,
)

MODEL = f"{DRIVER}/model"


def devices(count: int) -> list[Device]:
    """Return equal devices d0, d1 and so on."""
    return [device(f"d{at}") for at in range(count)]


def test_takes_the_first_devices_in_order() -> None:
    """Pools by driver and name, slices by name, devices in their order."""
    slices = [
        slice_of(devices(1), "b", pool="p2"),
        slice_of([device("y")], "b", count=2),
        slice_of([device("x")], "a", count=2),
    ]
    assert [[("r", "x"), ("r", "y")]] == solve(slices, claim(request(count=2)))


@pytest.mark.parametrize(
    ("free", "wanted", "solved"),
    [
        pytest.param(2, 2, True, id="as-many"),
        pytest.param(2, 3, False, id="too-few"),
        pytest.param(0, 1, False, id="none"),
    ],
)
def test_exact_count(free: int, wanted: int, solved: bool) -> None:
    """A request gets the requested number of devices, or none."""
    assert solved == (solve([slice_of(devices(free))], claim(request(count=wanted))) is not None)


def test_allocated_devices_are_left_alone() -> None:
    """A device of another claim is not taken, unless with admin access."""
    slices, taken = [slice_of(devices(1))], allocated_state(allocation_of("d0"))
    assert solve(slices, claim(request()), allocated=taken) is None
    as_admin = claim(request(admin_access=True))
    assert [[("r", "d0")]] == solve(slices, as_admin, allocated=taken)


def test_admin_access_does_not_free_a_device() -> None:
    """A device taken with admin access is in use for the pod's later claims, as upstream has it."""
    slices = [slice_of(devices(1))]
    admin, plain = request(admin_access=True), request()
    assert solve(slices, claim(plain), claim(admin, name="c2")) is not None
    assert solve(slices, claim(admin), claim(plain, name="c2")) is None
    assert solve(slices, claim(admin, request("r2", admin_access=True))) is None


def test_backtracks_over_requests() -> None:
    """The first request takes another device if the second can only use that one."""
    slices = [slice_of([device("big", {"model": "a"}), device("small", {"model": "b"})])]
    only_big = request("r2", selectors=selectors(f'device.attributes["{DRIVER}"].model == "a"'))
    assert [[("r", "small"), ("r2", "big")]] == solve(slices, claim(request(), only_big))


def test_backtracks_over_claims() -> None:
    """The search also returns to an earlier claim."""
    slices = [slice_of([device("big", {"model": "a"}), device("small", {"model": "b"})])]
    only_big = request(selectors=selectors(f'device.attributes["{DRIVER}"].model == "a"'))
    found = solve(slices, claim(request()), claim(only_big, name="c2"))
    assert [[("r", "small")], [("r", "big")]] == found


def test_all_takes_every_device() -> None:
    """Mode All takes all matching devices; it fails if one is in use or there are none."""
    slices, every = [slice_of(devices(3))], claim(request(allocation_mode="All"))
    assert [[("r", "d0"), ("r", "d1"), ("r", "d2")]] == solve(slices, every)
    taken = allocated_state(allocation_of("d1"))
    assert solve(slices, every, allocated=taken) is None
    assert solve([], every) is None


def test_first_available_takes_the_first_that_can_be_satisfied() -> None:
    """Alternatives are tried in order; the result names the one chosen."""
    wanted = claim(first_available("r", alternative("four", count=4), alternative("two", count=2)))
    assert [[("r/two", "d0"), ("r/two", "d1")]] == solve([slice_of(devices(3))], wanted)
    assert [[("r/four", f"d{at}") for at in range(4)]] == solve([slice_of(devices(4))], wanted)


def test_match_attribute() -> None:
    """All devices have the same value; a device without the attribute is not taken."""
    slices = [
        slice_of(
            [device("x", {"model": "a"}), device("y"), *(device(n, {"model": "b"}) for n in "zw")]
        )
    ]
    same = [DeviceConstraint(match_attribute=MODEL)]
    found = solve(slices, claim(request(count=2), constraints=same))
    assert [[("r", "z"), ("r", "w")]] == found
    assert solve(slices, claim(request(count=3), constraints=same)) is None


def test_distinct_attribute_remembers_the_last_device_of_a_request() -> None:
    """Between requests values differ; within a request only the last device counts, as upstream."""
    slices = [slice_of([device(n, {"model": m}) for n, m in (("x", "a"), ("y", "a"), ("z", "b"))])]
    distinct = [DeviceConstraint(distinct_attribute=MODEL)]
    found = solve(slices, claim(request("r1"), request("r2"), constraints=distinct))
    assert [[("r1", "x"), ("r2", "z")]] == found
    slices = [slice_of([device(n, {"model": m}) for n, m in (("x", "a"), ("z", "b"), ("y", "a"))])]
    found = solve(slices, claim(request(count=3), constraints=distinct))
    assert [[("r", "x"), ("r", "z"), ("r", "y")]] == found


def test_taints() -> None:
    """A tainted device is for requests that tolerate the taint."""
    slices = [slice_of([device("d0", taints=(TAINT,))])]
    assert solve(slices, claim(request())) is None
    assert solve(slices, claim(request(tolerations=TOLERATE_ALL))) is not None
    assert solve(slices, claim(request()), features=Features(device_taints=False)) is not None
    harmless = [slice_of([device("d0", taints=(DeviceTaint(key="k", effect="None"),))])]
    assert solve(harmless, claim(request())) is not None


def test_counters_limit_devices() -> None:
    """Devices of all claims together consume at most the available counters."""
    slices = counted(4, 3, 3, total=6)
    assert [[("r", "d1"), ("r", "d2")]] == solve(slices, claim(request(count=2)))
    taken = allocated_state(allocation_of("d0"))
    assert solve(slices, claim(request()), allocated=taken) is None


def test_counters_of_a_refused_device_stay_booked() -> None:
    """As upstream, the counters of a rejected tainted device stay consumed."""
    slices = counted(4, 4, total=6)
    first, second = slices[1].spec.devices
    tainted = device("d0", consumes_counters=first.consumes_counters, taints=(TAINT,))
    broken = [slices[0], slice_of([tainted, second], "devices", count=2)]
    assert solve(broken, claim(request())) is None


def shared(capacity: int) -> Device:
    """A device that allows several allocations."""
    return device(
        "d0",
        capacity={"memory": DeviceCapacity(value=capacity)},
        allow_multiple_allocations=True,
    )


def test_shares_of_a_device() -> None:
    """Shares fit as long as their sum does; an exclusive allocation excludes them."""
    slices = [slice_of([shared(10)])]
    both = claim(share(6, "r1"), share(4, "r2"))
    assert [[("r1", "d0"), ("r2", "d0")]] == solve(slices, both)
    assert solve(slices, claim(share(6, "r1"), share(5, "r2"))) is None
    part = allocation_of(result("d0", share_id="s", consumed_capacity={"memory": 5}))
    assert solve(slices, claim(share(6)), allocated=allocated_state(part)) is None
    assert solve(slices, claim(share(5)), allocated=allocated_state(part)) is not None
    whole = allocated_state(allocation_of("d0"))
    assert solve(slices, claim(share(1)), allocated=whole) is None


def test_share_says_what_it_consumes() -> None:
    """The result has a share's amounts; without a request it is all of the device."""
    found = allocator([slice_of([shared(10)])]).allocate(NODE, [claim(request())])
    assert found is not None
    (only,) = found[0].devices.results
    assert {"memory": 10} == only.consumed_capacity
    assert only.share_id is not None


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param(
            claim(request(allocation_mode="Some")),
            "claim default/c1, request r: unsupported count mode Some",
            id="mode",
        ),
        pytest.param(
            claim(request(count=33)),
            "claim default/c1: number of requested devices 33 exceeds the claim limit of 32",
            id="33-devices",
        ),
        pytest.param(
            claim(request(), constraints=[DeviceConstraint()]),
            "claim default/c1, constraint #0: empty constraint (unsupported constraint type?)",
            id="constraint",
        ),
        pytest.param(
            claim(request(selectors=selectors(f'device.attributes["{DRIVER}"].nope'))),
            "claim default/c1: selector #0: CEL runtime error: no such key: nope",
            id="selector",
        ),
    ],
)
def test_errors(wanted: ResourceClaim, message: str) -> None:
    """An invalid claim ends the search with upstream's error."""
    with pytest.raises(AllocationError) as raised:
        solve([slice_of(devices(2))], wanted)
    assert message == str(raised.value)


def test_class_selector_error_names_the_class() -> None:
    """An error in a class names the class."""
    classes = [device_class(CLASS, "device.driver == 1")]
    with pytest.raises(AllocationError, match=r"^class gpu: selector #0: CEL compile error: "):
        solve([slice_of(devices(1))], claim(request()), classes=classes)


def test_more_than_32_results_in_a_list() -> None:
    """An alternative with too many devices is passed over; if all are, that is an error."""
    many = [slice_of(devices(40))]
    long_list = first_available("r2", alternative("a", count=31), alternative("b", count=30))
    wanted = claim(request("r1", count=2), long_list)
    found = solve(many, wanted)
    assert found is not None
    assert {"r2/b"} == {name for name, _ in found[0][2:]}
    too_long = first_available("r2", alternative("a", allocation_mode="All"))
    thirty = claim(request("r1", count=1), too_long)
    with pytest.raises(AllocationError, match=r"exceeds the claim limit of 32"):
        solve([slice_of(devices(32))], thirty)
    every = first_available("r1", alternative("all", allocation_mode="All"), alternative("one"))
    twice = claim(every, first_available("r2", alternative("thirty-two", count=32)))
    with pytest.raises(AllocationError, match=r"exceeds the claim limit of 32"):
        solve([slice_of(devices(32))], twice)


def test_all_with_a_constraint_that_cannot_hold_is_an_error() -> None:
    """As upstream, the search ends with an error."""
    slices = [slice_of([device("x", {"model": "a"}), device("y", {"model": "b"})])]
    wanted = claim(
        request(allocation_mode="All"), constraints=[DeviceConstraint(match_attribute=MODEL)]
    )
    with pytest.raises(AllocationError) as raised:
        solve(slices, wanted)
    assert (
        "claim default/c1, request r: cannot add device gpu.example.com/p1/y because a claim"
        " constraint would not be satisfied"
    ) == str(raised.value)


def test_incomplete_and_invalid_pools() -> None:
    """Neither provides devices; mode All needs complete pools; invalid pools are reported."""
    good, incomplete = slice_of(devices(1)), slice_of(devices(1), pool="p2", count=2)
    invalid = slice_of([device("x"), device("x")], pool="p3")
    assert solve([good, incomplete, invalid], claim(request())) is not None
    assert solve([incomplete], claim(request())) is None
    with pytest.raises(NodeRejected, match=r"^invalid resource pools were encountered$"):
        solve([invalid], claim(request()))
    every = claim(request(allocation_mode="All"))
    with pytest.raises(AllocationError) as raised:
        solve([good, incomplete], every)
    assert (
        "claim default/c1, request r: asks for all devices, but resource pool"
        " gpu.example.com/p2 is currently being updated"
    ) == str(raised.value)


def test_search_gives_up() -> None:
    """A long search ends after its maximum number of tries."""
    impossible = [
        request(f"r{at}", count=4, selectors=selectors(f'device.driver == "{DRIVER}"'))
        for at in range(6)
    ]
    with pytest.raises(SearchExhausted):
        solve([slice_of(devices(23))], claim(*impossible), tries_max=500)


def test_node_selector_of_the_result() -> None:
    """Devices of one node bind the claim to it; devices for all nodes do not."""
    local = allocator([slice_of(devices(1), node_name="n1")]).allocate(NODE, [claim(request())])
    assert local is not None
    assert local[0].node_selector is not None
    (term,) = local[0].node_selector.node_selector_terms
    assert ("metadata.name", "In", ("n1",)) == (
        term.match_fields[0].key,
        term.match_fields[0].operator,
        term.match_fields[0].values,
    )
    anywhere = allocator([slice_of(devices(1))]).allocate(NODE, [claim(request())])
    assert anywhere is not None
    assert anywhere[0].node_selector is None


def test_devices_of_other_nodes_are_not_taken() -> None:
    """Slices and devices that name a node are for that node."""
    there = slice_of(devices(1), node_name="n2")
    assert solve([there], claim(request())) is None
    each = slice_of(
        [device("x", node_name="n2"), device("y", node_name="n1")], per_device_node_selection=True
    )
    assert [[("r", "y")]] == solve([each], claim(request()))
    assert [[("r", "x")]] == solve([each], claim(request()), node=make_node("n2"))


def test_configuration_of_class_and_claim() -> None:
    """The configuration of a class appears once, with all requests that use the class."""
    opaque = OpaqueDeviceConfiguration(driver=DRIVER, parameters={"a": 1})
    classes = [device_class(config=(DeviceClassConfiguration(opaque=opaque),))]
    found = allocator([slice_of(devices(2))], classes=classes).allocate(
        NODE, [claim(request("r1"), request("r2"))]
    )
    assert found is not None
    (config,) = found[0].devices.config
    assert ("FromClass", ("r1", "r2"), opaque) == (config.source, config.requests, config.opaque)


def test_devices_of_common_pools_are_looked_at_once() -> None:
    """What is known of a pool is used on all nodes that have it."""
    own = slice_of([device("own", {"model": "a"})], "a", pool="p0", node_name="n1")
    common = slice_of([device("x", {"model": "b"}), device("y", {"model": "c"})], "b")
    one, known = allocator([own, common]), KnownDevices()
    asked = [claim(request(selectors=selectors(f'device.attributes["{DRIVER}"].model == "b"')))]
    nodes = [make_node(f"n{at}") for at in (1, 2)]
    for node in nodes:
        assert (("b", "x"),) == one.deciding_devices(node, asked, known)
    ((at, (pool, _)),) = known.items()
    known[at] = pool, ()
    for node in nodes:
        assert () == one.deciding_devices(node, asked, known)
    assert one.deciding_devices(nodes[0], [claim(request())], KnownDevices()) is None
