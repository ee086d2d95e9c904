"""Every suggested change makes the pod fit; if one exists, one is suggested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.answers.pod_explanation import explain_pod
from kubesched.answers.trial import ChangeKind, SuggestedChange
from kubesched.answers.why import PodState, WhyReport, state_of, why_pod, why_undecided
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.api.scheduling import PriorityClass
from kubesched.config.feature_gates import FeatureGates
from kubesched.scheduler.decision import Placed
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.plugins.dynamic_resources import objects as dra
from tests.plugins.volume_objects import claim_volumes, make_claim, make_class
from tests.scheduler.running import GANGS, make_group, make_member
from tests.simulator.clusters import cluster_of

from .test_room import SPREAD, TAINT
from .trials import owner_metadata

IN_ZONE: Final = make_pod(node_selector={"zone": "eu-1"})


def ask(pod: Pod, *others: KubeObject) -> WhyReport:
    """Return the report on a pod of a cluster."""
    return why_pod(cluster_of(pod, *others), PodInfo(pod))


def requiring(*expressions: dict[str, Any]) -> Pod:
    """Return a pod that requires nodes with labels."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [*expressions]}]}
    return make_pod(node_affinity={"requiredDuringSchedulingIgnoredDuringExecution": required})


def kinds(report: WhyReport) -> set[ChangeKind]:
    """Return the kinds of the suggested changes."""
    return {change.kind for change in report.changes}


# What is found.


@pytest.mark.parametrize(
    ("pod", "others", "sentence"),
    [
        (
            make_pod(requests={"cpu": "3"}),
            [make_node("n", allocatable={"cpu": "2", "pods": 5})],
            "lower the cpu request of container container from 3 to 2",
        ),
        (
            make_pod(requests={"memory": "3Gi"}),
            [make_node("n", allocatable={"cpu": "2", "memory": "2Gi", "pods": 5})],
            "lower the memory request of container container from 3Gi to 2Gi",
        ),
        (
            make_pod(),
            [make_node("n", taints=[TAINT])],
            "tolerate the taint dedicated=gpu:NoSchedule",
        ),
        (
            make_pod(),
            [make_node("n", taints=[TAINT])],
            "remove the taint dedicated=gpu:NoSchedule from node n",
        ),
        (make_pod(), [make_node("n", unschedulable=True)], "uncordon node n"),
        (IN_ZONE, [make_node("n", labels={"zone": "eu-1a"})], "ask for zone=eu-1a instead of eu-1"),
        (
            make_pod(node_selector={"io/zones": "eu-1"}),
            [make_node("n", labels={"io/zone": "eu-1a"})],
            "ask for io/zone=eu-1a instead of io/zones=eu-1",
        ),
        (
            make_pod(node_selector={"zone": "eu-1a"}),
            [make_node("n", labels={"topology.kubernetes.io/zone": "eu-1a", "zones": "eu-1a"})],
            "ask for topology.kubernetes.io/zone=eu-1a instead of zone=eu-1a",
        ),
        (
            requiring({"key": "dis", "operator": "In", "values": ["a"]}),
            [make_node("n", labels={"disk": "a"})],
            "ask for disk=a instead of dis=a",
        ),
        (IN_ZONE, [make_node("n", labels={"zone": "us-9"})], "drop the node selector zone=eu-1"),
        (IN_ZONE, [make_node("n")], "label node n with zone=eu-1"),
        (
            requiring(
                {"key": "disk", "operator": "In", "values": ["ssd"]},
                {"key": "gpu", "operator": "Exists"},
            ),
            [make_node("n", labels={"disk": "ssd"})],
            "drop the node affinity gpu Exists",
        ),
        (
            make_pod(requests={"cpu": "1"}),
            [
                make_node("n", allocatable={"cpu": "2", "pods": 5}),
                make_pod("a", node_name="n", requests={"cpu": "1"}, priority=7),
                make_pod("b", node_name="n", requests={"cpu": "1"}, priority=3),
            ],
            "evict pod default/b (priority 3) from node n",
        ),
        (
            make_pod(requests={"cpu": "2"}),
            [
                make_node("n", allocatable={"cpu": "2", "pods": 5}),
                make_pod("a", node_name="n", requests={"cpu": "1"}),
                make_pod("b", node_name="n", requests={"cpu": "1"}),
            ],
            "free node n of its 2 pods",
        ),
        (
            make_pod(requests={"cpu": "2"}),
            [
                make_node("n", allocatable={"cpu": "2", "memory": "1Gi", "pods": 5}),
                make_pod("a", node_name="n", requests={"cpu": "1"}),
            ],
            "add a node like n (cpu 2, memory 1Gi)",
        ),
        (
            make_pod(host_ports=[80]),
            [make_node("n"), make_pod("a", node_name="n", host_ports=[80])],
            "drop the host port 80 of container container",
        ),
        (
            make_pod(scheduling_gates=["example.com/wait"]),
            [make_node("n")],
            "remove the scheduling gate example.com/wait",
        ),
        (
            make_pod(labels={"app": "web"}, topology_spread_constraints=[SPREAD]),
            [
                make_node("n", labels={"zone": "a"}),
                make_node("m", labels={"zone": "b"}, allocatable={"cpu": "1", "pods": 0}),
                make_pod("a", node_name="n", labels={"app": "web"}),
                make_pod("b", node_name="n", labels={"app": "web"}),
            ],
            "raise maxSkew over zone from 1 to 3",
        ),
    ],
)
def test_the_obvious_change_is_suggested(pod: Pod, others: list[KubeObject], sentence: str) -> None:
    """The change that a person would make is among the suggestions."""
    report = ask(pod, *others)
    assert sentence in [change.sentence for change in report.changes]


