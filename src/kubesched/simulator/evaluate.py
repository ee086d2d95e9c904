"""Evaluates recorded scenarios: the decision for a pod, or for a sequence of pods, in a cluster.

The results have the keys and values of the conformance format (docs/conformance.md). Every node is
evaluated, so that neither order nor chance matters.

Upstream: decisions of kube-scheduler v1.36.2 with percentageOfNodesToScore 100, one pod after
          another; minCandidateNodesPercentage of DefaultPreemption is 100, too
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from kubesched.api.codec import DecodeError, Source, decode_object
from kubesched.api.core import Pod
from kubesched.config.args import exhaustive
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.config.types import Configuration
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.preemption.report import PreemptionReport
from kubesched.framework.registry import Registry, SchedulerSetup
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.scheduler.decision import Decision, Failed, Placed, Rejected
from kubesched.scheduler.plugin_failure import failed_with
from kubesched.scheduler.trace import Trace
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo

Answer = dict[str, Any]

_ATTEMPTS_MAX: Final = 3
_STEP_KEYS: Final = (
    "feasible",
    "nominated_hit",
    "totals",
    "best",
    "fit_error",
    "preenqueue",
    "errors",
)


class ScenarioError(ValueError):
    """A malformed scenario; the message has the place and the reason."""


class Evaluator:
    """Evaluates scenarios with one registry and one set of feature gates."""

    def __init__(self, registry: Registry, feature_gates: FeatureGates) -> None:
        self._registry = registry
        self._gates = feature_gates
        self._default = exhaustive(default_configuration(feature_gates))

    def evaluate(self, scenario: Mapping[str, Any]) -> Answer:
        """Return the result; keys without a value are omitted.

        Raises:
            ScenarioError: if the scenario is malformed.
            ConfigError: if its scheduler configuration is invalid.
        """
        name = scenario.get("name")
        if not isinstance(name, str):
            raise ScenarioError("scenario.name: a string is required")
        if "pods" not in scenario:
            answer, _ = _attempt(*self.prepare(scenario))
            return {"name": name, **answer}
        cluster = self._cluster(scenario)
        pods = [
            _decode_pod(item, f"pods[{at}]") for at, item in enumerate(_sequence(scenario, "pods"))
        ]
        return {"name": name, **_Sequence(cluster, bool(scenario.get("preempt"))).run(pods)}

    def prepare(self, scenario: Mapping[str, Any]) -> tuple[ClusterState, PodInfo]:
        """Return the cluster of a scenario with one pod, and the pod, not yet tried.

        Raises:
            ScenarioError: if the scenario is malformed.
            ConfigError: if its scheduler configuration is invalid.
        """
        cluster = self._cluster(scenario)
        if "pod" not in scenario:
            raise ScenarioError("scenario.pod: required (or scenario.pods for a sequence)")
        return cluster, cluster.add_pending(_decode_pod(scenario["pod"], "pod"))

    def _cluster(self, scenario: Mapping[str, Any]) -> ClusterState:
        configuration = self._configuration(scenario.get("config"))
        setup = SchedulerSetup(configuration, self._registry, self._gates)
        cluster = ClusterState(setup, remembers=False)
        objects = _sequence(scenario, "objects")
        cluster.load(_decode(item, f"objects[{at}]") for at, item in enumerate(objects))
        return cluster

    def _configuration(self, raw: object) -> Configuration:
        if raw is None:
            return self._default
        if not isinstance(raw, dict):
            raise ScenarioError("scenario.config: an object is required")
        return exhaustive(load_configuration(raw, self._gates))


def _sequence(scenario: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = scenario.get(key, [])
    if not isinstance(found, list):
        raise ScenarioError(f"scenario.{key}: a list is required")
    return found


def _decode(raw: object, place: str) -> Any:
    if not isinstance(raw, dict):
        raise ScenarioError(f"scenario.{place}: an object is required")
    try:
        return decode_object(raw, Source(f"scenario.{place}"))
    except DecodeError as error:
        raise ScenarioError(str(error)) from error


def _decode_pod(raw: object, place: str) -> Pod:
    pod = _decode(raw, place)
    if not isinstance(pod, Pod):
        raise ScenarioError(f"scenario.{place}: a Pod is required")
    return pod


# One attempt.


def _attempt(cluster: ClusterState, info: PodInfo) -> tuple[Answer, Decision | None]:
    answer: Answer = {"filter": {}, "feasible": [], "best": []}
    if cluster.profile_of(info) is None:
        raise ScenarioError(
            f"scenario.pod.spec.schedulerName: no profile {info.spec.scheduler_name!r}"
        )
    held = cluster.pre_enqueue(info)
    if not held.is_success:
        return {"preenqueue": _status(held), **answer}, None
    trace = Trace()
    decision = cluster.schedule_one(info, trace)
    if trace.pre_filter_status is not None:
        answer["prefilter"] = _pre_filter(trace)
    names = cluster.cache.nodes.names
    for row in np.flatnonzero(trace.statuses.index).tolist():
        if trace.statuses[row].is_rejected:
            answer["filter"][names[row]] = _status(trace.statuses[row])
    feasible = [names[row] for row in trace.feasible_rows.tolist()]
    answer["feasible"] = sorted(feasible)
    if trace.nominated_hit:
        answer["nominated_hit"] = True
    match decision:
        case Placed():
            answer |= _scores(trace, feasible)
            answer["best"] = _best(trace, feasible)
        case Rejected():
            answer |= _rejection(decision, trace, len(names))
        case Failed():
            answer |= _failed(decision, trace)
    return answer, decision


def _present(**fields: Any) -> Answer:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def _status(status: Status) -> Answer:
    code, reasons = status.code.label, sorted(status.all_reasons)
    return {**_present(plugin=status.plugin), "code": code, "reasons": reasons}


def _pre_filter(trace: Trace) -> Answer:
    status = trace.pre_filter_status or SUCCESS
    found: Answer = {"code": status.code.label}
    if not status.is_success:
        found |= _status(status)
    if trace.restricted_to is not None:
        found |= {
            "restricted": True,
            "nodes": sorted(trace.restricted_to),
            "plugins": sorted(trace.restricting_plugins),
        }
    return found


def _scores(trace: Trace, feasible: Sequence[str]) -> Answer:
    if trace.totals is None:
        return {}
    found: Answer = {"totals": dict(zip(feasible, trace.totals.tolist(), strict=True))}
    if trace.scores:
        columns = {score.plugin: score.weighted.tolist() for score in trace.scores}
        found["scores"] = {
            name: {plugin: column[at] for plugin, column in columns.items()}
            for at, name in enumerate(feasible)
        }
    return found


def _best(trace: Trace, feasible: Sequence[str]) -> list[str]:
    if trace.totals is None:
        return list(feasible)
    most = trace.totals.max()
    return sorted(name for name, total in zip(feasible, trace.totals, strict=True) if total == most)


def _rejection(decision: Rejected, trace: Trace, nodes: int) -> Answer:
    diagnosis = decision.diagnosis
    absent = diagnosis.absent_status
    post_filter = decision.post_filter
    return {
        "fit_error": decision.message,
        "fit_error_filter": diagnosis.with_post_filter_message("").fit_error(nodes),
        **_present(
            absent_status=_status(absent) if absent.reasons else None,
            unschedulable_plugins=sorted(diagnosis.unschedulable_plugins),
            pending_plugins=sorted(diagnosis.pending_plugins),
        ),
        **({} if post_filter is None else _post_filter(post_filter, trace)),
    }


def _post_filter(result: PostFilterResult, trace: Trace) -> Answer:
    found: Answer = {
        "postfilter_code": result.status.code.label,
        **_present(postfilter_message=result.status.message),
    }
    if result.nominated_node_name:
        found["nominated_node"] = result.nominated_node_name
        found["victims"] = sorted(victim.key for victim in result.victims)
    elif result.nominated_node_name == "":
        found["clears_nominated_node"] = True
    for each in trace.post_filters.values():
        # A preemption that ended in an error has nothing to report.
        if isinstance(each.details, PreemptionReport) and each.status.code is not Code.ERROR:
            found["preemption"] = _preemption(each.details)
    return found


def _preemption(report: PreemptionReport) -> Answer:
    candidates = {
        candidate.node_name: {
            "victims": [victim.key for victim in candidate.victims],
            "pdb_violations": candidate.pdb_violations,
        }
        for candidate in report.candidates
    }
    statuses = {name: _status(status) for name, status in sorted(report.node_statuses.items())}
    return {
        "eligible": report.eligible,
        **_present(
            reason=report.reason,
            candidates=candidates,
            best=sorted(report.best),
            node_statuses=statuses,
        ),
    }


def _failed(decision: Failed, trace: Trace) -> Answer:
    if decision.status.is_rejected:
        return {"fit_error": decision.message, "fit_error_filter": decision.message}
    errors = {decision.message}
    if trace.failed_filters is not None:
        # kube-scheduler reports the failure it finds first, on a random node.
        errors.update(
            status.message
            if status.message.startswith("running ")
            else failed_with("filter", status.plugin, status).message
            for status in trace.failed_filters.statuses
            if status.code is Code.ERROR
        )
    return {"errors": sorted(errors)}


# Sequences.


class _Sequence:
    """Schedules pods one after another and applies each decision to the cluster."""

    def __init__(self, cluster: ClusterState, preempts: bool) -> None:
        self._cluster = cluster
        self._preempts = preempts
        self._steps: list[Answer] = []
        self._placements: dict[str, str] = {}

    def run(self, pods: Iterable[Pod]) -> Answer:
        """Return the steps and the final node of each pod."""
        for pod in pods:
            uid = self._cluster.add_pending(pod).uid
            for attempt in range(1, _ATTEMPTS_MAX + 1):
                info = self._cluster.pending[uid]
                if not self._step(info, attempt):
                    break
        return {"steps": self._steps, "placements": dict(sorted(self._placements.items()))}

    def _step(self, info: PodInfo, attempt: int) -> bool:
        """Make one attempt; return whether the pod is to be tried again."""
        answer, decision = _attempt(self._cluster, info)
        step: Answer = {"pod": info.key, "attempt": attempt}
        step |= {key: answer[key] for key in _STEP_KEYS if key in answer}
        number = len(self._steps)
        self._steps.append(step)
        if isinstance(decision, Placed):
            step["chosen"] = answer["best"][0]
            self._bind(info, step["chosen"], number)
        elif isinstance(decision, Rejected) and self._preempts and decision.nominated_node_name:
            self._preempt(info, decision.nominated_node_name, decision, step)
            return True
        elif isinstance(decision, Failed) or (
            isinstance(decision, Rejected) and decision.nominated_node_name == ""
        ):
            self._cluster.nominate(info, "")
        return False

    def _bind(self, info: PodInfo, node_name: str, number: int) -> None:
        self._cluster.bind(info, node_name)
        self._cluster.cache.remove_pod(info.uid)
        started = f"2026-06-01T00:{number // 60:02d}:{number % 60:02d}Z"
        pod = info.pod
        status = msgspec.structs.replace(
            pod.status, phase="Running", nominated_node_name="", start_time=started
        )
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        self._cluster.cache.add_pod(msgspec.structs.replace(pod, spec=spec, status=status))
        self._placements[info.key] = node_name

    def _preempt(self, info: PodInfo, node_name: str, decision: Rejected, step: Answer) -> None:
        step["nominated_node"] = node_name
        step["victims"] = sorted(victim.key for victim in decision.victims)
        for victim in decision.victims:
            self._cluster.evict(victim)
            self._placements.pop(victim.key, None)
        losers = self._cluster.nominate(info, node_name)
        if losers:
            step["unnominated"] = sorted(loser.key for loser in losers)
