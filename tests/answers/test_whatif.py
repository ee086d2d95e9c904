"""Effects of plans, compared with rehearsals and shown step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.answers.node_shapes import parse_taint
from kubesched.answers.plan import decode_plan
from kubesched.answers.trial_cluster import QuestionError, TrialCluster
from kubesched.answers.whatif import WhatIfReport, what_if
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.scheduling import PriorityClass
from kubesched.api.well_known import SELECTED_NODE
from kubesched.simulator.rehearsal import Rehearsal
from kubesched.testing.builders import make_pod
from tests.plugins.dynamic_resources import objects as dra
from tests.plugins.volume_objects import (
    claim_volumes,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

from .test_fit import workload
from .trials import (
    budget,
    by_name,
    by_owner,
    node,
    random_cluster,
    rehearsed,
    replace_by_hand,
    running,
    tried,
)


def planned(
    objects: Iterable[KubeObject],
    *steps: dict[str, Any],
    applied: Iterable[KubeObject] = (),
    watch: Callable[[int, int, int], object] | None = None,
) -> WhatIfReport:
    """Return the report on a plan of these steps; `applied` are the objects of a.yaml."""

    async def ask(cluster: TrialCluster) -> WhatIfReport:
        plan = decode_plan({"steps": list(steps)})
        return await what_if(cluster, plan, {"a.yaml": [*applied]}, watch)

    return tried(objects, ask)


def web(*on: str, cpu: str = "1") -> list[KubeObject]:
    """Return the pods of a Deployment on nodes."""
    labels = {"app": "web", "pod-template-hash": "5d"}
    return [
        running(f"web-5d-{at}", name, cpu, owner="web-5d", labels=labels)
        for at, name in enumerate(on)
    ]


# Against a rehearsal by hand.


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_a_plan_equals_a_rehearsal_of_its_steps(seed: int) -> None:
    """One node is lost, one resized, one added and one cordoned."""
    objects = random_cluster(seed, owned=True)
    first, second, *_ = [item.metadata.name for item in objects if isinstance(item, Node)]
    steps = [
        {"removeNode": first},
        {"resize": {"nodes": second, "capacity": {"cpu": 8}}},
        {"cordon": second},
        {"addNodes": {"template": "cpu=3,memory=8Gi,name=new"}},
    ]

    async def ask(cluster: TrialCluster) -> tuple[WhatIfReport, Counter[tuple[str, str]]]:
        report = await what_if(cluster, decode_plan({"steps": steps}), {})
        return report, by_owner(cluster.server.all(Pod))

    async def by_hand(rehearsal: Rehearsal) -> Counter[tuple[str, str]]:
        server = rehearsal.server
        await rehearsal.settle()
        await rehearsal.pause()
        pods = by_name(rehearsal.pods_on(first))
        gone = server.node(first)
        assert gone is not None
        server.delete(gone)
        replace_by_hand(server, pods)
        await rehearsal.settle()
        for spec in ({"unschedulable": False}, {"unschedulable": True}):
            await rehearsal.pause()
            other = server.node(second)
            assert other is not None
            amounts = {**other.status.allocatable, "cpu": "8"}
            status = replace(other.status, allocatable=amounts, capacity=amounts)
            server.update(replace(other, spec=replace(other.spec, **spec), status=status))
            await rehearsal.settle()
        await rehearsal.pause()
        server.create(node("new-1", "3"))
        await rehearsal.settle()
        return by_owner(server.all(Pod))

    report, found = tried(objects, ask)
    assert rehearsed(objects, by_hand) == found
    before = sum(isinstance(item, Pod) for item in objects)
    assert before == report.before.pods + report.before.pending
    assert before == report.after.pods + report.after.pending + len(report.lost)


# Steps.


def test_a_lost_zone() -> None:
    """Pods of the zone move; one without a controller is lost."""
    objects = [node("a", zone="x"), node("b", zone="y"), *web("a", "b"), running("bare", "a")]
    report = planned(objects, {"loseZone": "x"})
    assert not report.works
    assert ["default/bare"] == [one.pod for one in report.lost]
    assert [("a", "b")] == [(one.node, one.new_node) for one in report.moved]
    assert (2, 1) == (report.before.nodes, report.after.nodes)


def test_pods_that_were_being_deleted_are_not_lost() -> None:
    """They would be gone without the plan, too."""
    going = make_pod("x", node_name="a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    report = planned([node("a"), node("b"), going], {"removeNode": "a"})
    assert report.works
    assert () == report.lost + report.removed


def test_steps_that_help_pending_pods() -> None:
    """An uncordoned node, a label, and a shorter taint list."""
    objects: list[KubeObject] = [
        replace(node("a"), spec=replace(node("a").spec, unschedulable=True)),
        make_pod("one", requests={"cpu": 1}, node_selector={"disk": "ssd"}),
    ]
    assert not planned(objects, {"uncordon": "a"}).no_longer_pending
    report = planned(objects, {"label": {"nodes": "a", "set": {"disk": "ssd"}}}, {"uncordon": "a"})
    assert report.works
    assert ["default/one"] == [one.pod for one in report.no_longer_pending]


@pytest.mark.parametrize("written", ["old", "old:NoSchedule", "old=yes:NoSchedule"])
def test_a_removed_taint(written: str) -> None:
    """By its key, with its effect, or as kubectl shows it."""
    tainted = replace(node("a").spec, taints=(parse_taint("old=yes:NoSchedule"),))
    objects = [replace(node("a"), spec=tainted), make_pod("one", requests={"cpu": 1})]
    report = planned(objects, {"taint": {"nodes": "a", "remove": [written]}})
    assert ["default/one"] == [one.pod for one in report.no_longer_pending]


@pytest.mark.parametrize("step", [{"drain": "a"}, {"removeNode": "a"}])
def test_pods_that_were_pending_are_not_moved_or_lost(step: dict[str, Any]) -> None:
    """They get a node first, which is no effect of the plan; that they keep none is one."""
    objects: list[KubeObject] = [node("a"), make_pod("bare", requests={"cpu": 2})]
    report = planned([*objects, node("b", "1")], step)
    assert ([["default/bare"]], ()) == ([[*one.pods] for one in report.now_pending], report.lost)
    assert report.notes == ("1 pending pod got a node first, as without any change.",)
    report = planned([*objects, node("b")], step)
    assert report.works
    assert () == report.moved + report.lost + report.no_longer_pending + report.created


def test_a_new_node_has_the_devices_and_drivers_of_its_like() -> None:
    """Each node's pool is its own."""
    claims = [dra.claim(dra.request(count=2), name=name) for name in ("x", "y")]
    pods = [
        make_pod(name, spec={"resourceClaims": [{"name": "x", "resourceClaimName": name}]})
        for name in ("x", "y")
    ]
    slices = dra.slice_of([dra.device("g0")], node_name="a")
    devices = [node("a"), slices, dra.device_class()]
    add = {"addNodes": {"like": "a", "count": 2}}
    report = planned([*devices, *claims, *pods], add)
    assert () == report.no_longer_pending
    slices = dra.slice_of([dra.device("g0"), dra.device("g1")], node_name="a")
    devices = [node("a"), slices, dra.device_class()]
    taken = dra.claim(name="z", allocation=dra.allocation_of("g0", "g1"), reserved_for=["z"])
    report = planned([*devices, taken, *claims, *pods], add)
    assert {"a-new-1", "a-new-2"} == {one.new_node for one in report.no_longer_pending}
    volumes = [make_claim(name, storage_class="fast") for name in ("v", "w")]
    pod = make_pod("p", volumes=claim_volumes("v", "w"))
    limit = make_csi_node("a", {"csi.example.com": 1})
    report = planned([node("a"), limit, make_class("fast"), *volumes, pod], add)
    assert () == report.no_longer_pending