def test_a_daemon_comes_back() -> None:
    """Evicting it does not help, and a new node gets one, too."""
    node = make_node("n", allocatable={"cpu": "1", "pods": 5})
    metadata = owner_metadata("DaemonSet", "d")
    daemon = make_pod("a", node_name="n", requests={"cpu": "1"}, metadata=metadata)
    found = kinds(ask(make_pod(requests={"cpu": "1"}), node, daemon))
    assert not found & {ChangeKind.EVICT_POD, ChangeKind.ADD_NODE}


def test_trials_do_not_change_the_cluster() -> None:
    """The same question has the same answer."""
    pod = make_pod(requests={"cpu": "1"}, node_selector={"zone": "b"})
    cluster = cluster_of(
        pod,
        make_node("n", allocatable={"cpu": "1", "pods": 5}, taints=[TAINT]),
        make_node("m", allocatable={"cpu": "1", "pods": 5}, unschedulable=True),
        make_pod("a", node_name="m", requests={"cpu": "1"}),
    )
    explanation = explain_pod(cluster, PodInfo(pod), all_filters=True)
    first = why_pod(cluster, PodInfo(pod), explanation)
    again = explain_pod(cluster, PodInfo(pod), all_filters=True)
    assert (explanation, first) == (again, why_pod(cluster, PodInfo(pod), again))
    cluster.cache.check()


# The sentence.


@pytest.mark.parametrize(
    ("pod", "state", "part"),
    [
        (make_pod(node_name="n"), PodState.BOUND, "is on node n"),
        (make_pod(status={"phase": "Failed"}), PodState.FINISHED, "has finished (Failed)"),
        (
            make_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            PodState.TERMINATING,
            "is being deleted",
        ),
        (
            make_pod(spec={"schedulerName": "other"}),
            PodState.OTHER_SCHEDULER,
            "--profile default-scheduler asks that one instead",
        ),
    ],
)
def test_pods_that_the_scheduler_does_not_try(pod: Pod, state: PodState, part: str) -> None:
    """Each case has its own state and sentence."""
    found = state_of(pod, ["default-scheduler"])
    assert found is state
    assert part in why_undecided(pod, found, ["default-scheduler"]).sentence


