"""Plugins whose answers a test sets, and cycles with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import PluginEntry, Plugins, PluginSet, ProfileConfiguration
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterExtensions,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    QueueSortPlugin,
    ScorePlugin,
)
from kubesched.framework.queued_pod_info import QueuedPodInfo
from kubesched.framework.registry import Registry
from kubesched.framework.status import SUCCESS, NodeToStatus, Status
from kubesched.scheduler.cycle import SchedulingCycle
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.sampling import NodeSampler
from kubesched.scheduler.trace import Trace
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot
from kubesched.testing.builders import make_node, make_snapshot

NODES: Final = ("a", "b", "c")
Asked: TypeAlias = "tuple[str, tuple[str, ...]]"


class Sort(QueueSortPlugin):
    """Completes a profile."""

    name: ClassVar = "Sort"

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """First come, first served."""
        return (queued.timestamp,)


class Bind(BindPlugin):
    """Completes a profile."""

    name: ClassVar = "Bind"

    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return success."""
        return SUCCESS


class Toy(
    PreFilterExtensions[Any],
    FilterPlugin[Any],
    PostFilterPlugin,
    PreScorePlugin[Any],
    ScorePlugin[Any],
):
    """Answers from a script, and runs only at the extension points in it.

    Attributes:
        points: Where it runs.
        weight: Of its scores.
        script: Extension point -> what it answers, or the exception it raises.
        asked: Every question so far: the point, and the names of the rows it was about.
    """

    name: ClassVar[str] = ""
    points: ClassVar[tuple[str, ...]] = ()
    weight: ClassVar[int] = 0
    script: ClassVar[Mapping[str, object]] = {}
    asked: ClassVar[list[Asked]] = []

    def _say(self, point: str, names: Sequence[str], default: object) -> Any:
        self.asked.append((point, tuple(names)))
        answer = self.script.get(point)
        if isinstance(answer, Exception):
            raise answer
        return default if answer is None else answer

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[Any]:
        """Return the scripted result."""
        return self._say("pre_filter", snapshot.nodes.names, PreFilterResult())  # type: ignore[no-any-return]  # the script's

    def filter_state(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> Any:
        """Return None, so that Filter runs without PreFilter."""
        return None

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Any:
        """Return None, so that Score runs without PreScore."""
        return None

    def add_pod(self, state: Any, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Return the scripted status."""
        return self._say("add_pod", (*nodes.names, added.name), SUCCESS)  # type: ignore[no-any-return]  # the script's

    def remove_pod(self, state: Any, pod: PodInfo, removed: PodInfo, nodes: NodeTable) -> Status:
        """Return the scripted status."""
        return self._say("remove_pod", (*nodes.names, removed.name), SUCCESS)  # type: ignore[no-any-return]  # the script's

    def filter(self, state: Any, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Return the scripted status of each node; it may be a function of the node's pods."""
        said = self._say("filter", nodes.names, {})
        statuses = []
        for row, name in enumerate(nodes.names):
            status = said.get(name, SUCCESS)
            if callable(status):
                status = status([other.name for other in nodes.pods[row].values()])
            statuses.append(status)
        return NodeToStatus.of(statuses)

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Return the scripted result."""
        shown = [f"{statuses[row].code.label}" for row in range(len(statuses))]
        return self._say("post_filter", shown, PostFilterResult(SUCCESS))  # type: ignore[no-any-return]  # the script's

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[Any]:
        """Return the scripted result."""
        names = [snapshot.nodes.names[row] for row in np.flatnonzero(feasible)]
        return self._say("pre_score", names, PreScoreResult())  # type: ignore[no-any-return]  # the script's

    def score(self, state: Any, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return the scripted scores."""
        said = self._say("score", nodes.names, {})
        return np.array([said.get(name, 0) for name in nodes.names], np.int64)

    def normalize_score(
        self, state: Any, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Apply the scripted function."""
        said = self._say("normalize", [str(row) for row in rows], lambda same: same)
        return said(scores)  # type: ignore[no-any-return]  # the script's


def toy(name: str, *, weight: int = 0, normalize: object = None, **script: object) -> type[Toy]:
    """Make a plugin.

    Args:
        name: Its name.
        weight: Of its scores; 0 counts as 1.
        normalize: A function from scores to scores, or an exception.
        script: `pre_filter`, `add_pod`, `filter`, `post_filter`, `pre_score`, `score`: what it
            answers there, or the exception it raises. `filter` maps node names to statuses, or to
            functions from the names of the node's pods to a status; `score` to scores. Class
            attributes such as `scope` may be given too.
    """
    attributes = {key: script.pop(key) for key in list(script) if key in _CLASS_KEYS}
    points = tuple(point for point in script if point not in {"add_pod", "remove_pod"})
    asked: list[Asked] = []
    return type(
        name,
        (Toy,),
        {
            "__module__": __name__,
            "name": name,
            "points": points,
            "weight": weight,
            "script": {**script, "normalize": normalize},
            **({} if normalize is not None else {"normalize_score": ScorePlugin.normalize_score}),
            "asked": asked,
            **attributes,
        },
    )


def alike(plugin: object, pod: object) -> tuple[()]:
    """Sign: all pods are alike."""
    return ()


_CLASS_KEYS: Final = (
    "scope",
    "score_scope",
    "signed_kinds",
    "survivors_only",
    "sign",
    "signs_base",
)


def profile_of(*plugins: type[Toy], seed: int = 0, percentage: int = 0) -> Profile:
    """Build a profile in which each plugin runs at the points of its script."""
    sets: dict[str, list[PluginEntry]] = {"queue_sort": [PluginEntry("Sort")]}
    sets["bind"] = [PluginEntry("Bind")]
    for plugin in plugins:
        for point in plugin.points:
            weight = plugin.weight if point == "score" else 0
            sets.setdefault(point, []).append(PluginEntry(plugin.name, weight))
    chosen = {point: PluginSet(enabled=tuple(entries)) for point, entries in sets.items()}
    return Profile(
        ProfileConfiguration(scheduler_name="toys", plugins=Plugins(**chosen)),
        Registry(Sort, Bind, *plugins),
        FeatureGates({}),
        random=Random(seed),
        percentage_of_nodes_to_score=percentage,
    )


def cycle_of(
    *plugins: type[Toy], seed: int = 0, percentage: int = 0, remembers: bool = False
) -> SchedulingCycle:
    """Build a cycle of such a profile."""
    profile = profile_of(*plugins, seed=seed, percentage=percentage)
    return SchedulingCycle(profile, NodeSampler(), remembers=remembers)


def decide(
    plugins: Iterable[type[Toy]],
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    seed: int = 0,
    trace: Trace | None = None,
) -> Decision:
    """Decide without memory, and with more and more of it; assert that all decisions agree."""
    plugins = tuple(plugins)
    decision = cycle_of(*plugins, seed=seed).schedule_one(pod, snapshot, trace)
    remembering = cycle_of(*plugins, seed=seed, remembers=True)
    for _ in range(3):
        remembering.profile.random.seed(seed)
        assert comparable(decision) == comparable(remembering.schedule_one(pod, snapshot))
    return decision


def cluster(*names: str) -> Snapshot:
    """Return empty nodes of these names; a, b and c if none is given."""
    return make_snapshot([make_node(name) for name in names or NODES])


def placed(decision: Decision) -> Placed:
    """Return a decision that must be a placement."""
    assert isinstance(decision, Placed), decision
    return decision


def rejected(decision: Decision) -> Rejected:
    """Return a decision that must be a rejection."""
    assert isinstance(decision, Rejected), decision
    return decision


def failed(decision: Decision) -> Status:
    """Return the status of a decision that must be a failure."""
    assert isinstance(decision, Failed), decision
    return decision.status


def rejections(decision: Decision) -> dict[str, tuple[str, str]]:
    """Return node -> (plugin, message) of a rejection."""
    statuses = rejected_nodes(rejected(decision).diagnosis)
    return {name: (status.plugin, status.message) for name, status in statuses.items()}


def rejected_nodes(diagnosis: Diagnosis) -> dict[str, Status]:
    """Return the statuses of the tried nodes that were rejected."""
    statuses = diagnosis.node_to_status
    return {
        name: statuses[row] for row, name in enumerate(diagnosis.node_names) if statuses.index[row]
    }


def comparable(decision: Decision) -> tuple[object, ...]:
    """Return the parts of a decision that callers use or users read."""
    match decision:
        case Placed():
            return "placed", decision.node_name, decision.row, decision.feasible, decision.evaluated
        case Failed():
            return "failed", decision.status
        case Rejected():
            diagnosis = msgspec.structs.asdict(decision.diagnosis)
            del diagnosis["node_to_status"], diagnosis["node_names"]
            return (
                "rejected",
                decision.message,
                decision.nominated_node_name,
                tuple(victim.key for victim in decision.victims),
                rejected_nodes(decision.diagnosis),
                diagnosis,
                None if decision.post_filter is None else decision.post_filter.status,
            )


def points_asked(plugin: type[Toy]) -> list[str]:
    """Return the points at which a plugin was called."""
    return [point for point, _ in plugin.asked]
