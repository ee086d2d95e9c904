"""Measures how many pods per second are decided and assumed, without an API server.

`python -m benchmarks.throughput NAME` runs one workload in this process and prints JSON. Each
workload needs a fresh process, because earlier work would affect its figures.
"""

from __future__ import annotations

import argparse
import resource
import sys
from array import array
from collections.abc import Sequence
from time import perf_counter, process_time

import msgspec
import numpy as np

from benchmarks.objects import Objects
from benchmarks.workloads import Workload, workload
from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim, ResourceClaimConsumerReference
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.dra.claim_tracker import ClaimTracker
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.state import DynamicResourcesState
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.decision import Decision, Placed, Rejected
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo

_ATTEMPTS_MAX = 3
_TURN_PODS = 10
_MEBIBYTE_IN_KIBIBYTES = 1024


class Throughput(msgspec.Struct, frozen=True):
    """One run of one workload.

    Attributes:
        name: The workload.
        nodes: Number of nodes.
        before: Number of pods placed before the measurement.
        pods: Number of measured pods.
        placed: Number of measured pods that found a node; fewer than `pods` is an error.
        cycles: Number of decisions, including churn and retries.
        pods_per_second: Pods per second of wall time, from the decoded object to the assumed pod.
        pods_per_cpu_second: The same per second of CPU time.
        decision_us: Mean wall time of a decision.
        decision_p50_us: Median wall time of a decision.
        decision_p99_us: 99th percentile of the wall time of a decision.
        load_seconds: CPU time to decode and load everything, and to place the first pods.
        rss_mib: Peak memory of the process.
    """

    name: str
    nodes: int
    before: int
    pods: int
    placed: int
    cycles: int
    pods_per_second: float
    pods_per_cpu_second: float
    decision_us: float
    decision_p50_us: float
    decision_p99_us: float
    load_seconds: float
    rss_mib: int


class Tracing(msgspec.Struct, frozen=True):
    """The cost of a trace: the median wall time of a decision, over alternating pods.

    Attributes:
        name: The workload.
        pods: Number of decisions with a trace.
        untraced_us: Without a trace, with remembered answers.
        traced_us: With a trace, for which every plugin runs.
    """

    name: str
    pods: int
    untraced_us: float
    traced_us: float


def new_cluster(*, remembers: bool = True) -> ClusterState:
    """Return an empty cluster with the default configuration."""
    gates = FeatureGates()
    return ClusterState(in_tree_setup(gates), remembers=remembers)


