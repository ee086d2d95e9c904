"""The search for devices against twins that enumerate everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.api.resource import (
    Device,
    DeviceCapacity,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubesched.framework.dra.pools import AllocationError
from tests.plugins.dynamic_resources.objects import (
    DRIVER,
    TAINT,
    TOLERATE_ALL,
    allocated_state,
    allocation_of,
    alternative,
    claim,
    counted,
    device,
    first_available,
    request,
    selectors,
    share,
    slice_of,
    solve,
)

MODEL = f"{DRIVER}/model"
MODELS = ("a", "b", "c")
some_devices = st.lists(st.tuples(st.sampled_from(MODELS), st.booleans()), min_size=0, max_size=5)
some_selectors = st.sampled_from(
    ["", *(f'device.attributes["{DRIVER}"].model == "{model}"' for model in MODELS)]
)


@st.composite
def exact_fields(draw: st.DrawFn) -> dict[str, object]:
    """The fields that an exact request and an alternative have in common."""
    expression = draw(some_selectors)
    return {
        "count": draw(st.integers(1, 3)),
        "allocation_mode": draw(st.sampled_from(["ExactCount"] * 3 + ["All"])),
        "selectors": selectors(expression) if expression else (),
        "tolerations": draw(st.sampled_from([(), TOLERATE_ALL])),
    }


@st.composite
def some_requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    """An exact request, with or without admin access, or a prioritized list."""
    if draw(st.booleans()):
        admin = draw(st.sampled_from([None, None, True]))
        return request(name, admin_access=admin, **draw(exact_fields()))  # type: ignore[arg-type]  # as given
    alternatives = [
        alternative(f"a{at}", **draw(exact_fields()))  # type: ignore[arg-type]  # as given
        for at in range(draw(st.integers(1, 2)))
    ]
    return first_available(name, *alternatives)


@st.composite
def some_claims(draw: st.DrawFn) -> list[ResourceClaim]:
    """One or two claims with one or two requests each."""
    return [
        claim(
            *(draw(some_requests(f"r{at}")) for at in range(draw(st.integers(1, 2)))),
            name=f"c{index}",
            constraints=draw(st.sampled_from([(), (), (DeviceConstraint(match_attribute=MODEL),)])),
        )
        for index in range(draw(st.integers(1, 2)))
    ]


Spec = ExactDeviceRequest | DeviceSubRequest
Choice = tuple[int, Spec, tuple[Device, ...]]
"""Position of the claim, request, devices."""


def twin_choices(spec: Spec, every: list[Device]) -> Iterator[tuple[Device, ...]]:
    """All sets of devices that the request alone could get."""
    matching = [one for one in every if twin_matches(spec, one)]
    if spec.allocation_mode == "All":
        if matching:
            yield tuple(matching)
        return
    yield from combinations(matching, spec.count)


def twin_matches(spec: Spec, one: Device) -> bool:
    """Whether the selector is about the device's model."""
    model = one.attributes["model"].string_value
    return all(
        selector.cel is not None and selector.cel.expression.endswith(f'"{model}"')
        for selector in spec.selectors
    )


def twin_solutions(
    claims: list[ResourceClaim], every: list[Device], position: int = 0
) -> Iterator[list[Choice]]:
    """All combinations of choices, in any order."""
    flat = [(at, one) for at, each in enumerate(claims) for one in each.spec.devices.requests]
    if position == len(flat):
        yield []
        return
    index, wanted = flat[position]
    specs: list[Spec] = list(wanted.first_available)
    if wanted.exactly is not None:
        specs = [wanted.exactly]
    for spec in specs:
        for picked in twin_choices(spec, every):
            for rest in twin_solutions(claims, every, position + 1):
                yield [(index, spec, picked), *rest]


def twin_accepts(claims: list[ResourceClaim], choices: list[Choice], taken: set[str]) -> bool:
    """Whether the combination breaks no rule."""
    users: dict[str, set[int]] = {}
    models: dict[int, set[str | None]] = {}
    for index, spec, picked in choices:
        admin = isinstance(spec, ExactDeviceRequest) and bool(spec.admin_access)
        for one in picked:
            used = users.setdefault(one.name, set())
            if index in used or (not admin and (used or one.name in taken)):
                return False
            used.add(index)
            if one.taints and not spec.tolerations:
                return False
            models.setdefault(index, set()).add(one.attributes["model"].string_value)
    return all(
        len(values) <= 1 or not claims[index].spec.devices.constraints
        for index, values in models.items()
    )


def takes_all(one: ResourceClaim) -> bool:
    """Whether some request of the claim is for all devices."""
    return any(
        spec.allocation_mode == "All"
        for wanted in one.spec.devices.requests
        for spec in (*wanted.first_available, *((wanted.exactly,) if wanted.exactly else ()))
    )


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(some_devices, st.sets(st.sampled_from(["d0", "d1", "d2"])), some_claims())
def test_solvable_if_and_only_if_the_twin_finds_something(
    kinds: list[tuple[str, bool]], taken: set[str], claims: list[ResourceClaim]
) -> None:
    """The search finds a valid solution if and only if there is one."""
    every = [
        device(f"d{at}", {"model": model}, taints=(TAINT,) if tainted else ())
        for at, (model, tainted) in enumerate(kinds)
    ]
    solvable = any(
        twin_accepts(claims, choices, taken) for choices in twin_solutions(claims, every)
    )
    state = allocated_state(*(allocation_of(name) for name in sorted(taken)))
    try:
        found = solve([slice_of(every)], *claims, allocated=state)
    except AllocationError:
        # A request for all devices that contradict each other under a constraint.
        assert any(takes_all(one) and one.spec.devices.constraints for one in claims)
        return
    assert solvable == (found is not None)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 5), max_size=5),
    st.integers(0, 8),
    st.lists(st.integers(1, 2), min_size=1, max_size=3),
)
def test_counters_twin(amounts: list[int], total: int, counts: list[int]) -> None:
    """Claims that use counters are solvable if some devices, enough for all, fit together."""
    wanted = sum(counts)
    solvable = any(sum(picked) <= total for picked in combinations(amounts, wanted))
    slices = counted(*amounts, total=total)
    requests = [request(f"r{at}", count=count) for at, count in enumerate(counts)]
    assert solvable == (solve(slices, claim(*requests)) is not None)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_capacity_twin(capacities: list[int], amounts: list[int]) -> None:
    """Claims that use shares are solvable if their amounts can be packed into the capacities."""

    def packs(left: tuple[int, ...], rest: list[int]) -> bool:
        if not rest:
            return True
        return any(
            room >= rest[0] and packs((*left[:at], room - rest[0], *left[at + 1 :]), rest[1:])
            for at, room in enumerate(left)
        )

    parts = [
        device(
            f"d{at}",
            capacity={"memory": DeviceCapacity(value=capacity)},
            allow_multiple_allocations=True,
        )
        for at, capacity in enumerate(capacities)
    ]
    requests = [share(amount, f"r{at}") for at, amount in enumerate(amounts)]
    found = solve([slice_of(parts)], claim(*requests))
    assert packs(tuple(capacities), amounts) == (found is not None)
