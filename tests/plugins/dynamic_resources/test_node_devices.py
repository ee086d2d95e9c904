"""Cached results of selectors, compared with new evaluations."""

from __future__ import annotations

import gc
import sys
import weakref

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.resource import Device, ResourceSlice
from kubesched.client.watch_events import SharedParts
from kubesched.framework.dra.pools import AllocationError
from kubesched.plugins.dynamic_resources import node_devices
from kubesched.plugins.dynamic_resources.node_devices import DeviceMatcher
from tests.plugins.dynamic_resources.objects import device, selectors, slice_of

DRIVERS = ("a.example.com", "b.example.com")
EXPRESSIONS = (
    'device.driver == "a.example.com"',
    'device.attributes["a.example.com"].?model.orValue("") == "x"',
    'device.attributes["b.example.com"].model == "x"',
    'device.capacity["b.example.com"].?memory.hasValue()',
)
slices = st.builds(
    lambda driver, models: slice_of(
        [device(f"d{at}", {"model": model}) for at, model in enumerate(models)], driver=driver
    ),
    st.sampled_from(DRIVERS),
    st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
)


def answer(matcher: DeviceMatcher, expression: str, driver: str, asked: Device) -> bool | str:
    """What a matcher says of a device."""
    try:
        return matcher.matches(selectors(expression), driver, asked, "class c")
    except AllocationError as error:
        return str(error)


@given(st.lists(slices, min_size=1, max_size=4), st.permutations(EXPRESSIONS))
def test_remembered_answers_are_fresh_ones(
    written: list[ResourceSlice], expressions: list[str]
) -> None:
    """Also of devices that are one object, because equal values of two drivers are shared."""
    parts, matcher = SharedParts(ResourceSlice), DeviceMatcher()
    for plain in written:
        item = msgspec.json.decode(msgspec.json.encode(plain), type=ResourceSlice)
        parts.share(item)
        for one in item.spec.devices:
            for expression in (*expressions, *expressions):
                fresh = answer(DeviceMatcher(), expression, item.spec.driver, one)
                assert fresh == answer(matcher, expression, item.spec.driver, one)


def test_a_device_that_is_gone_does_not_answer_for_another() -> None:
    """Ids of freed objects are reused."""
    matcher = DeviceMatcher()
    expression = 'device.attributes["a.example.com"].model == "x"'
    for at in range(200):
        model = "xy"[at % 2]
        assert (model == "x") == answer(
            matcher, expression, DRIVERS[0], device("d", {"model": model})
        )


def test_remembered_answers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims with expressions of their own do not fill the memory."""
    monkeypatch.setattr(node_devices, "_ANSWERS_MAX", 2)
    matcher, one = DeviceMatcher(), device("d0", {"model": "x"})
    before, used = sys.getrefcount(one), []
    for expression in ("device.driver == '1'", "device.driver == '2'", "device.driver == '3'"):
        answer(matcher, expression, DRIVERS[0], one)
        used.append(sys.getrefcount(one) - before)
    assert [1, 2, 1] == used


def test_a_remembered_error_keeps_no_frames_alive() -> None:
    """A traceback would keep the local variables of all callers."""
    matcher, one = DeviceMatcher(), device("d0", {})

    def ask() -> weakref.ref[DeviceMatcher]:
        local = DeviceMatcher()
        assert "no such key" in str(answer(matcher, EXPRESSIONS[2], DRIVERS[1], one))
        return weakref.ref(local)

    gone = ask()
    gc.collect()
    assert gone() is None