class Run:
    """One workload, loaded.

    Attributes:
        cluster: Nodes and the pods placed so far.
        pods: The measured pods, yet to be decided.
    """

    def __init__(self, case: Workload) -> None:
        self.case = case
        self.cluster = new_cluster()
        objects = Objects(case)
        self.cluster.load(objects.cluster())
        self._decision_seconds = array("d")
        self._tracker = self.cluster.profiles["default-scheduler"].services.claim_tracker
        self.placed = 0
        for group in case.before:
            pods, brought = objects.pods(group)
            self.cluster.load(brought)
            for pod in pods:
                self._place(pod)
        assert self.placed == case.before_count, f"{case.name}: not all first pods were placed"
        self.pods, brought = objects.pods(case.measured)
        self.cluster.load(brought)
        self._churn = objects.churn(len(self.pods))
        # The first decision of a kind fills the memory, which is part of the start-up.
        self.cluster.schedule_one(PodInfo(self.pods[0]))
        self.placed = 0
        self._decision_seconds = array("d")

    def measure(self, load_seconds: float) -> Throughput:
        """Decide and assume every measured pod."""
        wall, cpu = perf_counter(), process_time()
        self._place_all()
        wall, cpu = perf_counter() - wall, process_time() - cpu
        times_us = np.array(self._decision_seconds) * 1e6
        return Throughput(
            name=self.case.name,
            nodes=self.case.node_count,
            before=self.case.before_count,
            pods=len(self.pods),
            placed=self.placed,
            cycles=len(times_us),
            pods_per_second=round(self.placed / wall, 1),
            pods_per_cpu_second=round(self.placed / cpu, 1),
            decision_us=round(float(times_us.mean()), 2),
            decision_p50_us=round(float(np.percentile(times_us, 50)), 2),
            decision_p99_us=round(float(np.percentile(times_us, 99)), 2),
            load_seconds=round(load_seconds, 2),
            rss_mib=peak_rss_mib(),
        )

    def measure_tracing(self, pods: int) -> Tracing:
        """Decide `pods` pods without and as many with a trace, in turns of ten."""
        # With turns of one, each untraced decision would have to update two rows.
        traced = [at // _TURN_PODS % 2 == 1 for at in range(2 * pods)][: len(self.pods)]
        for pod, wanted in zip(self.pods, traced, strict=False):
            self._place(pod, Trace() if wanted else None)
        microseconds, mask = np.array(self._decision_seconds) * 1e6, np.array(traced)
        return Tracing(
            self.case.name,
            int(np.count_nonzero(mask)),
            round(float(np.median(microseconds[~mask])), 2),
            round(float(np.median(microseconds[mask])), 2),
        )

    def _place_all(self) -> None:
        if self.case.churn is None:
            for pod in self.pods:
                self._place(pod)
            return
        each = self.case.churn.every_pods
        for turn, misfit in enumerate(self._churn):
            self._place(misfit)
            for pod in self.pods[turn * each : (turn + 1) * each]:
                self._place(pod)

    def _place(self, pod: Pod, trace: Trace | None = None) -> None:
        """Decide and assume a pod; after a preemption, decide again."""
        info = self.cluster.add_pending(pod)
        for _ in range(_ATTEMPTS_MAX):
            decision = self._decide(info, trace)
            if isinstance(decision, Placed):
                self._allocate(decision)
                self.cluster.bind(info, decision.node_name)
                self.placed += 1
                return
            if not isinstance(decision, Rejected) or not decision.nominated_node_name:
                break
            for victim in decision.victims:
                self.cluster.evict(victim)
            self.cluster.nominate(info, decision.nominated_node_name)
            info = self.cluster.pending[info.uid]
        # The pod waits for an event that does not happen in this run.
        self.cluster.pending.pop(info.uid)

    def _decide(self, info: PodInfo, trace: Trace | None) -> Decision:
        before = perf_counter()
        decision = self.cluster.schedule_one(info, trace)
        self._decision_seconds.append(perf_counter() - before)
        return decision

    def _allocate(self, decision: Placed) -> None:
        """Reserve devices, and deliver the watch events of the written claims at once."""
        state = decision.cycle.filter_states.get(DynamicResources.name)
        if not isinstance(state, DynamicResourcesState) or not state.claims:
            return
        profile = self.cluster.profiles["default-scheduler"]
        for plugin in profile.reserve_plugins:
            status = plugin.reserve(decision.cycle, decision.pod, decision.node_name)
            assert status.is_success, status.message
        for entry in decision.pod.pod.status.resource_claim_statuses:
            name, namespace = entry.resource_claim_name, decision.pod.namespace
            claim = self.cluster.cache.objects.get(ResourceClaim, name or "", namespace)
            assert claim is not None, f"claim {name} is gone"
            self.cluster.cache.put(_written(claim, self._tracker, decision.pod))
        if state.special_claim is not None:
            written = _written(state.special_claim, self._tracker, decision.pod)
            named = msgspec.structs.replace(written.metadata, name=decision.pod.name)
            self.cluster.cache.put(msgspec.structs.replace(written, metadata=named))


def _written(claim: ResourceClaim, tracker: ClaimTracker, pod: PodInfo) -> ResourceClaim:
    allocation = tracker.pending_allocation(claim.metadata.uid)
    assert allocation is not None, f"claim {claim.metadata.name} was not allocated"
    tracker.remove_pending(claim.metadata.uid)
    user = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
    status = msgspec.structs.replace(
        claim.status, allocation=allocation, reserved_for=(*claim.status.reserved_for, user)
    )
    return msgspec.structs.replace(claim, status=status)


def peak_rss_mib() -> int:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _MEBIBYTE_IN_KIBIBYTES


def load(case: Workload) -> tuple[Run, float]:
    """Load a workload; return the run and the CPU seconds that loading took."""
    before = process_time()
    run = Run(case)
    return run, process_time() - before


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one workload and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--divisor", type=int, default=1)
    parser.add_argument("--trace", type=int, default=0, metavar="PODS")
    options = parser.parse_args(arguments)
    run, seconds = load(workload(options.name).divided(options.divisor))
    found = run.measure_tracing(options.trace) if options.trace else run.measure(seconds)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
