"""Two clusters with the same history: one remembers answers, the other does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import ClassVar, Final, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubesched.api.core import Namespace, Node, NodeCondition, Pod, Service
from kubesched.api.meta import KubeObject
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import DeviceClass
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration
from kubesched.config.types import PluginEntry, PluginSet
from kubesched.framework.plugin import FilterPlugin, Scope, ScorePlugin, normalize_reversed
from kubesched.framework.registry import SchedulerSetup
from kubesched.framework.status import NodeToStatus, unschedulable
from kubesched.plugins.registry import in_tree_registry
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import make_node, make_pod
from tests.scheduler.toys import comparable

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
GPU: Final = "example.com/gpu"
NAMESPACES: Final = ("a", "b")

_GATES: Final = FeatureGates({})


class Disks(FilterPlugin[None]):
    """An out-of-tree plugin that reads annotations of the pod, and conditions of nodes."""

    name: ClassVar = "Disks"
    scope: ClassVar = Scope.NODE

    def sign(self, pod: PodInfo) -> str:
        """Return the kind of disk that the pod asks for."""
        return pod.pod.metadata.annotations.get("disk", "")

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Reject nodes with a disk of another kind, or a broken one."""
        wanted = self.sign(pod)
        if not wanted:
            return NodeToStatus.passing(len(nodes))
        broken = np.array([bool(node.status.conditions) for node in nodes.nodes], np.bool_)
        rejected = broken | ~nodes.label("disk").equals(wanted)
        return NodeToStatus.rejecting(rejected, unschedulable("disk"))


