"""A scenario says what happens in a simulated cluster: nodes, pods, events, faults, for how long.

It is plain data, read from YAML or JSON; `scenario_objects` turns it into objects. The format is
documented in docs/howto/simulate-over-time.md.

Reads:    a document with `version: 1`
Rejects:  unknown fields, wrong types, and what makes no sense; all faults at once, with paths.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from kubesched.config.durations import DurationSeconds
from kubesched.simulator.faults import FaultPlan
from kubesched.simulator.latencies import Latencies

VERSION: Final = 1

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Amounts = dict[str, str | int | float]


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a scenario: frozen, JSON names in camelCase."""


class NodeGroup(_Part, frozen=True):
    """Equal nodes that join at the same time, called `name-0`, `name-1` and so on.

    Attributes:
        name: The beginning of their names.
        count: How many.
        at: When they join.
        allocatable: What each offers; also its capacity.
        labels: Besides `kubernetes.io/hostname`.
        taints: As in Kubernetes.
        zones: Values of `topology.kubernetes.io/zone`, given out in turn.
        template: Anything else of a Node; what stands above wins.
        trace: A file of openb nodes, instead of all the others but `at`.
    """

    name: str = ""
    count: Count = 1
    at: DurationSeconds = 0.0
    allocatable: Amounts = {}
    labels: dict[str, str] = {}
    taints: tuple[dict[str, Any], ...] = ()
    zones: tuple[str, ...] = ()
    template: dict[str, Any] = {}
    trace: str = ""


class PriorityClassSpec(_Part, frozen=True):
    """A priority class."""

    name: str
    value: int
    preemption_policy: str = ""
    global_default: bool = False


class RunTime(_Part, frozen=True):
    """How long pods run; exactly one of the fields.

    Attributes:
        fixed: Always as long.
        exponential: Exponentially distributed, with this mean.
        uniform: Anything between two durations, equally likely.
        log_normal: Log-normally distributed.
    """

    fixed: DurationSeconds | None = None
    exponential: DurationSeconds | None = None
    uniform: Uniform | None = None
    log_normal: LogNormal | None = None


class Uniform(_Part, frozen=True):
    """Two durations."""

    min: DurationSeconds
    max: DurationSeconds


class LogNormal(_Part, frozen=True):
    """Half are shorter than the median; `sigma` is the deviation of the logarithm."""

    median: DurationSeconds
    sigma: Positive


class PodArrivals(_Part, frozen=True):
    """Pods that come one by one, or in bursts; exactly one of `at`, `every`, `perHour`.

    Attributes:
        at: The times.
        every: The seconds between two.
        per_hour: The mean number per hour of a Poisson process.
        start: When `every` and `perHour` begin.
        end: When they end; None for the scenario's end.
        count: After so many pods they end, too; None for no limit.
        burst: How many pods come at each time.
        run_time: How long each runs; None for as long as it is let.
        restart: Whether a pod that is stopped before its end is created again.
    """

    at: tuple[DurationSeconds, ...] = ()
    every: DurationSeconds | None = None
    per_hour: Positive | None = None
    start: DurationSeconds = 0.0
    end: DurationSeconds | None = None
    count: Count | None = None
    burst: Annotated[int, msgspec.Meta(ge=1)] = 1
    run_time: RunTime | None = None
    restart: bool = False


class Scaling(_Part, frozen=True):
    """A number of replicas from a time on."""

    at: DurationSeconds
    replicas: Count


class DeploymentSpec(_Part, frozen=True):
    """Pods that are replaced when they go.

    Attributes:
        replicas: How many.
        at: From when on.
        scale: Other numbers later.
    """

    replicas: Count = 1
    at: DurationSeconds = 0.0
    scale: tuple[Scaling, ...] = ()


class DaemonSetSpec(_Part, frozen=True):
    """A pod per node, from a time on."""

    at: DurationSeconds = 0.0


class TraceSpec(_Part, frozen=True):
    """Pods of an openb trace, with its times of creation and deletion.

    Attributes:
        pods: The file.
        speed: How many seconds of the trace pass in one.
        start: When its first pod comes.
        count: At most so many pods, the earliest; None for all.
    """

    pods: str
    speed: Positive = 1.0
    start: DurationSeconds = 0.0
    count: Count | None = None


