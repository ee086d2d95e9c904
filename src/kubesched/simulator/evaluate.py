"""Evaluates recorded scenarios: the decision for a pod, or for a sequence of pods, in a cluster.

The results have the keys and values of the conformance format (docs/conformance.md). Every node is
evaluated, so that neither order nor chance matters. A file has a scenario per line, perhaps with
its expected result; a line that is malformed has an error as its result.

Upstream: decisions of kube-scheduler v1.36.2 with percentageOfNodesToScore 100, one pod after
          another; minCandidateNodesPercentage of DefaultPreemption is 100, too
Invariants: a result differs from the expected one if their JSON texts do: True is not 1.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.codec import DecodeError, Source, decode_object
from kubesched.api.core import Pod
from kubesched.api.field_errors import ConfigError
from kubesched.api.times import second_time
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

        Raises ScenarioError if the scenario is malformed, ConfigError if its configuration is.
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

        Raises ScenarioError if the scenario is malformed, ConfigError if its configuration is.
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

_BEGIN: Final = datetime(2026, 6, 1, tzinfo=UTC)


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
        started = second_time(_BEGIN + timedelta(seconds=number))
        pod = info.pod
        status = replace(pod.status, phase="Running", nominated_node_name="", start_time=started)
        spec = replace(pod.spec, node_name=node_name)
        self._cluster.cache.add_pod(replace(pod, spec=spec, status=status))
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


# Differences from an expected result.

ABSENT: Final = "(absent)"


class Difference(msgspec.Struct, frozen=True):
    """A value that differs from the expected one; both are JSON, or ABSENT.

    `path` has the keys and indices that lead to it, such as `scores.node-1.ImageLocality`.
    """

    path: str
    expected: str
    got: str


def differences(expected: Any, got: Any, path: str = "") -> Iterator[Difference]:
    """Yield the differences, in the order of the keys of `expected`."""
    if isinstance(expected, dict) and isinstance(got, dict):
        yield from _of_objects(expected, got, path)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for at, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from differences(left, right, f"{path}[{at}]")
    elif type(expected) is not type(got) or expected != got:
        yield Difference(path, _json(expected), _json(got))


def _of_objects(expected: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[Difference]:
    for key, value in expected.items():
        below = f"{path}.{key}" if path else key
        if key in got:
            yield from differences(value, got[key], below)
        else:
            yield Difference(below, _json(value), ABSENT)
    for key, value in got.items():
        if key not in expected:
            yield Difference(f"{path}.{key}" if path else key, ABSENT, _json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# Lines.


class AnsweredLine(msgspec.Struct, frozen=True):
    """A line and its result.

    Attributes:
        number: The line number from 1, counting blank lines.
        name: The scenario's name; empty if it could not be read.
        answer: The result; after an error `error`, `line`, and `name` if known.
        expected: The recorded result; None if there is none.
        is_error: Whether the result is an error.
    """

    number: int
    name: str
    answer: Mapping[str, Any]
    expected: Mapping[str, Any] | None = None
    is_error: bool = False


def answer_lines(evaluator: Evaluator, lines: Iterable[bytes]) -> Iterator[AnsweredLine]:
    """Yield the result of each line that is not blank, as soon as the line is read."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _answered(evaluator, number, line)


def _answered(evaluator: Evaluator, number: int, line: bytes) -> AnsweredLine:
    name = ""
    expected: Mapping[str, Any] | None = None
    try:
        scenario, expected = _read(line)
        name = scenario["name"] if isinstance(scenario.get("name"), str) else ""
        answer = evaluator.evaluate(scenario)
    except Exception as error:  # noqa: BLE001 - an error in one line must not affect the others
        named = {"name": name} if name else {}
        result = {"error": _message(error), "line": number, **named}
        return AnsweredLine(number, name, result, expected, is_error=True)
    return AnsweredLine(number, name, answer, expected)


def _read(line: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return the scenario and the expected result; a line may also be a bare scenario."""
    # JSON must be UTF-8, but msgspec validates only the text that it keeps.
    line.decode()
    found = msgspec.json.decode(line)
    if not isinstance(found, dict):
        raise ScenarioError("an object is required")
    if "scenario" not in found:
        return found, None
    scenario, expected = found["scenario"], found.get("expected")
    if not isinstance(scenario, dict):
        raise ScenarioError("scenario: an object is required")
    if expected is not None and not isinstance(expected, dict):
        raise ScenarioError("expected: an object is required")
    return scenario, expected


def _message(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return f"it is not UTF-8: {error.reason} (byte {error.start})"
        case msgspec.DecodeError():
            return f"it is not JSON: {error}"
        case RecursionError():
            return "it is nested too deeply"
        case ConfigError():
            return "; ".join(f"scenario.config: {field_error}" for field_error in error.errors)
        case ScenarioError():
            return str(error)
        case _:
            return f"internal error: {type(error).__name__}: {error}"