def test_pods_of_other_schedulers_are_pending_too() -> None:
    """They are counted, before and after."""
    other = running("a", "a", owner="a", schedulerName="other")
    pending = make_pod("b", spec={"schedulerName": "other"})
    report = planned([node("a"), other, pending], {"drain": "a"})
    assert (1, 2) == (report.before.pending, report.after.pending)
    (found,) = report.now_pending
    assert found.message.endswith("--profile default-scheduler asks that one instead")


def test_evictions_for_pending_pods_are_no_effect() -> None:
    """The note has them."""
    objects = [node("a", "1"), running("low", "a"), make_pod("p", requests={"cpu": 1}, priority=9)]
    report = planned(objects, {"addNodes": {"template": "cpu=1,memory=1Gi,name=new"}})
    assert () == report.preempted
    assert "got a node first, and 1 pod would be evicted for that, as" in report.notes[0]


def test_scaling_up_and_down() -> None:
    """New pods are copies; a StatefulSet loses its last pods first."""
    objects = [node("a"), node("b"), *web("a")]
    scale = {"workload": "deployment.apps/web", "replicas": 3}
    report = planned(objects, {"scale": scale})
    assert 2 == len(report.created)
    db = [running(f"db-{at}", "a", owner="db", kind="StatefulSet") for at in range(3)]
    report = planned([node("a"), *db], {"scale": {"workload": "sts/db", "replicas": 1}})
    assert report.works
    assert {"default/db-1", "default/db-2"} == {one.pod for one in report.removed}


