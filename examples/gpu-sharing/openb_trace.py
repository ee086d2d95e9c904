"""The openb trace as the paper's experiment uses it: nodes, pods, their order, the target workload.

Every row of a pod list is one pod; times are not used. A seed shuffles the pods, adds copies of
drawn pods (or removes drawn ones) until they ask for 130 % of the GPUs, and orders the nodes.

Rejects:  what `kubesched.simulator.traces` rejects, and lists without GPUs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from fgd import TargetKind
from go_random import GoRandom
from gpu_sharing import GPU_MILLI, MODEL_LABEL, WHOLE

from kubesched.api.core import Container, Node, NodeStatus, Pod, PodSpec, ResourceRequirements
from kubesched.api.meta import ObjectMeta
from kubesched.simulator.traces import TraceRecord, affinity_to_models, read_records

NAMESPACE: Final = "openb"
ARRIVING_PERCENT: Final = 130
"""The GPUs that all pods together ask for, in percent of the cluster's."""
_COVERED_PERCENT: Final = 95
"""The share of the pods whose kinds are the target workload."""
_PODS_PER_NODE: Final = 1001
_LOST_DRAWS: Final = 10
"""Numbers that the paper's simulator draws for other purposes before it orders the nodes."""


class TraceError(ValueError):
    """A list cannot be used for the experiment."""


class NodeRow(NamedTuple):
    """A row of a node list."""

    name: str
    milli_cpu: int
    memory_mib: int
    gpus: int
    model: str


class PodRow(NamedTuple):
    """A row of a pod list; `gpu_milli` is what the pod needs of each GPU."""

    name: str
    milli_cpu: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: str

    @property
    def gpu_total(self) -> int:
        """What the pod asks for of all GPUs, in milli."""
        return self.gpus * self.gpu_milli

    @property
    def kind(self) -> tuple[int, int, int, str]:
        """What the target workload counts."""
        return self.milli_cpu, self.gpu_milli, self.gpus, self.models


def read_nodes(path: Path) -> list[NodeRow]:
    """Return the nodes of a list, by name."""
    return sorted(
        NodeRow(
            record.name("sn"),
            record.amount("cpu_milli"),
            record.amount("memory_mib"),
            record.amount("gpu"),
            record.text("model"),
        )
        for record in _records(path, Node)
    )


def read_pods(path: Path) -> list[PodRow]:
    """Return the pods of a list, by name; `gpu_milli` and `gpu_spec` may be missing columns."""
    pods = []
    for record in _records(path, Pod):
        cpu, memory, gpus = map(record.amount, ("cpu_milli", "memory_mib", "num_gpu"))
        milli = record.amount("gpu_milli") if record.text("gpu_milli") else 0
        milli = min(milli or WHOLE, WHOLE) if gpus else 0
        models = record.text("gpu_spec") if gpus else ""
        pods.append(PodRow(record.name("name"), cpu, memory, gpus, milli, models))
    return sorted(pods)


def _records(path: Path, kind: type[Node | Pod]) -> Iterator[TraceRecord]:
    found, records = read_records(path.read_bytes(), str(path))
    if found is not kind:
        raise TraceError(f"{path}: this is not a list of {kind.__name__.lower()}s; pods come first")
    return records


def target_of(pods: Sequence[PodRow]) -> list[TargetKind]:
    """Return the most frequent kinds that together are 95 % of the pods; equals: larger first."""
    counted = Counter(pod.kind for pod in pods)
    found: list[TargetKind] = []
    covered = 0
    for kind in sorted(counted, key=lambda kind: (counted[kind], *kind), reverse=True):
        if covered * 100 >= _COVERED_PERCENT * len(pods):
            break
        covered += counted[kind]
        cpu, milli, gpus, models = kind
        found.append(
            TargetKind(
                milli_cpu=cpu,
                gpus=gpus,
                gpu_milli=milli,
                models=tuple(models.split("|")) if models else (),
                pods=counted[kind],
            )
        )
    return found


class Arrivals(NamedTuple):
    """What a seed makes of a trace: the pods in order, and the nodes in order of preference."""

    pods: list[PodRow]
    nodes: list[NodeRow]


def arrivals(nodes: Sequence[NodeRow], pods: Sequence[PodRow], seed: int) -> Arrivals:
    """Return pods and nodes in the order that the seed gives them."""
    random = GoRandom(seed)
    random.word()
    arriving = list(pods)
    random.shuffle(arriving)
    _tune(arriving, pods, sum(node.gpus for node in nodes) * WHOLE, random)
    for _ in range(_LOST_DRAWS):
        random.word()
    places = random.permutation(len(nodes))
    renamed = [
        node._replace(name=f"{place:04d}-{node.name}")
        for place, node in zip(places, nodes, strict=True)
    ]
    return Arrivals(arriving, sorted(renamed))


def _tune(arriving: list[PodRow], pods: Sequence[PodRow], capacity: int, random: GoRandom) -> None:
    """Add or remove drawn pods until the pods ask for 130 % of the capacity."""
    wanted = capacity * ARRIVING_PERCENT // 100
    total = sum(pod.gpu_total for pod in arriving)
    if not total:
        raise TraceError("no pod asks for a GPU; give a list whose pods do")
    while total > wanted:
        total -= arriving.pop(random.below(len(arriving))).gpu_total
    if len(arriving) < len(pods):
        return
    for number in count():
        pod = pods[random.below(len(pods))]
        # As in the paper's simulator: one GPU of the pod decides whether it is the last.
        if total + pod.gpu_milli > wanted:
            return
        arriving.append(pod._replace(name=f"{pod.name}-tuned-{number}"))
        total += pod.gpu_total


def node_of(row: NodeRow) -> Node:
    """Return the Kubernetes node of a row."""
    amounts = {
        "cpu": f"{row.milli_cpu}m",
        "memory": f"{row.memory_mib}Mi",
        "pods": str(_PODS_PER_NODE),
        GPU_MILLI: str(row.gpus * WHOLE),
    }
    labels = {MODEL_LABEL: row.model} if row.model else {}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=row.name, labels=labels),
        status=NodeStatus(capacity=amounts, allocatable=amounts),
    )


def pods_of(rows: Sequence[PodRow]) -> list[Pod]:
    """Return the Kubernetes pods of rows; equal ones share their spec."""
    specs: dict[tuple[object, ...], PodSpec] = {}
    pods = []
    for row in rows:
        key = row[1:]
        spec = specs.get(key)
        if spec is None:
            spec = specs[key] = _spec_of(row)
        metadata = ObjectMeta(name=row.name, namespace=NAMESPACE, uid=row.name)
        pods.append(Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec))
    return pods


def _spec_of(row: PodRow) -> PodSpec:
    amounts = {"cpu": f"{row.milli_cpu}m", "memory": f"{row.memory_mib}Mi"}
    if row.gpus:
        amounts[GPU_MILLI] = str(row.gpu_total)
    resources = ResourceRequirements(requests=amounts, limits=amounts)
    models = tuple(row.models.split("|")) if row.models else ()
    return PodSpec(
        containers=(Container(name="main", resources=resources),),
        affinity=affinity_to_models(models) if models else None,
    )
