"""scheduler_perf's workloads as data: the largest `performance` size of each case.

Upstream: test/integration/scheduler_perf/*/performance-config.yaml (v1.36)
Differs:  upstream creates a churn pod every 200 ms; here one is created for as many measured pods
          as kube-scheduler places in that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from benchmarks import templates
from benchmarks.templates import Json, PodObjects

NodeTemplate = Callable[[int, int, Mapping[str, str]], list[Json]]
"""(index, number, labels) -> the node and the objects that belong to it."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of one template.

    Attributes:
        count: Number of nodes.
        template: The node template.
        zones: Values of the zone label, assigned round-robin; empty for no label.
    """

    count: int
    template: NodeTemplate = templates.node_default
    zones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods of one template.

    Attributes:
        count: Number of pods in all namespaces.
        template: A key of `templates.PODS`.
        namespace: The namespace; `{}` is replaced by its number.
        namespaces: Number of namespaces that are filled one after the other.
        brings: Creates the objects that come with each pod.
    """

    count: int
    template: str = "pod-default"
    namespace: str = "namespace-1"
    namespaces: int = 1
    brings: PodObjects | None = None


@dataclass(frozen=True, slots=True)
class Churn:
    """Pods between the measured ones that do not fit and are not counted.

    Attributes:
        template: A key of `templates.PODS`.
        every_pods: Number of measured pods per churn pod.
    """

    template: str
    every_pods: int