class DisruptionBudget(_Part, frozen=True):
    """How many of a workload's pods must stay; exactly one of the first two.

    Attributes:
        min_available: So many pods, or so many percent of them.
        max_unavailable: All but so many pods, or percent of them.
        unhealthy_pod_eviction_policy: As in Kubernetes.
    """

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class Workload(_Part, frozen=True):
    """Pods of one template; exactly one of `pods`, `deployment`, `daemonSet` and `trace`.

    Attributes:
        name: The beginning of the pods' names.
        namespace: Where they live.
        requests: Of the one container.
        labels: Besides `app`, which is the name.
        priority_class_name: As in Kubernetes.
        disruption_budget: Of its pods; None for none.
        template: Anything else of a pod template (`metadata`, `spec`); what stands above wins.
    """

    name: str
    namespace: str = "default"
    pods: PodArrivals | None = None
    deployment: DeploymentSpec | None = None
    daemon_set: DaemonSetSpec | None = None
    trace: TraceSpec | None = None
    requests: Amounts = {}
    labels: dict[str, str] = {}
    priority_class_name: str = ""
    disruption_budget: DisruptionBudget | None = None
    template: dict[str, Any] = {}


class NodeSelection(_Part, frozen=True):
    """Nodes: those that fit everything that is given.

    Attributes:
        names: Patterns as of file names, such as `gpu-*`; at least one must fit.
        labels: All must be there.
        count: So many of them, drawn; None for all.
    """

    names: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    count: Count | None = None


class Drain(NodeSelection, frozen=True, rename="camel"):
    """Nodes to drain; pods are deleted, not evicted, if eviction is disabled."""

    disable_eviction: bool = False


class NodeFailure(NodeSelection, frozen=True, rename="camel"):
    """Nodes that fail, for some time or for good."""

    duration: DurationSeconds | None = None


class Relabelling(NodeSelection, frozen=True, rename="camel"):
    """Nodes whose labels change."""

    set: dict[str, str] = {}
    remove: tuple[str, ...] = ()


class PodSelection(_Part, frozen=True):
    """Pods: those that fit everything that is given; the fields are those of nodes."""

    namespace: str = ""
    names: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    count: Count | None = None


class ScenarioEvent(_Part, frozen=True):
    """Something that happens at a time, or again and again; exactly one of the actions.

    Attributes:
        at: When.
        every: And again after so many seconds; None for once.
        drain: Cordon nodes and evict their pods, as far as disruption budgets allow.
        cordon: Place no further pods on nodes.
        uncordon: Place pods on them again.
        remove: Take nodes away.
        fail: Let nodes fail.
        recover: Let nodes that failed come back.
        label: Change nodes' labels.
        delete: Delete pods.
    """

    at: DurationSeconds
    every: DurationSeconds | None = None
    drain: Drain | None = None
    cordon: NodeSelection | None = None
    uncordon: NodeSelection | None = None
    remove: NodeSelection | None = None
    fail: NodeFailure | None = None
    recover: NodeSelection | None = None
    label: Relabelling | None = None
    delete: PodSelection | None = None


class ExtenderSpec(_Part, frozen=True):
    """What an extender of the scheduler's configuration is like; it speaks every verb.

    Attributes:
        url_prefix: The configuration's name for it.
        refuses: Nodes that its filter does not let pass; None for none.
        prefers: Nodes to which it gives 10 points; None for none.
        latency: How long it takes to answer.
    """

    url_prefix: str
    refuses: NodeSelection | None = None
    prefers: NodeSelection | None = None
    latency: DurationSeconds = 0.01


class SchedulerSpec(_Part, frozen=True):
    """Which scheduler.

    Attributes:
        configuration: A KubeSchedulerConfiguration; empty for the default one.
        configuration_file: A file with one, instead.
        feature_gates: Gates that differ from their defaults.
        extenders: What the configuration's extenders are like; one that is not here lets every
            node pass and prefers none.
    """

    configuration: dict[str, Any] = {}
    configuration_file: str = ""
    feature_gates: dict[str, bool] = {}
    extenders: tuple[ExtenderSpec, ...] = ()


class ReportSpec(_Part, frozen=True):
    """What is reported.

    Attributes:
        resolution: Of the series, seconds; None for a 300th of the duration.
        check_every: How often all invariants are checked; None for a 100th of the duration.
    """

    resolution: DurationSeconds | None = None
    check_every: DurationSeconds | None = None


class Scenario(_Part, frozen=True):
    """What happens.

    Attributes:
        version: Of the format.
        name: For the report.
        duration: For how long.
        seed: Of all random_streams, if none is given otherwise.
        nodes: The nodes.
        priority_classes: Besides Kubernetes' own.
        objects: Files of other objects, there from the beginning.
        workloads: The pods.
        events: What happens to them.
        faults: What goes wrong by chance.
        latencies: How long things take.
        scheduler: Which scheduler.
        report: What is reported.
    """

    version: int
    duration: DurationSeconds
    name: str = "scenario"
    seed: int = 0
    nodes: tuple[NodeGroup, ...] = ()
    priority_classes: tuple[PriorityClassSpec, ...] = ()
    objects: tuple[str, ...] = ()
    workloads: tuple[Workload, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()
    faults: FaultPlan = FaultPlan()
    latencies: Latencies = Latencies()
    scheduler: SchedulerSpec = SchedulerSpec()
    report: ReportSpec = ReportSpec()