def test_an_evicted_pod_has_its_preemptor() -> None:
    """The victim's condition names the preemptor and the reason."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    }
    pod = make_pod(
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status={"conditions": [condition]}
    )
    sentence = why_undecided(pod, PodState.TERMINATING, ["default-scheduler"]).sentence
    assert "PreemptionByScheduler: default-scheduler: preempting" in sentence


def test_the_sentence_lists_each_cause_once() -> None:
    """The most frequent cause is first."""
    report = ask(
        make_pod(requests={"cpu": "9"}),
        make_node("a"),
        make_node("b", allocatable={"cpu": "10", "pods": 1}, unschedulable=True),
        make_node("c"),
    )
    assert report.sentence == (
        "Pod default/pod fits none of 3 nodes: 2 have too little cpu, 1 is cordoned."
    )


def test_the_last_cause_is_named() -> None:
    """It is not counted as one other reason."""
    labels = {"zone": "eu-1"}
    report = ask(
        make_pod(node_selector=labels, requests={"cpu": "9"}),
        make_node("a"),
        make_node("b", labels=labels, unschedulable=True),
        make_node("c", labels=labels, taints=[TAINT]),
        make_node("d", labels=labels, allocatable={"cpu": "8", "pods": 5}),
        make_node("e", labels=labels, allocatable={"cpu": "10", "pods": 0}),
    )
    assert "other reasons" not in report.sentence
    assert "1 has too little room for pods" in report.sentence


def test_the_sentence_about_a_single_node() -> None:
    """It has no count."""
    report = ask(make_pod(requests={"cpu": "9"}), make_node("a"))
    assert report.sentence == (
        "Pod default/pod does not fit the only node, which has too little cpu."
    )


def test_nothing_is_suggested_for_a_pod_that_fits() -> None:
    """Its state says that it fits."""
    report = ask(make_pod(), make_node("n"))
    assert (report.state, report.changes) == (PodState.FITS, ())
    assert report.sentence == "Pod default/pod fits the only node now, and would go to n."


def test_a_nominated_node_that_fits_is_the_only_one_tried() -> None:
    """Of the others nothing is said."""
    report = ask(make_pod(nominated_node_name="b"), make_node("a"), make_node("b"))
    assert report.sentence == "Pod default/pod fits b now, to which it is nominated."


def test_a_nominated_pod_waits_for_its_victims() -> None:
    """While they are being deleted; otherwise it is tried as any other pod."""
    node = make_node("n", allocatable={"cpu": "2"})
    pod = make_pod(priority=5, requests={"cpu": "2"}, nominated_node_name="n")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim = make_pod(
        "idle",
        requests={"cpu": "2"},
        node_name="n",
        metadata={"deletionTimestamp": "2026-06-01T00:00:00Z"},
        status={"conditions": [condition]},
    )
    assert ask(pod, node, victim).sentence == (
        "Pod default/pod waits for pods on n to end: it is nominated to that node."
    )
    idle = make_pod("idle", requests={"cpu": "2"}, node_name="n")
    assert ask(pod, node, idle).state is PodState.PREEMPTS
    equal = make_pod("idle", priority=5, requests={"cpu": "2"}, node_name="n")
    assert ChangeKind.EVICT_POD in kinds(ask(pod, node, equal))


@pytest.mark.parametrize(
    ("cpu", "sentences"), [("1", ["lower the cpu request of the pod from 3 to 2"]), ("2500m", [])]
)
def test_the_request_of_a_pod_is_not_less_than_that_of_its_containers(
    cpu: str, sentences: list[str]
) -> None:
    """The request of the pod as a whole decides."""
    pod = make_pod(requests={"cpu": cpu}, spec={"resources": {"requests": {"cpu": "3"}}})
    report = ask(pod, make_node("n", allocatable={"cpu": "2", "pods": 5}))
    assert sentences == [change.sentence for change in report.changes]


def test_another_priority_does_not_open_a_gate() -> None:
    """The pod would evict others only without the gate."""
    idle = make_pod("idle", requests={"cpu": "2"}, node_name="n")
    pod = make_pod(requests={"cpu": "2"}, scheduling_gates=["gate"])
    urgent = PriorityClass(metadata=ObjectMeta(name="urgent"), value=10)
    assert not ask(pod, make_node("n", allocatable={"cpu": "2"}), idle, urgent).changes


def test_a_taint_that_shows_a_nodes_state_is_kept() -> None:
    """It would come back."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert not ask(make_pod(), make_node("n", taints=[taint])).changes


def test_preemption_names_its_victims() -> None:
    """The sentence has the pod and its node."""
    full = make_pod("idle", requests={"cpu": "2"}, node_name="n")
    report = ask(
        make_pod(priority=5, requests={"cpu": "2"}), make_node("n", allocatable={"cpu": "2"}), full
    )
    assert (
        "Pod default/pod fits no node as it is, and would evict default/idle on n to get there."
    ) == report.sentence