def test_a_drained_node_takes_pods_again_when_it_is_uncordoned() -> None:
    """Until then not even pods that tolerate the cordon, as it is about to go."""
    tolerations = [{"operator": "Exists"}]
    objects = [node("a"), running("web-0", "a", owner="web", tolerations=tolerations)]
    report = planned(objects, {"drain": "a"})
    assert [("default/web-00002",)] == [one.pods for one in report.now_pending]
    report = planned(objects, {"drain": "a"}, {"uncordon": "a"})
    assert ["a"] == [one.new_node for one in report.moved]


def test_a_closed_node_is_otherwise_the_node_that_it_was() -> None:
    """It is closed because a pod came back; nodes are added like it, and it may be resized."""
    tolerations = [{"operator": "Exists"}]
    objects = [node("a"), running("web-0", "a", owner="web", tolerations=tolerations)]
    report = planned(objects, {"drain": "a"}, {"addNodes": {"count": 1, "like": "a"}})
    assert ["a-new-1"] == [one.new_node for one in report.moved]
    assert [220] == [use.allocatable for use in report.after.resources if use.resource == "pods"]
    steps = {"drain": "a"}, {"resize": {"nodes": "a", "capacity": {"cpu": 8}}}, {"uncordon": "a"}
    report = planned(objects, *steps)
    assert [8000] == [use.allocatable for use in report.after.resources if use.resource == "cpu"]


def test_a_pod_that_came_back_may_wait_for_a_budget() -> None:
    """It has not moved."""
    tolerations = [{"operator": "Exists"}]
    pods = [running(f"web-{at}", "a", owner="web", tolerations=tolerations) for at in "01"]
    report = planned([node("a"), *pods, budget("web", "web", minAvailable=1)], {"drain": "a"})
    assert ((), ["default/web-1"]) == (report.moved, [one.pod for one in report.waiting])


def test_pods_do_not_go_to_nodes_that_were_drained_before() -> None:
    """Even if they tolerate the cordon."""
    tolerations = [{"operator": "Exists"}]
    pods = [running("old-0", "a", owner="old"), running("log-0", "c", "3", owner="log")]
    last = running("web-0", "b", "1", owner="web", tolerations=tolerations)
    report = planned(
        [node("a"), node("b", "1"), node("c", "8"), *pods, last], {"drain": "a"}, {"drain": "b"}
    )
    assert {"c"} == {one.new_node for one in report.moved}


def test_a_manifest_with_fewer_replicas_removes_pods() -> None:
    """As `scale` does."""
    objects = [node("a"), *(running(f"web-{at}", "a", owner="web") for at in range(3))]
    applied = [workload("ReplicaSet", replicas=1)]
    report = planned(objects, {"apply": "a.yaml"}, applied=applied)
    assert report.works
    assert 2 == len(report.removed)


@pytest.mark.parametrize("has_set", [True, False])
def test_new_pods_of_a_stateful_set_have_claims_of_their_own(has_set: bool) -> None:
    """The first one's volume is on one node; the others go where there is room.

    If the input lacks the StatefulSet, its pods and claims show what it is like.
    """
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}
    claim = {
        "metadata": {"name": "data"},
        "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-5"}}
    objects = [
        node("a", "1"),
        node("b"),
        make_class("fast"),
        make_volume("disk", storage_class="fast", nodes={"kubernetes.io/hostname": ["a"]}),
        make_claim(
            "data-web-5", storage_class="fast", volume="disk", annotations={SELECTED_NODE: "a"}
        ),
        running("web-5", "a", owner="web", kind="StatefulSet", volumes=[volume]),
    ]
    if has_set:
        start = {"start": 5}
        objects.append(
            workload("StatefulSet", replicas=1, ordinals=start, volumeClaimTemplates=[claim])
        )
    report = planned(objects, {"scale": {"workload": "sts/web", "replicas": 3}})
    assert report.works
    assert [("default/web-6", "b"), ("default/web-7", "b")] == [
        (one.new_pod, one.new_node) for one in report.created
    ]


