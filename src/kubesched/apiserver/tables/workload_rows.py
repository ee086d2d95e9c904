"""The rows of controllers and of what they make, of disruption budgets and of pod groups.

Upstream: pkg/printers/internalversion/printers.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubesched.apiserver.plain import Plain, get
from kubesched.apiserver.tables.texts import (
    NONE,
    UNSET,
    age,
    container_texts,
    human_duration,
    label_selector_text,
    label_text,
    name_of,
    since,
    when,
)

__all__ = [
    "controller_revision_cells",
    "cron_job_cells",
    "daemon_set_cells",
    "deployment_cells",
    "disruption_budget_cells",
    "job_cells",
    "network_policy_cells",
    "pod_group_cells",
    "pod_template_cells",
    "replica_set_cells",
    "replication_controller_cells",
    "scale_cells",
    "stateful_set_cells",
]

_TEMPLATE: Final = ("spec", "template", "spec")
_JOB_ENDS: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _number(value: Plain, *path: str) -> int:
    return get(value, *path) or 0


def _scaled(value: Plain, now: datetime) -> list[Any]:
    return [
        name_of(value),
        _number(value, "spec", "replicas"),
        _number(value, "status", "replicas"),
        _number(value, "status", "readyReplicas"),
        age(value, now),
        *container_texts(get(value, *_TEMPLATE)),
    ]


def replication_controller_cells(controller: Plain, now: datetime) -> list[Any]:
    """Return the cells of a replication controller."""
    return [*_scaled(controller, now), label_text(get(controller, "spec", "selector"))]


def replica_set_cells(replica_set: Plain, now: datetime) -> list[Any]:
    """Return the cells of a replica set."""
    return [*_scaled(replica_set, now), label_selector_text(get(replica_set, "spec", "selector"))]


def stateful_set_cells(stateful_set: Plain, now: datetime) -> list[Any]:
    """Return the cells of a stateful set."""
    return [
        name_of(stateful_set),
        _ready(stateful_set),
        age(stateful_set, now),
        *container_texts(get(stateful_set, *_TEMPLATE)),
    ]


def _ready(value: Plain) -> str:
    ready, wanted = _number(value, "status", "readyReplicas"), _number(value, "spec", "replicas")
    return f"{ready}/{wanted}"


def deployment_cells(deployment: Plain, now: datetime) -> list[Any]:
    """Return the cells of a deployment."""
    selector = get(deployment, "spec", "selector")
    return [
        name_of(deployment),
        _ready(deployment),
        _number(deployment, "status", "updatedReplicas"),
        _number(deployment, "status", "availableReplicas"),
        age(deployment, now),
        *container_texts(get(deployment, *_TEMPLATE)),
        label_selector_text(selector, empty="", faulty="<invalid>"),
    ]


def daemon_set_cells(daemon_set: Plain, now: datetime) -> list[Any]:
    """Return the cells of a daemon set."""
    pod = get(daemon_set, *_TEMPLATE) or {}
    return [
        name_of(daemon_set),
        _number(daemon_set, "status", "desiredNumberScheduled"),
        _number(daemon_set, "status", "currentNumberScheduled"),
        _number(daemon_set, "status", "numberReady"),
        _number(daemon_set, "status", "updatedNumberScheduled"),
        _number(daemon_set, "status", "numberAvailable"),
        label_text(pod.get("nodeSelector")),
        age(daemon_set, now),
        *container_texts(pod),
        label_selector_text(get(daemon_set, "spec", "selector")),
    ]


def job_cells(job: Plain, now: datetime) -> list[Any]:
    """Return the cells of a job."""
    return [
        name_of(job),
        _job_status(job),
        _completions(job),
        _job_duration(job, now),
        age(job, now),
        *container_texts(get(job, *_TEMPLATE)),
        label_selector_text(get(job, "spec", "selector")),
    ]


def _job_status(job: Plain) -> str:
    conditions: dict[str, bool] = {}
    for one in get(job, "status", "conditions") or ():
        conditions.setdefault(one.get("type", ""), one.get("status") == "True")
    for condition, status in _JOB_ENDS:
        if conditions.get(condition):
            return status
    if get(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((state for state in _JOB_STATES if conditions.get(state)), "Running")


def _completions(job: Plain) -> str:
    succeeded = _number(job, "status", "succeeded")
    wanted = get(job, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = _number(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Plain, now: datetime) -> str:
    start = when(get(job, "status", "startTime"))
    end = when(get(job, "status", "completionTime")) or now
    return human_duration((end - start).total_seconds()) if start else ""


def cron_job_cells(cron_job: Plain, now: datetime) -> list[Any]:
    """Return the cells of a cron job."""
    last = get(cron_job, "status", "lastScheduleTime")
    suspended = get(cron_job, "spec", "suspend")
    template = get(cron_job, "spec", "jobTemplate") or {}
    return [
        name_of(cron_job),
        get(cron_job, "spec", "schedule") or "",
        get(cron_job, "spec", "timeZone") or NONE,
        UNSET if suspended is None else str(suspended),
        len(get(cron_job, "status", "active") or ()),
        since(last, now) if last else NONE,
        age(cron_job, now),
        *container_texts(get(template, *_TEMPLATE)),
        label_selector_text(get(template, "spec", "selector")),
    ]


def controller_revision_cells(revision: Plain, now: datetime) -> list[Any]:
    """Return the cells of a controller revision."""
    owner = NONE
    for reference in get(revision, "metadata", "ownerReferences") or ():
        if reference.get("controller"):
            group = reference["apiVersion"].rpartition("/")[0]
            kind = f"{reference['kind']}.{group}" if group else reference["kind"]
            owner = f"{kind.lower()}/{reference['name']}"
            break
    return [name_of(revision), owner, revision.get("revision") or 0, age(revision, now)]


def pod_template_cells(template: Plain, now: datetime) -> list[Any]:
    """Return the cells of a pod template; they have no age."""
    labels = get(template, "template", "metadata", "labels")
    return [
        name_of(template),
        *container_texts(get(template, "template", "spec")),
        label_text(labels),
    ]


def disruption_budget_cells(budget: Plain, now: datetime) -> list[Any]:
    """Return the cells of a disruption budget."""
    least, most = (get(budget, "spec", name) for name in ("minAvailable", "maxUnavailable"))
    return [
        name_of(budget),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        _number(budget, "status", "disruptionsAllowed"),
        age(budget, now),
    ]


def network_policy_cells(policy: Plain, now: datetime) -> list[Any]:
    """Return the cells of a network policy."""
    pods = get(policy, "spec", "podSelector") or {}
    return [name_of(policy), label_selector_text(pods), age(policy, now)]


def scale_cells(scale: Plain, now: datetime) -> list[Any]:
    """Return the cells of a scale."""
    wanted, actual = _number(scale, "spec", "replicas"), _number(scale, "status", "replicas")
    return [name_of(scale), wanted, actual, age(scale, now)]


def pod_group_cells(group: Plain, now: datetime) -> list[Any]:
    """Return the cells of a pod group."""
    is_gang = get(group, "spec", "schedulingPolicy", "gang") is not None
    workload = get(group, "spec", "podGroupTemplateRef", "workload", "workloadName")
    return [
        name_of(group),
        "Gang" if is_gang else "Basic",
        workload or NONE,
        _group_status(group),
        age(group, now),
    ]


def _group_status(group: Plain) -> str:
    conditions = {one.get("type"): one for one in get(group, "status", "conditions") or ()}
    if disruption := conditions.get("DisruptionTarget"):
        return str(disruption.get("reason", ""))
    scheduled = conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