def test_a_pod_that_may_not_preempt() -> None:
    """A high priority does not help it, and a note says why; another class would."""
    full = make_pod("idle", requests={"cpu": "2"}, node_name="n")
    pod = make_pod(priority=5, requests={"cpu": "2"}, spec={"preemptionPolicy": "Never"})
    urgent = PriorityClass(metadata=ObjectMeta(name="urgent"), value=10)
    report = ask(pod, make_node("n", allocatable={"cpu": "2"}), full, urgent)
    assert (
        "It may not preempt other pods: not eligible due to preemptionPolicy=Never.",
    ) == report.notes
    assert ChangeKind.RAISE_PRIORITY in kinds(report)


def test_pods_that_are_being_deleted_are_named() -> None:
    """No change is needed, but to wait for them."""
    going = {"deletionTimestamp": "2026-06-01T00:00:00Z"}
    full = make_pod("old", requests={"cpu": "2"}, node_name="n", metadata=going)
    report = ask(make_pod(requests={"cpu": "2"}), make_node("n", allocatable={"cpu": "2"}), full)
    assert ("It fits n once pods that are being deleted are gone: default/old.",) == report.notes


def test_a_condition_without_a_message_is_no_attempt() -> None:
    """The report has no last attempt."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    pod = make_pod(scheduling_gates=["gate"], status={"conditions": [condition]})
    assert ask(pod, make_node()).last_attempt is None


def test_the_sentence_names_the_claim() -> None:
    """The scheduler's message does not."""
    others = [make_claim("data", storage_class="fast"), make_class("fast", mode="Immediate")]
    report = ask(make_pod(volumes=claim_volumes("data")), make_node("n"), *others)
    assert (
        "Pod default/pod cannot be placed: pod has unbound immediate PersistentVolumeClaims (claim "
        "data has no volume, and StorageClass fast binds at once: csi.example.com must create a "
        "volume before any pod is placed)."
    ) == report.sentence


def test_a_node_is_not_labelled_with_the_name_of_another() -> None:
    """Labels that kubelets set stay; labels of other domains may change."""
    host, disk = "kubernetes.io/hostname", "disk"
    node = make_node("n", labels={host: "n", disk: "hdd"})
    labelling = ChangeKind.LABEL_NODE
    assert labelling not in kinds(ask(make_pod(node_selector={host: "gone"}), node))
    assert labelling in kinds(ask(make_pod(node_selector={disk: "ssd"}), node))


def test_a_toleration_is_smaller_than_a_device_less() -> None:
    """Lowering a request is a small change, dropping it is not."""
    gpu = {"nvidia.com/gpu": "1"}
    nodes = [make_node("a"), make_node("b", allocatable=gpu, taints=[TAINT])]
    report = ask(make_pod(requests={"nvidia.com/gpu": "1"}), *nodes)
    sentences = [change.sentence for change in report.changes]
    drop = "drop the nvidia.com/gpu request of container container"
    assert ["tolerate the taint dedicated=gpu:NoSchedule", drop] == sentences[:2]


@pytest.mark.parametrize(
    ("members", "state", "part"),
    [(2, PodState.FITS, "fits the only node now"), (1, PodState.GATED, "waiting for minCount")],
)
def test_a_pod_of_a_gang(members: int, state: PodState, part: str) -> None:
    """The answer is about the pod alone; a note names its group."""
    group = make_group("g", min_count=2)
    pods = [make_member(f"g-{at}", "g") for at in range(members)]
    cluster = cluster_of(make_node("n"), group, *pods, gates=FeatureGates.of(GANGS))
    report = why_pod(cluster, PodInfo(pods[0]))
    assert state == report.state
    assert part in report.sentence
    note = "At least 2 pods of PodGroup g must fit together; this is about the pod alone"
    assert report.notes[0].startswith(note)


@pytest.mark.parametrize("template", ["", "gpus"])
def test_a_claim_asks_for_fewer_devices(template: str) -> None:
    """The answer has the largest number that some node has free."""
    owner = OwnerReference(api_version="v1", kind="Pod", name="pod", uid="u", controller=True)
    others = [
        dra.claim(dra.request(count=5), name="five", owner_references=(owner,)),
        dra.device_class(),
        dra.slice_of([dra.device(f"g{at}") for at in range(3)], node_name="n"),
    ]
    entry = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": "five"}
    made = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "five"}]}
    pod = make_pod(
        uid="u", spec={"resourceClaims": [{"name": "x", **entry}]}, status=made if template else {}
    )
    report = ask(pod, make_node("n"), *others)
    what = "ResourceClaimTemplate gpus" if template else "ResourceClaim five"
    sentence = f"replace {what} by one whose request r asks for 3 devices, not 5"
    assert [(sentence, "n")] == [(one.sentence, one.node) for one in report.changes]


