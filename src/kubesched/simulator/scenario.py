"""A scenario describes a simulated cluster over time: nodes, workloads, events and faults.

It is plain data, read from YAML or JSON; `scenario_objects` converts it to objects.
docs/scenarios.md is the reference that is made from these classes.

Reads:    a document with `version: 1`
Rejects:  unknown fields, wrong types and contradictions; reports all field errors at once, with
          paths.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from kubesched.config.decoding import DurationSeconds
from kubesched.simulator.faults import FaultPlan, Latencies

VERSION: Final = 1

# More nodes or pods than this, ten times what has been simulated, do not fit into memory.
_COUNT_MAX: Final = 10_000_000
Count = Annotated[int, msgspec.Meta(ge=0, le=_COUNT_MAX)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Amounts = dict[str, str | int | float]


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a scenario: frozen, JSON names in camelCase."""


class NodeGroup(_Part, frozen=True):
    """Equal nodes that join at the same time, called `name-0`, `name-1` and so on.

    Attributes:
        name: The prefix of their names.
        count: Number of nodes.
        at: When they join.
        allocatable: The allocatable of each, and its capacity; `pods` is 110 unless given.
        labels: Labels in addition to `kubernetes.io/hostname`.
        taints: As in Kubernetes.
        zones: Values of `topology.kubernetes.io/zone`, assigned in turn.
        template: Other fields of a Node; the fields above take precedence.
        trace: A file of openb nodes, instead of all other fields but `at`.
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
    """A priority class, in addition to Kubernetes' own.

    Attributes:
        name: Its name.
        value: The priority of its pods.
        preemption_policy: `PreemptLowerPriority` or `Never`; empty for the first.
        global_default: Whether it is for pods that name no class.
    """

    name: str
    value: int
    preemption_policy: str = ""
    global_default: bool = False


class RunTime(_Part, frozen=True):
    """How long pods run; exactly one of the fields is set.

    Attributes:
        fixed: A constant duration.
        exponential: The mean of an exponential distribution.
        uniform: The limits of a uniform distribution.
        log_normal: The parameters of a log-normal distribution.
    """

    fixed: DurationSeconds | None = None
    exponential: DurationSeconds | None = None
    uniform: Uniform | None = None
    log_normal: LogNormal | None = None


class Uniform(_Part, frozen=True):
    """The limits of a uniform distribution.

    Attributes:
        min: The shortest duration.
        max: The longest duration.
    """

    min: DurationSeconds
    max: DurationSeconds


class LogNormal(_Part, frozen=True):
    """A log-normal distribution.

    Attributes:
        median: The median.
        sigma: The standard deviation of the logarithm.
    """

    median: DurationSeconds
    sigma: Positive


class PodArrivals(_Part, frozen=True):
    """Pods that arrive singly or in bursts; exactly one of `at`, `every` and `perHour` is set.

    Attributes:
        at: The arrival times.
        every: The time between two arrivals.
        per_hour: Mean arrivals per hour of a Poisson process.
        start: When `every` and `perHour` begin.
        end: When they end; by default with the scenario.
        count: The maximum number of pods; by default there is none.
        burst: Number of pods per arrival.
        run_time: How long each pod runs; by default until it is deleted.
        restart: Whether a pod that is stopped early is created again, as a Job would do; otherwise
            it is lost.
    """

    at: tuple[DurationSeconds, ...] = ()
    every: DurationSeconds | None = None
    per_hour: Positive | None = None
    start: DurationSeconds = 0.0
    end: DurationSeconds | None = None
    count: Count | None = None
    burst: Annotated[int, msgspec.Meta(ge=1, le=_COUNT_MAX)] = 1
    run_time: RunTime | None = None
    restart: bool = False


class Scaling(_Part, frozen=True):
    """A change of the number of replicas.

    Attributes:
        at: When it happens.
        replicas: The number of replicas from then on.
    """

    at: DurationSeconds
    replicas: Count


class ScenarioDeployment(_Part, frozen=True):
    """Pods that are replaced when they end.

    Attributes:
        replicas: Number of replicas at first.
        at: When it is created.
        scale: Later changes of the number of replicas.
    """

    replicas: Count = 1
    at: DurationSeconds = 0.0
    scale: tuple[Scaling, ...] = ()


class ScenarioDaemonSet(_Part, frozen=True):
    """A pod on every node that the template selects and whose taints it tolerates.

    Attributes:
        at: When it is created.
    """

    at: DurationSeconds = 0.0


class TraceSpec(_Part, frozen=True):
    """Pods of a trace: a table with a row per pod, or a list of openb; CSV or Parquet.

    A table has the columns `name` and `arrival`, and any of `duration`, `priorityClassName`, `cpu`,
    `memory`, `ephemeral-storage` and extended resources such as `nvidia.com/gpu`, with quantities.
    All else comes from the workload. Pods of openb arrive at their times of creation, with what the
    list has and nothing else of the workload but its namespace and priority. Times count from the
    first arrival, and a pod runs from its binding for as long as in the trace.

    Attributes:
        pods: The file.
        speed: Units of the trace's time per simulated second: 1000 if its times are milliseconds.
        start: When its first pod arrives.
        count: The maximum number of pods, earliest first; by default all.
    """

    pods: str
    speed: Positive = 1.0
    start: DurationSeconds = 0.0
    count: Count | None = None


class DisruptionBudget(_Part, frozen=True):
    """A PodDisruptionBudget of a workload's pods; exactly one of the first two fields is set.

    Drains respect it, and preemption prefers victims whose eviction does not violate it.

    Attributes:
        min_available: A number of pods, or a percentage.
        max_unavailable: A number of pods, or a percentage.
        unhealthy_pod_eviction_policy: As in Kubernetes.
    """

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class ScenarioWorkload(_Part, frozen=True):
    """Pods of one template; exactly one of `pods`, `deployment`, `daemonSet` and `trace` is set.

    Attributes:
        name: The prefix of the pods' names.
        namespace: Their namespace.
        pods: Pods that are created one after another.
        deployment: Pods whose number is kept.
        daemon_set: A pod on every node.
        trace: Pods of a trace.
        requests: Requests of the single container.
        labels: Labels in addition to `app`, which is the name.
        priority_class_name: As in Kubernetes.
        disruption_budget: The budget of its pods.
        template: Other fields of a pod template (`metadata`, `spec`); the fields above take
            precedence.
    """

    name: str
    namespace: str = "default"
    pods: PodArrivals | None = None
    deployment: ScenarioDeployment | None = None
    daemon_set: ScenarioDaemonSet | None = None
    trace: TraceSpec | None = None
    requests: Amounts = {}
    labels: dict[str, str] = {}
    priority_class_name: str = ""
    disruption_budget: DisruptionBudget | None = None
    template: dict[str, Any] = {}


class NodeSelection(_Part, frozen=True):
    """Selects the nodes that match all fields; all nodes without fields.

    Attributes:
        names: Shell patterns such as `gpu-*`, of which one must match.
        labels: Labels that it must have.
        count: How many to choose at random; by default all.
    """

    names: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    count: Count | None = None


class Drain(NodeSelection, frozen=True, rename="camel"):
    """Selects the nodes to drain.

    Attributes:
        disable_eviction: Whether pods are deleted, whatever the budgets, instead of evicted.
    """

    disable_eviction: bool = False


class NodeFailure(NodeSelection, frozen=True, rename="camel"):
    """Selects the nodes that fail.

    Attributes:
        duration: How long they fail; by default for good.
    """

    duration: DurationSeconds | None = None


class Relabelling(NodeSelection, frozen=True, rename="camel"):
    """Selects the nodes whose labels change.

    Attributes:
        set: Labels that they get.
        remove: Keys of labels that they lose.
    """

    set: dict[str, str] = {}
    remove: tuple[str, ...] = ()


class PodSelection(_Part, frozen=True):
    """Selects the pods that match all fields.

    Attributes:
        namespace: Their namespace; empty for any.
        names: Shell patterns such as `web-*`, of which one must match.
        labels: Labels that they must have.
        count: How many to choose at random; by default all.
    """

    namespace: str = ""
    names: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    count: Count | None = None


class ScenarioEvent(_Part, frozen=True):
    """An event at a time, once or repeated; exactly one of the actions is set.

    Attributes:
        at: When it happens.
        every: The time until it is repeated; by default it is not.
        drain: Cordon nodes and evict their pods, except static ones and those of daemon sets. An
            eviction that a disruption budget forbids is tried again every 5 seconds, until the node
            is uncordoned.
        cordon: Make nodes unschedulable.
        uncordon: Make nodes schedulable again.
        remove: Delete nodes; pods on them are deleted after `latencies.podGarbageCollection`.
        fail: Let nodes stop reporting, so that their pods lose their work. After
            `latencies.nodeFailureDetection` the nodes are tainted `unreachable`, and pods are
            deleted when their toleration ends, by default after five minutes.
        recover: Let failed nodes recover.
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
    """The behaviour of an extender of the configuration.

    It binds if the configuration has a `bindVerb`, and does not change the victims of preemption.

    Attributes:
        url_prefix: Its `urlPrefix` in the configuration.
        refuses: Nodes that its filter rejects; by default none.
        prefers: Nodes that it scores with 10; by default none.
        latency: Its response time.
    """

    url_prefix: str
    refuses: NodeSelection | None = None
    prefers: NodeSelection | None = None
    latency: DurationSeconds = 0.01


