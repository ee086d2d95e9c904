"""DeviceTaintRules: the taints that they add to devices, and the resulting events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from kubesched.api.meta import ObjectMeta
from kubesched.api.resource import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
)
from tests.loops import on_virtual_time
from tests.plugins.dynamic_resources.cluster import Cluster, user_of
from tests.plugins.dynamic_resources.objects import claim, device, device_class, request, slice_of
from tests.scheduler.running import HandledEvents, running

GATE = {"DRADeviceTaintRules": True}
SLICES = (
    slice_of([device("d1"), device("d2")], "s1", pool="p1", node_name="n1"),
    slice_of([device("d1")], "s2", pool="p2", node_name="n2"),
)


def rule(
    name: str = "r1", selector: DeviceTaintSelector | None = None, effect: str = "NoSchedule"
) -> DeviceTaintRule:
    """A rule that taints what the selector selects."""
    taint = DeviceTaint(key="broken", value="yes", effect=effect)
    spec = DeviceTaintRuleSpec(device_selector=selector, taint=taint)
    return DeviceTaintRule(metadata=ObjectMeta(name=name), spec=spec)


def fitting(cluster: Cluster, *tolerations: DeviceToleration, count: int = 1) -> list[str]:
    """Return the nodes where a claim on devices can be allocated."""
    cluster.store.put(claim(request(count=count, tolerations=tolerations)))
    _, answers = cluster.filter(user_of("c1"))
    return [name for name, status in answers.items() if status.is_success]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, []),
        (DeviceTaintSelector(), []),
        (DeviceTaintSelector(driver="other.example.com"), ["n1", "n2"]),
        (DeviceTaintSelector(pool="p1"), ["n2"]),
        (DeviceTaintSelector(pool="p2", device="d1"), ["n1"]),
        (DeviceTaintSelector(device="d1"), ["n1"]),
        (DeviceTaintSelector(device="d3"), ["n1", "n2"]),
    ],
)
def test_what_a_rule_selects_is_tainted(
    selector: DeviceTaintSelector | None, expected: list[str]
) -> None:
    """Every field of a selector must match; a rule without a selector taints every device."""
    objects = (device_class(), *SLICES, rule(selector=selector))
    assert expected == fitting(Cluster(*objects, gates=GATE))
    assert ["n1", "n2"] == fitting(Cluster(*objects))


def test_taints_are_told_apart() -> None:
    """A tolerated taint, or one with effect None, rejects no pod; own taints remain."""
    tainted = device("d1", taints=(DeviceTaint(key="own", effect="NoSchedule"),))
    own = slice_of([tainted], "s1", node_name="n1")
    everything = (device_class(), own, rule())
    broken = DeviceToleration(key="broken", operator="Exists")
    both = (broken, DeviceToleration(key="own", operator="Exists"))
    assert [] == fitting(Cluster(*everything, gates=GATE), broken)
    assert ["n1"] == fitting(Cluster(*everything, gates=GATE), *both)
    harmless = rule(effect="None")
    assert ["n1", "n2"] == fitting(Cluster(device_class(), *SLICES, harmless, gates=GATE))


def test_rules_that_come_and_go_are_seen() -> None:
    """Devices are evaluated again when a rule changes."""
    cluster = Cluster(device_class(), *SLICES, gates=GATE)
    assert ["n1", "n2"] == fitting(cluster)
    cluster.store.put(rule(selector=DeviceTaintSelector(pool="p1")))
    assert ["n2"] == fitting(cluster)
    cluster.store.put(rule(selector=DeviceTaintSelector(pool="p2")))
    assert ["n1"] == fitting(cluster)
    cluster.store.delete(rule())
    assert ["n1", "n2"] == fitting(cluster)


def test_rules_apply_to_slices_that_are_indexed_again() -> None:
    """Here because a slice that changes is for several nodes."""
    cluster = Cluster(device_class(), *SLICES, rule(), gates=GATE)
    assert [] == fitting(cluster)
    for name in ("s3", "s4"):
        cluster.store.put(slice_of([device("d1")], name, pool=name))
        assert [] == fitting(cluster)


@pytest.mark.parametrize("gates", [GATE, {}])
@on_virtual_time
async def test_a_rule_that_changes_is_an_event_of_the_slices_it_concerns(
    gates: dict[str, bool],
) -> None:
    """Kube-scheduler's plugins, too, see slices with the taints in them."""
    first, both = rule(selector=DeviceTaintSelector(pool="p1")), rule()
    elsewhere = rule(selector=DeviceTaintSelector(device="d3"))
    handled, found = HandledEvents(), []
    async with running(gates=gates, instruments=handled) as cluster:
        handlers = cluster.api.handlers
        for item in SLICES:
            handlers.added(item)
        changes: tuple[Callable[[], None], ...] = (
            partial(handlers.added, first),
            partial(handlers.updated, first, first),
            partial(handlers.updated, first, both),
            partial(handlers.updated, both, rule(effect="NoExecute")),
            partial(handlers.deleted, both),
            partial(handlers.added, elsewhere),
        )
        for change in changes:
            handled.labels.clear()
            change()
            found.append([*handled.labels])
    update = "resource.k8s.io/ResourceSliceUpdate"
    expected = [[update], [], [update], [update] * 2, [update] * 2, []]
    assert (expected if gates else [[]] * 6) == found