def test_a_node_that_is_asked_for_by_name() -> None:
    """A DaemonSet's pod asks for its node, which may have been removed."""
    field = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    report = ask(make_pod(spec={"affinity": affinity}), make_node("n"))
    assert ("node gone is asked for; there is no such node",) == report.near_misses


def test_near_misses_are_pointed_out() -> None:
    """Labels, values and taints that differ in spelling only."""
    report = ask(
        make_pod(
            node_selector={"zones": "a"},
            tolerations=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}],
        ),
        make_node("n", labels={"zone": "a"}, taints=[TAINT]),
    )
    assert report.near_misses == (
        "the label zones is asked for; no node has it; did you mean zone?",
        "dedicated=ml:NoSchedule is tolerated; nodes have dedicated=gpu:NoSchedule",
    )
    gpus = make_node("n", allocatable={"cpu": "4", "pods": 9, "nvidia.com/gpu": 4})
    report = ask(make_pod(requests={"nvidia.com/gup": "1"}), gpus)
    words = "nvidia.com/gup is requested; no node has it; did you mean nvidia.com/gpu?"
    assert (words,) == report.near_misses


def test_a_node_that_is_not_there() -> None:
    """The note names it, if other nodes are there."""
    pod = make_pod(node_name="gone")
    report = why_pod(cluster_of(pod, make_node("n")), PodInfo(pod))
    assert (PodState.BOUND, "Pod default/pod is on node gone.") == (report.state, report.sentence)
    assert ("Node gone was removed, or is not in the input.",) == report.notes
    assert () == why_pod(cluster_of(pod), PodInfo(pod)).notes


# Random clusters, against brute force.

_ZONES: Final = ("a", "b")
_nodes = st.lists(
    st.builds(
        lambda cpu, zone, tainted, cordoned: {
            "allocatable": {"cpu": cpu, "memory": "4Gi", "pods": 4},
            "labels": {"zone": zone} if zone else {},
            "taints": [TAINT] if tainted else [],
            "unschedulable": cordoned,
        },
        st.sampled_from(["1", "2", "4"]),
        st.sampled_from([*_ZONES, ""]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
_placed = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["500m", "1", "2"]), st.sampled_from(["web", "db"])
    ),
    max_size=6,
)


def _term(app: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}