@dataclass(frozen=True, slots=True)
class Reference:
    """Figures of kube-scheduler 1.36.2 with its API server, on a machine with two cores.

    Attributes:
        pods_per_second: Minimum and maximum of several runs; None if not measured.
        decision_ms: Per pod in PreFilter, Filter, PreScore and Score: without the API server, and
            on about a tenth of the nodes.
        rss_gib: Peak memory of scheduler and API server together.
        threshold: Pods/s below which upstream's own test fails; None if it has none.
    """

    pods_per_second: tuple[int, int] | None = None
    decision_ms: float | None = None
    rss_gib: float | None = None
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One benchmark.

    Attributes:
        name: Upstream's name of the case.
        nodes: The nodes.
        measured: The measured pods.
        before: Pods placed before the measurement.
        objects: Other objects.
        team_namespaces: Whether the pods' namespaces have the label team=devops.
        churn: Pods created during the measurement.
        preempts: Whether each measured pod must preempt others.
        reference: kube-scheduler's figures.
    """

    name: str
    nodes: tuple[Nodes, ...]
    measured: Pods
    before: tuple[Pods, ...] = ()
    objects: tuple[Json, ...] = ()
    team_namespaces: bool = False
    churn: Churn | None = None
    preempts: bool = False
    reference: Reference = Reference()

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return sum(nodes.count for nodes in self.nodes)

    @property
    def before_count(self) -> int:
        """Number of pods placed before the measurement."""
        return sum(pods.count for pods in self.before)

    def divided(self, divisor: int) -> Workload:
        """Return the case with nodes and pods divided by `divisor`, at least one of each kind."""
        return replace(
            self,
            nodes=tuple(replace(n, count=max(1, n.count // divisor)) for n in self.nodes),
            before=tuple(_divided(pods, divisor) for pods in self.before),
            measured=_divided(self.measured, divisor),
        )


def _divided(pods: Pods, divisor: int) -> Pods:
    count, namespaces = pods.count // divisor, pods.namespaces // divisor
    return replace(pods, count=max(1, count), namespaces=max(1, namespaces))


_ZONE: Final = ("zone1",)
_MOONS: Final = ("moon-1", "moon-2", "moon-3")


def _plain(count: int = 5000, zones: tuple[str, ...] = ()) -> tuple[Nodes, ...]:
    return (Nodes(count, zones=zones),)


def _same(
    template: str, before: int, measured: int, brings: PodObjects | None = None
) -> tuple[tuple[Pods, ...], Pods]:
    """Return pods of one template, those before and the measured ones in separate namespaces."""
    return (
        (Pods(before, template, "namespace-1", brings=brings),),
        Pods(measured, template, "namespace-2", brings=brings),
    )


def _sched(template: str, before: int, measured: int) -> tuple[tuple[Pods, ...], Pods]:
    """Return pods of one template in the namespaces that the affinity terms name."""
    return (Pods(before, template, "sched-0"),), Pods(measured, template, "sched-1")


def _team(template: str, each: int, measured: int) -> tuple[tuple[Pods, ...], Pods]:
    """Return pods of one template, `each` in 100 namespaces, and the measured ones in another."""
    before = Pods(100 * each, template, "init-ns-{}", 100)
    return (before,), Pods(measured, template, "measure-ns-0")


def _basic() -> Workload:
    before, measured = _same("pod-default", 1000, 10_000)
    reference = Reference((482, 534), 1.83, 1.2, 270)
    return Workload("SchedulingBasic", _plain(), measured, before, reference=reference)


def _node_affinity() -> Workload:
    before, measured = _same("pod-with-node-affinity", 5000, 10_000)
    reference = Reference((394, 394), 2.37, 1.6, 220)
    nodes = _plain(zones=_ZONE)
    return Workload("SchedulingNodeAffinity", nodes, measured, before, reference=reference)


def _spreading(name: str, template: str, reference: Reference) -> Workload:
    measured = Pods(5000, template, "namespace-2")
    return Workload(name, _plain(zones=_MOONS), measured, (Pods(5000),), reference=reference)


def _default_spreading() -> Workload:
    measured = Pods(10_000, "pod-with-label", "service-ns")
    return Workload(
        "DefaultTopologySpreading",
        _plain(zones=_MOONS),
        measured,
        (Pods(5000),),
        (templates.SERVICE,),
    )


def _affinity(
    name: str,
    kind: str,
    counts: tuple[int, int],
    reference: Reference,
    zones: tuple[str, ...] = (),
) -> Workload:
    before, measured = _sched(f"pod-with-{kind}", *counts)
    return Workload(name, _plain(zones=zones), measured, before, reference=reference)


def _matching_anti_affinity() -> Workload:
    return Workload(
        "SchedulingPodMatchingAntiAffinity",
        _plain(),
        Pods(5000, "pod-with-pod-anti-affinity-label", "sched-1"),
        (Pods(1000, "pod-with-pod-anti-affinity", "sched-0"),),
        reference=Reference((321, 321), 3.15, 0.9, 540),
    )


def _mixed() -> Workload:
    kinds = (
        "pod-default",
        "pod-with-pod-affinity",
        "pod-with-pod-anti-affinity",
        "pod-with-preferred-pod-affinity",
        "pod-with-preferred-pod-anti-affinity",
    )
    return Workload(
        "MixedSchedulingBasePod",
        _plain(zones=_ZONE),
        Pods(5000, "pod-default", "namespace-7"),
        tuple(Pods(2000, kind, "sched-0") for kind in kinds),
        reference=Reference((240, 294), 4.78, 1.7, 140),
    )


def _ns_selector(
    name: str,
    kind: str,
    nodes: tuple[Nodes, ...],
    each: int,
    measured: int,
    reference: Reference,
) -> Workload:
    before, counted = _team(f"pod-{kind}-ns-selector", each, measured)
    return Workload(name, nodes, counted, before, team_namespaces=True, reference=reference)


def _unschedulable() -> Workload:
    return Workload(
        "Unschedulable",
        _plain(),
        Pods(10_000, "pod-default", "namespace-3"),
        (Pods(100),),
        # One every 200 ms at kube-scheduler's 483 pods/s.
        churn=Churn("pod-high-priority-large-cpu", 97),
        reference=Reference((483, 483), 1.86, 1.2, 140),
    )


def _preemption() -> Workload:
    return Workload(
        "PreemptionBasic",
        _plain(1000),
        Pods(1000, "pod-high-priority", "namespace-2"),
        (Pods(4000, "pod-low-priority"),),
        preempts=True,
    )


def _daemon_set() -> Workload:
    return Workload(
        "SchedulingDaemonset",
        (Nodes(1, templates.node_with_name), Nodes(15_000)),
        Pods(30_000, "daemonset-pod", "namespace-2"),
        reference=Reference((618, 618), 0.14, 2.1, 390),
    )


def _secrets() -> Workload:
    before, measured = _same("pod-with-secret-volume", 1000, 10_000)
    reference = Reference((404, 454), 2.11, 1.3, 260)
    return Workload("SchedulingSecrets", _plain(), measured, before, reference=reference)


def _in_tree_volumes() -> Workload:
    before, measured = _same("pod-default", 1000, 2000, templates.with_in_tree_volume)
    reference = Reference((156, 168), 4.56, 0.9, 90)
    return Workload("SchedulingInTreePVs", _plain(), measured, before, reference=reference)


def _csi_volumes() -> Workload:
    before, measured = _same("pod-default", 5000, 5000, templates.with_csi_volume)
    nodes = (Nodes(5000, templates.node_with_csi_limit),)
    reference = Reference((100, 100), 6.77, 1.8, 48)
    return Workload("SchedulingCSIPVs", nodes, measured, before, reference=reference)


def _node_inclusion_policy() -> Workload:
    return Workload(
        "SchedulingWithNodeInclusionPolicy",
        (Nodes(4000), Nodes(1000, templates.node_with_taint)),
        Pods(4000, "pod-with-node-inclusion-policy", "namespace-2"),
        reference=Reference(threshold=68),
    )


def _extended_resource() -> Workload:
    return Workload(
        "SchedulingWithExtendedResource",
        (Nodes(5000, templates.node_with_extended_resource),),
        Pods(
            5000,
            "pod-with-extended-resource",
            "test",
            brings=templates.with_extended_resource,
        ),
    )


def _on_devices(
    name: str, template: str, brings: PodObjects, objects: tuple[Json, ...], threshold: int | None
) -> Workload:
    """Return pods that take all ten devices of 500 nodes, half of them before."""
    return Workload(
        name,
        (Nodes(500, templates.node_with_dra_driver),),
        Pods(2500, template, "test", brings=brings),
        (Pods(2500, template, "init", brings=brings),),
        objects,
        reference=Reference(threshold=threshold),
    )


WORKLOADS: Final[tuple[Workload, ...]] = (
    _basic(),
    _node_affinity(),
    _spreading(
        "TopologySpreading",
        "pod-with-topology-spreading",
        Reference((257, 257), 2.9, 1.3, 85),
    ),
    _spreading(
        "PreferredTopologySpreading",
        "pod-with-preferred-topology-spreading",
        Reference((277, 277), 2.81, 1.3, 125),
    ),
    _default_spreading(),
    _affinity(
        "SchedulingPodAntiAffinity",
        "pod-anti-affinity",
        (1000, 2000),
        Reference((206, 206), 4.11, 0.8, 60),
    ),
    _matching_anti_affinity(),
    _affinity(
        "SchedulingPodAffinity",
        "pod-affinity",
        (5000, 5000),
        Reference((85, 85), 8.91, 1.3, 35),
        _ZONE,
    ),
    _mixed(),
    _affinity(
        "SchedulingPreferredPodAffinity",
        "preferred-pod-affinity",
        (5000, 5000),
        Reference((133, 133), 5.42, 1.2, 90),
    ),
    _affinity(
        "SchedulingPreferredPodAntiAffinity",
        "preferred-pod-anti-affinity",
        (5000, 5000),
        Reference((97, 97), 7.54, 1.3, 90),
    ),
    _ns_selector(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        "anti-affinity",
        _plain(6000),
        40,
        2000,
        Reference((78, 78), 7.11, 1.0, 24),
    ),
    _ns_selector(
        "SchedulingRequiredPodAffinityWithNSSelector",
        "affinity",
        _plain(zones=_ZONE),
        50,
        2000,
        Reference((88, 88), 7.66, 1.1, 35),
    ),
    _ns_selector(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        "preferred-anti-affinity",
        _plain(),
        40,
        2000,
        Reference((98, 98), 6.8, 1.1, 55),
    ),
    _ns_selector(
        "SchedulingPreferredAffinityWithNSSelector",
        "preferred-affinity",
        _plain(),
        50,
        5000,
        Reference((126, 130), 5.6, 1.3, 90),
    ),
    _unschedulable(),
    _preemption(),
    _daemon_set(),
    _secrets(),
    _in_tree_volumes(),
    _csi_volumes(),
    _node_inclusion_policy(),
    _extended_resource(),
    _on_devices(
        "SchedulingWithResourceClaimTemplate",
        "pod-with-claim-template",
        templates.with_resource_claim,
        (templates.DEVICE_CLASS,),
        56,
    ),
    _on_devices(
        "ExtendedResource_25Classes",
        "pod-with-extended-resource",
        templates.with_device_backed_resource,
        templates.CLASSES_WITH_RESOURCES,
        None,
    ),
)


def workload(name: str) -> Workload:
    """Return a workload by name.

    Raises:
        KeyError: if there is no such workload.
    """
    return {each.name: each for each in WORKLOADS}[name]