@pytest.mark.parametrize("is_ending", [True, False])
def test_a_pod_of_a_stateful_set_that_has_ended_gives_up_its_name(is_ending: bool) -> None:
    """The controller deletes an evicted pod, or waits for its end, and creates it again."""
    first, second = (running(f"web-{at}", "a", owner="web", kind="StatefulSet") for at in range(2))
    if is_ending:
        metadata = replace(first.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        ended = replace(first, metadata=metadata)
    else:
        ended = replace(first, status=replace(first.status, phase="Failed"))
    objects = [node("a", "2"), ended, second, workload("StatefulSet", replicas=2)]
    report = planned(objects, {"scale": {"workload": "sts/web", "replicas": 2}})
    assert report.works
    assert [("default/web-0", "a")] == [(one.new_pod, one.new_node) for one in report.created]
    assert not report.lost


def test_a_scaled_stateful_set_keeps_its_first_ordinals() -> None:
    """Also if the first one is missing: it has no more pods than before, but other ones."""
    pods = [running(f"web-{at}", "a", owner="web", kind="StatefulSet") for at in (1, 2)]
    objects = [node("a", "2"), *pods, workload("StatefulSet", replicas=3)]
    report = planned(objects, {"scale": {"workload": "sts/web", "replicas": 2}})
    assert ["scale sts/web from 3 to 2"] == list(report.steps)
    assert ["default/web-2"] == [one.pod for one in report.removed]
    assert ["default/web-0"] == [one.new_pod for one in report.created]


def test_a_pod_of_another_owner_keeps_its_name() -> None:
    """It is in the way of the StatefulSet in the cluster, too."""
    other = running("web-0", "a", owner="other", kind="StatefulSet")
    ended = replace(other, status=replace(other.status, phase="Failed"))
    with pytest.raises(QuestionError, match="belongs to something else; rename one"):
        planned(
            [node("a"), ended, workload("StatefulSet", replicas=0)],
            {"scale": {"workload": "sts/web", "replicas": 1}},
        )


def test_a_no_execute_taint_evicts_regardless_of_budgets() -> None:
    """Upstream's taint manager does the same."""
    objects = [node("a"), node("b"), *web("a"), budget("web", "web", maxUnavailable=0)]
    daemon = running("log-x", "a", owner="log", kind="DaemonSet")
    report = planned([*objects, daemon], {"taint": {"nodes": "a", "add": ["bad=yes:NoExecute"]}})
    assert [("a", "b")] == [(one.node, one.new_node) for one in report.moved]
    assert report.works


def test_a_changed_budget_unblocks_a_drain() -> None:
    """Without the change the pod is not evicted."""
    objects = [node("a"), node("b"), *web("a"), budget("web", "web", maxUnavailable=0)]
    report = planned(objects, {"drain": "a"})
    assert not report.works
    assert ["default/web-5d-0"] == [one.pod for one in report.waiting]
    for change in ({"maxUnavailable": 1}, {"delete": True}):
        report = planned(objects, {"setBudget": {"name": "web", **change}}, {"drain": "a"})
        assert report.works


@pytest.mark.parametrize(
    ("given", "preempts"),
    [
        pytest.param({"priority": 10}, True, id="number"),
        pytest.param({"className": "urgent"}, True, id="class"),
        pytest.param({"className": "polite"}, False, id="class that does not preempt"),
    ],
)
def test_a_raised_priority_preempts(given: dict[str, Any], preempts: bool) -> None:
    """A pending pod evicts one of lower priority, if its class lets it."""
    labels = {"pod-template-hash": "5d"}
    owners = running("x", "", owner="api-5d").metadata.owner_references
    pending = make_pod("api-5d-1", requests={"cpu": 4}, labels=labels, uid="api")
    pending = replace(pending, metadata=replace(pending.metadata, owner_references=owners))
    classes = [
        PriorityClass(metadata=ObjectMeta(name=name), value=10, preemption_policy=policy)
        for name, policy in (("urgent", None), ("polite", "Never"))
    ]
    objects: list[KubeObject] = [node("a"), pending, *web("a"), *classes]
    report = planned(objects, {"setPriority": {"workload": "deploy/api", **given}})
    evicted = ["default/web-5d-0"] if preempts else []
    assert evicted == [one.pod for one in report.preempted]
    assert preempts == bool(report.no_longer_pending)
    assert preempts != report.works


def test_room_goes_to_the_pods_of_highest_priority() -> None:
    """Also if they failed in the step before."""
    low = [make_pod(f"low-{at}", requests={"cpu": "4"}) for at in range(20)]
    spec = {"priority": 10, "preemptionPolicy": "Never"}
    high = workload(cpu="4", replicas=2, pod=spec)
    objects = [node("a"), running("full", "a", "4", priority=20), *low]
    steps: list[dict[str, Any]] = [{"apply": "a.yaml"}, {"addNodes": {"count": 2, "like": "a"}}]
    report = planned(objects, *steps, applied=[high])
    assert 0 == len(report.no_longer_pending)
    assert 0 == len(report.now_pending)


def test_an_applied_workload_gets_its_pods() -> None:
    """The pods are those that `fit` would create."""
    report = planned([node("a")], {"apply": "a.yaml"}, applied=[workload(replicas=2)])
    assert ["a", "a"] == [one.new_node for one in report.created]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"drain": "c"}, "steps[0].drain: c: there is no such node; there are a and b"),
        (
            {"addNodes": {"like": "c"}},
            "steps[0].addNodes.like: c: there is no such node; there are",
        ),
        ({"drain": "node/c"}, "steps[0].drain: c: there is no such node; there are a and b"),
        ({"drain": "pool=x"}, "steps[0].drain: pool=x: no node has these labels"),
        (
            {"label": {"nodes": "a", "remove": ["zone"]}},
            "steps[0].label: zone: there is no such label; there are kub",
        ),
        (
            {"taint": {"nodes": "a", "remove": ["old"]}},
            "steps[0].taint: old: there is no such taint; there are no taints",
        ),
        ({"loseZone": "y"}, "steps[0].loseZone: y: there is no such zone; there is only x"),
        (
            {"scale": {"workload": "deploy/api", "replicas": 1}},
            "steps[0].scale: deploy/api: namespace default has no pods of it; name another one",
        ),
        (
            {"setPriority": {"workload": "deploy/web", "namespace": "shop", "priority": 1}},
            "steps[0].setPriority: deploy/web: namespace shop has no pods of it, but default has",
        ),
        (
            {"setPriority": {"workload": "deploy/web", "className": "high"}},
            "steps[0].setPriority: high: there is no such PriorityClass; there are no ",
        ),
        (
            {"setBudget": {"name": "api", "delete": True}},
            "steps[0].setBudget: default/api: there is no such budget",
        ),
    ],
)
def test_errors_about_unknown_names_list_the_known_ones(step: dict[str, Any], message: str) -> None:
    """After the path of the field."""
    with pytest.raises(QuestionError) as raised:
        planned([node("a", zone="x"), node("b", zone="x"), *web("a")], step)
    assert str(raised.value).startswith(message)


