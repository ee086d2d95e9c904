"""SchedulingEnv: one step is one scheduling decision, with the scheduler's own filters as mask.

    env = SchedulingEnv(nodes, lambda random: pods_of(random), reward=packing)
    observation, info = env.reset(seed=1)
    action = info["scheduler_action"]            # what the default scores choose
    observation, reward, terminated, truncated, info = env.step(action)

Pods that fit no node are skipped; their reward is part of the step before.

Upstream: pkg/scheduler/schedule_one.go: which nodes are feasible (v1.36)
Differs:  nothing is evicted; pods stay until the episode ends. Claims are reserved but not written,
          so a pod that shares a claim with an earlier pod of the episode fits nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias, cast

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Space
from numpy.typing import NDArray

from kubesched.answers.pod_explanation import check_scheduler
from kubesched.answers.workload_pods import decoded
from kubesched.api.codec import Skipped
from kubesched.api.core import Node, Pod
from kubesched.api.meta import KubeObject
from kubesched.config.args import exhaustive
from kubesched.inputs.completed_input import all_kinds, completed
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import (
    distinct_objects,
    load_checked_scheduler,
    pending_again,
    with_scheduler_name,
)
from kubesched.inputs.sources import SchedulerOptions
from kubesched.scheduler.decision import Placed
from kubesched.scheduler.placer import Placer
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.node_table import CPU, MEMORY
from kubesched.snapshot.pod_info import PodInfo

UNPLACED: Final = -1
"""The row of a pod that was placed on no node."""

Reward = Callable[[ClusterState, PodInfo, int], float]
"""(cluster, pod, row that it went to or UNPLACED) -> reward."""


def packing(cluster: ClusterState, _pod: PodInfo, row: int) -> float:
    """Return how full the node is, 0 to 1, by the fuller of cpu and memory; -1 for no node."""
    if row == UNPLACED:
        return -1.0
    return max(_shares(cluster, row))


def balance(cluster: ClusterState, _pod: PodInfo, row: int) -> float:
    """Return 1 for equal shares of cpu and memory in use, less otherwise; -1 for no node."""
    if row == UNPLACED:
        return -1.0
    cpu, memory = _shares(cluster, row)
    return 1.0 - abs(cpu - memory)


def _shares(cluster: ClusterState, row: int) -> tuple[float, float]:
    nodes = cluster.cache.nodes
    cpu, memory = (
        float(nodes.requested[at, row]) / max(1.0, float(nodes.allocatable[at, row]))
        for at in (CPU, MEMORY)
    )
    return cpu, memory


# The environment.

Json: TypeAlias = Mapping[str, Any]
Pods: TypeAlias = Callable[[Random], Iterable[Json]]
Observation: TypeAlias = dict[str, NDArray[Any]]

_PODS: Final = "pods"


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """Places pods on nodes, one per step, until there are no more.

    Actions are rows of the node table, in the order of `node_names`. An action whose node is not
    feasible places the pod nowhere.

    Observations, float32 unless noted, with R resources and N nodes:
        free: N x R, the free share of each node's allocatable amount, from 0 to 1.
        size: N x R, the allocatable amount as a share of the largest node's.
        pod: R, the pod's requests as shares of the largest node's amounts.
        mask: N, int8, 1 for nodes that are feasible.

    The info of each step has `action_mask` (the same as `mask`), `pod` (namespace/name, "" at the
    end), `scheduler_action` (what the default scores choose) and `unplaced` (pods so far).
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        nodes: Iterable[Json],
        pods: Pods,
        *,
        reward: Reward = packing,
        options: SchedulerOptions | None = None,
    ) -> None:
        """Set up with nodes, and other objects that scheduling reads, as Kubernetes' JSON.

        `pods` returns the pods of an episode as Kubernetes' JSON, drawn from the given random
        source; `reward` is called once per pod. The scheduler is by default that of kube-scheduler
        1.36.

        Raises:
            UserError: There are no nodes, or the scheduler cannot be built.
        """
        options = options or SchedulerOptions()
        scheduler = load_checked_scheduler(options)
        scheduler = scheduler._replace(configuration=exhaustive(scheduler.configuration))
        objects = _decoded(nodes, "nodes")
        if not any(isinstance(item, Node) for item in objects):
            raise UserError("SchedulingEnv: nodes has no Node; give at least one")
        self._make_pods = pods
        self._reward = reward
        self._options = options
        self._cluster = ClusterState(scheduler, seed=options.seed, remembers=False)
        self._cluster.load(objects)
        self._cluster.cache.declare_complete(all_kinds())
        table = self._cluster.cache.nodes
        self.node_names = tuple(table.names)
        self.resources = (*table.resources, _PODS)
        self._allocatable = np.vstack((table.allocatable, table.allowed_pods)).astype(np.float64)
        self._largest = np.maximum(self._allocatable.max(axis=1), 1.0)
        self._size = (self._allocatable.T / self._largest).astype(np.float32)
        rows, columns = self._size.shape
        share = Box(0.0, 1.0, (rows, columns), np.float32)
        self.action_space = Discrete(rows)
        spaces: dict[str, Space[Any]] = {
            "free": share,
            "size": share,
            "pod": Box(0.0, 1.0, (columns,), np.float32),
            "mask": MultiBinary(rows),
        }
        self.observation_space = cast("Space[Observation]", Dict(spaces))
        self._coming: Iterator[Pod] = iter(())
        self._placer = Placer(self._cluster.cache, self._cluster.nominator)
        self._undo: list[Callable[[], object]] = []
        self._decision: Placed | None = None
        self._reward_of_empty: float | None = None
        self._mask = np.zeros(rows, np.int8)
        self._unplaced = 0

    @property
    def cluster(self) -> ClusterState:
        """The cluster as it is now; read-only."""
        return self._cluster

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode with an empty cluster and the first pod that fits somewhere.

        The same seed gives the same episode; ties are drawn with the seed of the scheduler's
        options.
        """
        super().reset(seed=seed, options=options)
        while self._undo:
            self._undo.pop()()
        if self._decision is not None:
            self._cluster.pending.pop(self._decision.pod.uid)
        self._unplaced = 0
        self._cluster.random.seed(self._options.seed)
        random = Random(int(self.np_random.integers(1 << 31)))  # noqa: S311 - pods of an episode
        self._coming = iter(_pods(self._make_pods(random), self._options.profile))
        skipped = self._next()
        self._reward_of_empty = skipped if self._decision is None else None
        return self._observe(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Place the pod on a node; return what `gymnasium.Env.step` does.

        If no pod of the episode fits anywhere, the first step returns their reward and ends it. If
        no pod is left to place, gymnasium's ResetNeeded is raised.

        Raises:
            ValueError: The action is not a row.
            TypeError: The reward is not a number.
            PluginError: A plugin of the scheduler raises, here or in `reset`.
        """
        if self._decision is None:
            if self._reward_of_empty is None:
                raise ResetNeeded("no pod is left to place: call reset")
            reward, self._reward_of_empty = self._reward_of_empty, None
            return self._observe(), reward, True, False, self._info()
        if not self.action_space.contains(action):
            rows = f"an integer from 0 to {len(self.node_names) - 1}, a row of node_names"
            raise ValueError(f"action {action!r}: it must be {rows}")
        decision, self._decision = self._decision, None
        row = int(action)
        self._cluster.pending.pop(decision.pod.uid)
        if not self._mask[row] or not self._place(decision, row):
            self._unplaced += 1
            row = UNPLACED
        reward = self._rewarded(decision.pod, row) + self._next()
        return self._observe(), reward, self._decision is None, False, self._info()

    def _place(self, decision: Placed, row: int) -> bool:
        """Put the pod on a node, with devices and volumes; return whether Reserve plugins agree."""
        profile = self._cluster.profiles[decision.pod.scheduler_name]
        cycle, node_name = decision.cycle, self.node_names[row]
        assumed = self._placer.place(profile, cycle, decision.pod, node_name).pod
        self._cluster.check_plugins()
        if assumed is None:
            return False
        self._undo.append(partial(self._placer.undo, profile, cycle, assumed))
        return True

    def _rewarded(self, pod: PodInfo, row: int) -> float:
        found: object = self._reward(self._cluster, pod, row)
        if not isinstance(found, int | float | np.number):
            hint = "; is a `return` missing?" if found is None else ""
            raise TypeError(f"the reward of pod {pod.key} must be a number, not {found!r}{hint}")
        return float(found)

    def _next(self) -> float:
        """Go on to the next pod that fits somewhere; return the reward of those that do not."""
        self._decision = None
        self._mask = np.zeros(len(self.node_names), np.int8)
        reward = 0.0
        for pod in self._coming:
            check_scheduler(pod, self._cluster)
            info = self._cluster.add_pending(pod)
            trace = Trace()
            decision = self._cluster.schedule_one(info, trace, preempts=False)
            self._cluster.check_plugins()
            if isinstance(decision, Placed):
                self._decision = decision
                self._mask[trace.feasible_rows] = 1
                break
            self._cluster.pending.pop(info.uid)
            self._unplaced += 1
            reward += self._rewarded(info, UNPLACED)
        return reward

    def _observe(self) -> Observation:
        table = self._cluster.cache.nodes
        requested = np.vstack((table.requested, table.pod_counts))
        free = 1.0 - requested / np.maximum(self._allocatable, 1.0)
        return {
            "free": np.clip(free.T, 0.0, 1.0).astype(np.float32),
            "size": self._size.copy(),
            "pod": self._requests(),
            "mask": self._mask.copy(),
        }

    def _requests(self) -> NDArray[np.float32]:
        if self._decision is None:
            return np.zeros(len(self.resources), np.float32)
        requests = self._decision.pod.template.requests
        amounts = [requests.get(name, 0) for name in self.resources[:-1]]
        shares: NDArray[np.float64] = np.array([*amounts, 1]) / self._largest
        # A pod that fits somewhere requests no more than the largest node has.
        return np.clip(shares, 0.0, 1.0).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        decision = self._decision
        return {
            "action_mask": self._mask.copy(),
            "pod": "" if decision is None else decision.pod.key,
            "scheduler_action": UNPLACED if decision is None else decision.row,
            "unplaced": self._unplaced,
        }


def _decoded(objects: Iterable[Json], name: str) -> list[KubeObject]:
    skipped = Skipped()
    found, _ = completed(distinct_objects(decoded(objects, skipped, name=name)), skipped)
    return found


def _pods(objects: Iterable[Json], profile: str | None) -> Iterator[Pod]:
    for item in _decoded(objects, "pods"):
        if not isinstance(item, Pod):
            raise UserError(f"pods: {type(item).__name__} {item.metadata.name} is not a Pod")
        yield with_scheduler_name(pending_again(item), profile)