_pods = st.builds(
    lambda cpu, zone, tolerates, keeps_apart, ports, spread: make_pod(
        "incoming",
        labels={"app": "web"},
        requests={"cpu": cpu},
        node_selector={"zone": zone} if zone else None,
        tolerations=[{"key": "dedicated", "operator": "Exists"}] if tolerates else [],
        pod_anti_affinity={"requiredDuringSchedulingIgnoredDuringExecution": [_term("db")]}
        if keeps_apart
        else None,
        host_ports=[80] if ports else [],
        topology_spread_constraints=[SPREAD] if spread else [],
    ),
    st.sampled_from(["500m", "1500m", "3", "5"]),
    st.sampled_from(["", "a", "b", "c"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def _fits(objects: Sequence[KubeObject], pod: Pod) -> bool:
    return isinstance(cluster_of(*objects).schedule_one(PodInfo(pod)), Placed)


def _plain(item: KubeObject) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(item)
    return found


def _variants(
    pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod]
) -> Iterator[tuple[Pod, list[Node], list[Pod]]]:
    """Yield all single changes, written as JSON and without kubesched's own code."""
    for cpu in range(0, 5000, 500):
        plain = _plain(pod)
        plain["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{cpu}m"
        yield _pod(plain), [*nodes], [*pods]
    for field in ("nodeSelector", "affinity", "topologySpreadConstraints"):
        plain = _plain(pod)
        plain["spec"].pop(field, None)
        yield _pod(plain), [*nodes], [*pods]
    plain = _plain(pod)
    plain["spec"]["containers"][0].pop("ports", None)
    yield _pod(plain), [*nodes], [*pods]
    plain = _plain(pod)
    plain["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    yield _pod(plain), [*nodes], [*pods]
    for at, node in enumerate(nodes):
        for change in ("unschedulable", "taints"):
            plain = _plain(node)
            plain["spec"].pop(change, None)
            other = msgspec.convert(plain, Node)
            yield pod, [*nodes[:at], other, *nodes[at + 1 :]], [*pods]
        plain = _plain(node)
        plain["metadata"]["name"] = "one-more"
        yield pod, [*nodes, msgspec.convert(plain, Node)], [*pods]
        yield pod, [*nodes], [p for p in pods if p.spec.node_name != node.metadata.name]
    for at in range(len(pods)):
        yield pod, [*nodes], [*pods[:at], *pods[at + 1 :]]


def _pod(plain: dict[str, Any]) -> Pod:
    return msgspec.convert(plain, Pod)


def _applied(
    change: SuggestedChange, pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod]
) -> tuple[Pod, list[Node], list[Pod]] | None:
    """Apply changes of objects; return None for changes of the pod's fields."""
    kind, _, name = change.object.partition(" ")
    if change.kind is ChangeKind.EVICT_POD:
        return pod, [*nodes], [p for p in pods if PodInfo(p).key != name]
    if change.kind is ChangeKind.FREE_NODE:
        return pod, [*nodes], [p for p in pods if p.spec.node_name != name]
    if change.kind is ChangeKind.ADD_NODE:
        model = next(node for node in nodes if node.metadata.name == change.after)
        plain = _plain(model)
        plain["metadata"]["name"] = name
        return pod, [*nodes, msgspec.convert(plain, Node)], [*pods]
    if kind != "node":
        return None
    at = next(at for at, node in enumerate(nodes) if node.metadata.name == name)
    plain = _plain(nodes[at])
    if change.kind is ChangeKind.UNCORDON_NODE:
        plain["spec"].pop("unschedulable")
    elif change.kind is ChangeKind.REMOVE_TAINT:
        plain["spec"].pop("taints")
    else:
        assert change.kind is ChangeKind.LABEL_NODE
        key = change.field.removeprefix("metadata.labels[").removesuffix("]")
        plain["metadata"].setdefault("labels", {})[key] = change.after
    return pod, [*nodes[:at], msgspec.convert(plain, Node), *nodes[at + 1 :]], [*pods]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(_nodes, _placed, _pods)
def test_suggestions_agree_with_brute_force(
    node_fields: list[dict[str, Any]], placed: list[tuple[int, str, str]], pod: Pod
) -> None:
    """Suggestions work, and there is one whenever brute force finds one."""
    nodes = [make_node(f"n{at}", **fields) for at, fields in enumerate(node_fields)]
    pods = [
        make_pod(
            f"p{at}", node_name=f"n{node % len(nodes)}", requests={"cpu": cpu}, labels={"app": app}
        )
        for at, (node, cpu, app) in enumerate(placed)
    ]
    report = ask(pod, *nodes, *pods)
    if report.state is not PodState.UNSCHEDULABLE:
        return
    for change in report.changes:
        changed = _applied(change, pod, nodes, pods)
        if changed is not None:
            other, all_nodes, all_pods = changed
            assert _fits([*all_nodes, *all_pods], other), change
    exists = any(
        _fits([*all_nodes, *all_pods], other)
        for other, all_nodes, all_pods in _variants(pod, nodes, pods)
    )
    assert bool(report.changes) >= exists


def test_the_nearest_misses_are_the_examples() -> None:
    """Nodes where the smallest share of the requests is missing come first, equal ones together."""

    def node(name: str, cpu: str, memory: str) -> Node:
        return make_node(name, allocatable={"cpu": cpu, "memory": memory, "pods": 5})

    nodes = [
        *(node(f"tiny-{number}", "1", "1Gi") for number in range(3)),
        node("half", "5", "5Gi"),
        node("lopsided", "9", "512Mi"),
        *(node(f"near-{number}", "7", "7Gi") for number in range(2)),
    ]
    [cause] = ask(make_pod(requests={"cpu": "10", "memory": "10Gi"}), *nodes).causes
    found = [example.nodes for example in cause.examples]
    assert [("near-0", "near-1"), ("half",), ("lopsided",)] == found