class SchedulerSpec(_Part, frozen=True):
    """The scheduler to simulate.

    Attributes:
        configuration: A KubeSchedulerConfiguration; empty for the default.
        configuration_file: A file with the configuration, instead.
        feature_gates: Gates that differ from their defaults.
        extenders: The behaviour of extenders; others accept every node and prefer none.
    """

    configuration: dict[str, Any] = {}
    configuration_file: str = ""
    feature_gates: dict[str, bool] = {}
    extenders: tuple[ExtenderSpec, ...] = ()


class ReportSpec(_Part, frozen=True):
    """Options of the report.

    Attributes:
        resolution: Time per point of the series; by default 1/300 of the duration.
        check_every: Time between full checks of invariants; by default 1/100 of the duration.
    """

    resolution: DurationSeconds | None = None
    check_every: DurationSeconds | None = None


class Scenario(_Part, frozen=True):
    """A cluster over time.

    Attributes:
        version: The version of the format: 1.
        duration: The virtual time to simulate.
        name: The name, for the report.
        seed: The seed of everything random; `--seed` overrides it.
        nodes: Groups of equal nodes.
        priority_classes: Priority classes in addition to Kubernetes' own.
        objects: Files of other Kubernetes objects that exist from the beginning, workloads with
            their pods; relative to the scenario's directory.
        workloads: The pods, and who creates them.
        events: Changes of nodes and pods at given times.
        faults: Injected faults.
        latencies: How long requests, watches, starts and stops take.
        scheduler: The scheduler to simulate.
        report: Options of the report.
    """

    version: int
    duration: DurationSeconds
    name: str = "scenario"
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    nodes: tuple[NodeGroup, ...] = ()
    priority_classes: tuple[PriorityClassSpec, ...] = ()
    objects: tuple[str, ...] = ()
    workloads: tuple[ScenarioWorkload, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()
    faults: FaultPlan = FaultPlan()
    latencies: Latencies = Latencies()
    scheduler: SchedulerSpec = SchedulerSpec()
    report: ReportSpec = ReportSpec()