def test_a_node_that_an_earlier_step_has_removed() -> None:
    """The error does not suggest another name."""
    with pytest.raises(QuestionError) as raised:
        planned([node("a"), node("b")], {"removeNode": "a"}, {"cordon": "a"})
    assert "steps[1].cordon: a: an earlier step has removed this node" == str(raised.value)


def test_unknown_names_of_later_steps_are_reported_before_anything_is_done() -> None:
    """Placing many pending pods takes long."""
    unknown = {"setPriority": {"workload": "deploy/api", "priority": 1}}
    watched: list[tuple[int, int, int]] = []
    objects = [node("a"), node("b"), *web("a"), make_pod("new")]
    with pytest.raises(QuestionError) as raised:
        planned(
            objects, {"removeNode": "a"}, unknown, watch=lambda *numbers: watched.append(numbers)
        )
    assert str(raised.value).startswith("steps[1].setPriority: deploy/api: namespace default has")
    assert {(0, 2, 0)} == set(watched)


def test_steps_may_name_what_earlier_steps_create() -> None:
    """Such as nodes that have a label only after a step."""
    report = planned(
        [node("a"), node("b")],
        {"label": {"nodes": "a", "set": {"pool": "old"}}},
        {"cordon": "pool=old"},
    )
    assert "cordon a" == report.steps[1]