class Quiet(ScorePlugin[None]):
    """An out-of-tree plugin that reads annotations of the pods on nodes."""

    name: ClassVar = "Quiet"
    scope: ClassVar = Scope.ROW

    def sign(self, pod: PodInfo) -> tuple[()]:
        """Nothing of the pod is read."""
        return ()

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Count the annotated pods of each node."""
        annotated = [
            sum(bool(other.pod.metadata.annotations) for other in pods.values())
            for pods in nodes.pods
        ]
        return np.array(annotated, np.int64)

    def normalize_score(
        self, state: None, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """The fewer there are, the better."""
        return normalize_reversed(scores)


def _setup(percentage: int) -> SchedulerSetup:
    """Return the default plugins and those above."""
    configuration = default_configuration(_GATES)
    (profile,) = configuration.profiles
    plugins, registry = profile.plugins, in_tree_registry()
    for plugin in (Disks, Quiet):
        registry.register(plugin.name, plugin)
    filters = (*plugins.filter.enabled, PluginEntry(Disks.name))
    scores = (*plugins.score.enabled, PluginEntry(Quiet.name, 2))
    plugins = replace(plugins, filter=PluginSet(enabled=filters), score=PluginSet(enabled=scores))
    profile = replace(profile, plugins=plugins, percentage_of_nodes_to_score=percentage)
    configuration = replace(configuration, profiles=(profile,))
    return SchedulerSetup(configuration, registry, _GATES)


Fields: TypeAlias = "Mapping[str, object]"


def _like(app: str) -> dict[str, object]:
    return {"matchLabels": {"app": app}}


def _term(app: str, key: str, **more: object) -> dict[str, object]:
    return {"labelSelector": _like(app), "topologyKey": key, **more}


def _required(*terms: Fields) -> dict[str, object]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def _preferred(weight: int, term: Fields) -> dict[str, object]:
    weighted = {"weight": weight, "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}


def _zone_affinity(operator: str, *zones: str) -> dict[str, object]:
    expression = {"key": ZONE, "operator": operator, "values": list(zones)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def _of_daemon_set(*nodes: int, **term: object) -> dict[str, object]:
    """Return the node affinity that the DaemonSet controller writes for these nodes."""
    terms = _terms_of_daemon_set(*nodes, **term)
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _terms_of_daemon_set(*nodes: int, **term: object) -> list[Fields]:
    return [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node-{node}"]}]}
        | term
        for node in nodes
    ]


def _spread(key: str, when: str, app: str, **more: object) -> dict[str, object]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when}
    return {**constraint, "labelSelector": _like(app), **more}


def _claim(name: str) -> dict[str, object]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


_SMALL: Final = {"requests": {"cpu": "500m", "memory": "1Gi"}}
_TOLERATION: Final = {"key": "dedicated", "operator": "Exists"}

TEMPLATES: Final[tuple[Fields, ...]] = (
    _SMALL,
    {**_SMALL, "priority": 20},
    {"labels": {"app": "web"}, **_SMALL},
    {"requests": {"cpu": "1500m", "memory": "3Gi"}, "priority": 5},
    {"requests": {"cpu": "3", "memory": "3Gi"}, "priority": 100},
    {"labels": {"app": "web"}},
    {"tolerations": [_TOLERATION], **_SMALL},
    {"tolerations": [_TOLERATION, {"key": "soft", "effect": "PreferNoSchedule"}]},
    {"node_selector": {ZONE: "z1"}, **_SMALL},
    {"node_selector": {"disk": "ssd"}},
    {
        "node_affinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": _zone_affinity("In", "z0", "z1"),
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "preference": _zone_affinity("In", "z1")["nodeSelectorTerms"][0]},  # type: ignore[index]  # JSON
            ],
        }
    },
    {
        "labels": {"app": "web"},
        "topology_spread_constraints": [_spread(ZONE, "DoNotSchedule", "web")],
    },
    {
        "labels": {"app": "web"},
        "topology_spread_constraints": [
            _spread(HOST, "DoNotSchedule", "web", nodeTaintsPolicy="Honor"),
            _spread(ZONE, "ScheduleAnyway", "web"),
        ],
    },
    {
        "labels": {"app": "db"},
        "topology_spread_constraints": [_spread(HOST, "ScheduleAnyway", "db")],
        **_SMALL,
    },
    {"labels": {"app": "db"}, "pod_affinity": _required(_term("db", ZONE))},
    {"labels": {"app": "db"}, "pod_anti_affinity": _required(_term("db", HOST))},
    {
        "labels": {"app": "web"},
        "pod_anti_affinity": _required(_term("db", ZONE, namespaceSelector={})),
    },
    {
        "labels": {"app": "web"},
        "pod_affinity": _required(
            _term("db", ZONE, namespaceSelector={"matchLabels": {"team": "x"}})
        ),
    },
    {"labels": {"app": "db"}, "pod_affinity": _preferred(10, _term("web", ZONE)), **_SMALL},
    {"labels": {"app": "web"}, "pod_anti_affinity": _preferred(50, _term("web", HOST))},
    {"host_ports": [8080], "requests": {"cpu": "100m"}},
    {"host_ports": [8080, 9090], "priority": 50},
    {"volumes": [_claim("bound")], **_SMALL},
    {"volumes": [_claim("exclusive")], **_SMALL},
    {"volumes": [_claim("missing")], **_SMALL},
    {"volumes": [_claim("bound")], "requests": {"cpu": "1500m"}, "priority": 60},
    {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]},
    {"requests": {GPU: 1, "cpu": "100m"}, "limits": {GPU: 1}},
    {"requests": {GPU: 2}, "limits": {GPU: 2}, "priority": 10},
    *(
        {"containers": [{"name": "c", "image": f"registry/app:{tag}"}], "labels": {"app": "db"}}
        for tag in range(1, 4)
    ),
    {"node_affinity": _of_daemon_set(1), "tolerations": [_TOLERATION], **_SMALL},
    {"node_affinity": _of_daemon_set(2), "tolerations": [_TOLERATION], **_SMALL},
    {
        "node_affinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    *_zone_affinity("In", "z1")["nodeSelectorTerms"],  # type: ignore[misc]  # JSON
                    *_terms_of_daemon_set(2, 4),
                ]
            }
        },
        "requests": {"cpu": "1500m"},
        "priority": 30,
    },
    {
        "node_affinity": _of_daemon_set(
            1,
            3,
            4,
            matchExpressions=[{"key": ZONE, "operator": "In", "values": ["z0", "z1"]}],
        ),
        "labels": {"app": "web"},
        "host_ports": [9090],
    },
)


def pod_of(template: int, number: int, **more: object) -> Pod:
    """Build pod number n; its namespace and annotation follow from the number."""
    fields = {**TEMPLATES[template % len(TEMPLATES)], **more}
    namespace = NAMESPACES[number % 3 == 0]
    pod = make_pod(f"pod-{number}", namespace=namespace, **fields)  # type: ignore[arg-type]  # the keywords are TypedDict's
    if number % 5:
        return pod
    annotations = {"disk": ("ssd", "hdd")[number % 2]}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def node_of(name: int, variant: int) -> Node:
    """Build a node; its zone, size, taints, labels and images follow from `variant`."""
    taints = []
    if variant % 4 == 3:
        effect = "NoSchedule" if variant % 8 == 3 else "NoExecute"
        taints.append({"key": "dedicated", "value": "x", "effect": effect})
    if variant % 5 == 4:
        taints.append({"key": "soft", "effect": "PreferNoSchedule"})
    labels = {HOST: f"node-{name}", "disk": ("ssd", "hdd")[variant % 2]}
    if variant % 7 != 6:
        labels[ZONE] = f"z{variant % 3}"
    allocatable: dict[str, str | int] = {"cpu": 2 + variant % 3, "memory": "8Gi"}
    allocatable["pods"] = 3 + variant % 6
    if variant % 3 == 1:
        allocatable[GPU] = 2
    return make_node(
        f"node-{name}",
        labels=labels,
        taints=taints,
        unschedulable=variant % 11 == 10,
        allocatable=allocatable,
        images={f"registry/app:{variant % 4}": 500 * 1024 * 1024} if variant % 4 else None,
    )


def _make(body: Fields, kind: Callable[..., object] | type) -> KubeObject:
    return msgspec.convert(body, kind)  # type: ignore[no-any-return]  # decoded JSON


def _claim_of(namespace: str, name: str, mode: str) -> KubeObject:
    return _make(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": [mode],
                "volumeName": f"{namespace}-{name}",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        },
        PersistentVolumeClaim,
    )


def _volume_of(namespace: str, name: str, zone: str) -> KubeObject:
    return _make(
        {
            "metadata": {"name": f"{namespace}-{name}", "labels": {ZONE: zone}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "nodeAffinity": {"required": _zone_affinity("In", zone, "z2")},
                "claimRef": {"name": name, "namespace": namespace},
                "hostPath": {"path": "/data"},
            },
        },
        PersistentVolume,
    )


def _budget_of(app: str, allowed: int) -> KubeObject:
    return _make(
        {
            "metadata": {"name": app, "namespace": "a"},
            "spec": {"selector": _like(app)},
            "status": {"disruptionsAllowed": allowed},
        },
        PodDisruptionBudget,
    )


OBJECTS: Final[tuple[KubeObject, ...]] = (
    *(_budget_of(app, allowed) for app in ("web", "db") for allowed in range(3)),
    *(
        _make(
            {
                "metadata": {"name": app, "namespace": namespace},
                "spec": {"selector": {"app": app}},
            },
            Service,
        )
        for app in ("web", "db")
        for namespace in NAMESPACES
    ),
    *(_claim_of(namespace, "bound", "ReadWriteOnce") for namespace in NAMESPACES),
    *(_claim_of(namespace, "exclusive", "ReadWriteOncePod") for namespace in NAMESPACES),
    *(_volume_of(namespace, "bound", "z0") for namespace in NAMESPACES),
    *(_volume_of(namespace, "bound", "z1") for namespace in NAMESPACES),
    *(_volume_of(namespace, "exclusive", "z1") for namespace in NAMESPACES),
    *(_make({"metadata": {"name": name}}, Namespace) for name in NAMESPACES),
    _make({"metadata": {"name": "a", "labels": {"team": "x"}}}, Namespace),
    _make({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}, DeviceClass),
)


class Twins:
    """A cluster with memory and one without; each step changes both and compares them."""

    def __init__(self, seed: int = 0, percentage: int = 0) -> None:
        setup = _setup(percentage)
        self.clusters = tuple(
            ClusterState(setup, seed=seed, remembers=remembers) for remembers in (True, False)
        )
        self.bound: dict[str, Pod] = {}
        self.waiting: dict[str, Pod] = {}
        self.nodes: dict[int, int] = {}
        self.favourites: list[int] = []
        self.placed = self.rejected = 0
        self._number = 0

    def check(self) -> None:
        """Assert that both clusters are consistent."""
        for cluster in self.clusters:
            cluster.cache.check()
            cluster.nominator.check()

    def fill(self) -> None:
        """Start with a few nodes and most objects."""
        for name in range(6):
            self.put_node(name, name)
        for item in range(len(OBJECTS) - 1):
            self.put(item)

    # Pods.

    def schedule(self, template: int, *, traced: bool = False, **more: object) -> None:
        """Schedule a new pod."""
        self._number += 1
        pod = pod_of(template, self._number, **more)
        self.waiting[pod.metadata.uid] = pod
        for cluster in self.clusters:
            cluster.add_pending(pod)
        self._decide(pod.metadata.uid, traced=traced)

    def retry(self, which: int) -> None:
        """Schedule a pending pod again."""
        if self.waiting:
            self._decide(_pick(self.waiting, which))

    def _decide(self, uid: str, *, traced: bool = False) -> None:
        remembering, forgetful = self.clusters
        trace = Trace() if traced else None
        decision = remembering.schedule_one(remembering.pending[uid], trace)
        expected = forgetful.schedule_one(forgetful.pending[uid])
        assert comparable(expected) == comparable(decision)
        self._carry_out(uid, decision)

    def _carry_out(self, uid: str, decision: Decision) -> None:
        if isinstance(decision, Placed):
            self.placed += 1
            pod = self.waiting.pop(uid)
            spec = replace(pod.spec, node_name=decision.node_name)
            self.bound[uid] = replace(pod, spec=spec)
            for cluster in self.clusters:
                cluster.bind(cluster.pending[uid], decision.node_name)
        elif isinstance(decision, Rejected):
            self.rejected += 1
            for cluster in self.clusters:
                for victim in decision.victims:
                    cluster.evict(victim)
                if decision.nominated_node_name is not None:
                    cluster.nominate(cluster.pending[uid], decision.nominated_node_name)
            for victim in decision.victims:
                del self.bound[victim.uid]

    def confirm(self, which: int) -> None:
        """Confirm a bound pod as the informer does: as assumed, or changed since."""
        if not self.bound:
            return
        uid = _pick(self.bound, which)
        if which % 5 == 4:
            metadata = self.bound[uid].metadata
            labels = {**metadata.labels, "app": ("web", "db")[which % 2]}
            metadata = replace(metadata, labels=labels)
            self.bound[uid] = replace(self.bound[uid], metadata=metadata)
        if which % 7 == 6:
            self._terminate(uid)
        if which % 2:
            annotations = {} if self.bound[uid].metadata.annotations else {"noisy": "yes"}
            metadata = replace(self.bound[uid].metadata, annotations=annotations)
            self.bound[uid] = replace(self.bound[uid], metadata=metadata)
        if which % 3 == 2:
            started = f"2026-01-01T00:00:{which % 60:02}Z"
            status = replace(self.bound[uid].status, start_time=started)
            self.bound[uid] = replace(self.bound[uid], status=status)
        for cluster in self.clusters:
            if cluster.cache.is_assumed(uid):
                cluster.cache.add_pod(self.bound[uid])
            else:
                cluster.cache.update_pod(self.bound[uid])

    def _terminate(self, uid: str) -> None:
        metadata = replace(self.bound[uid].metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self.bound[uid] = replace(self.bound[uid], metadata=metadata)

    def remove_pod(self, which: int) -> None:
        """Delete a bound pod."""
        if self.bound:
            uid = _pick(self.bound, which)
            del self.bound[uid]
            for cluster in self.clusters:
                cluster.cache.remove_pod(uid)

    def give_up(self, which: int) -> None:
        """Delete a pending pod."""
        if self.waiting:
            uid = _pick(self.waiting, which)
            del self.waiting[uid]
            for cluster in self.clusters:
                del cluster.pending[uid]
                cluster.nominator.delete(uid)

    def nominate(self, which: int, name: int) -> None:
        """Nominate a node for a pending pod; 0 clears the nomination."""
        if self.waiting:
            uid = _pick(self.waiting, which)
            for cluster in self.clusters:
                cluster.nominate(cluster.pending[uid], f"node-{name}" if name else "")

    # Nodes and other objects.

    def put_node(self, name: int, variant: int) -> None:
        """Add or update a node."""
        self.nodes[name] = variant
        for cluster in self.clusters:
            cluster.cache.add_node(node_of(name, variant))

    def break_disk(self, which: int) -> None:
        """Change nothing but a condition of a node."""
        if self.nodes:
            name = sorted(self.nodes)[which % len(self.nodes)]
            nodes = self.clusters[0].cache.nodes
            node = nodes.nodes[nodes.row_of[f"node-{name}"]]
            broken = () if node.status.conditions else (NodeCondition(type="DiskBroken"),)
            for cluster in self.clusters:
                status = replace(node.status, conditions=broken)
                cluster.cache.add_node(replace(node, status=status))

    def remove_node(self, which: int) -> None:
        """Delete a node; its pods stay until it is added again."""
        if self.nodes:
            name = sorted(self.nodes)[which % len(self.nodes)]
            del self.nodes[name]
            for cluster in self.clusters:
                cluster.cache.remove_node(f"node-{name}")

    def put(self, which: int) -> None:
        """Add or replace a service, namespace, claim, volume or device class."""
        for cluster in self.clusters:
            cluster.cache.put(OBJECTS[which % len(OBJECTS)])

    def delete(self, which: int) -> None:
        """Delete one of these objects."""
        for cluster in self.clusters:
            cluster.cache.delete(OBJECTS[which % len(OBJECTS)])


_STEPS: Final[Mapping[str, int]] = {
    "schedule": 44,
    "remove_pod": 20,
    "confirm": 14,
    "retry": 8,
    "give_up": 5,
    "nominate": 3,
    "put": 2,
    "delete": 1,
    "put_node": 1,
    "break_disk": 1,
    "remove_node": 1,
}
"""Step -> weight. Changes of nodes and objects are rare, as they discard what is remembered."""


def random_step(twins: Twins, random: Random) -> None:
    """Do one random step; most add or delete pods, many of them of a few templates."""
    if random.random() < 0.02:
        twins.favourites = [random.randrange(10_000) for _ in range(3)]
    (step,) = random.choices([*_STEPS], [*_STEPS.values()])
    big, small = random.randrange(10_000), random.randrange(12)
    match step:
        case "schedule":
            template = random.choice([*twins.favourites, big])
            twins.schedule(template, traced=random.random() < 0.1)
        case "nominate":
            twins.nominate(big, small)
        case "put_node":
            twins.put_node(small, big)
        case "remove_node" if len(twins.nodes) < random.randrange(10):
            twins.put_node(small, big)
        case _:
            getattr(twins, step)(big)


def _pick(pods: Mapping[str, Pod], which: int) -> str:
    return list(pods)[which % len(pods)]
