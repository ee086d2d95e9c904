"""JobController runs the pods of Jobs, CronJobController creates Jobs on a schedule.

A Job has pods until enough of them have succeeded, an indexed one until one has for each index; a
schedule is in cron's five fields.

Upstream: pkg/controller/{job,cronjob}, github.com/robfig/cron/v3 (v1.36)
Rejects:  schedules with other than five fields, unknown names and numbers out of range.
Differs:  deleted pods are not counted; failure, success and replacement policies and backoff are
          not supported. `@every` is not supported. Of several missed times only the last counts,
          however many there are; an invalid schedule or time zone is logged.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, repeat
from math import inf
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from kubesched.api.core import FINISHED, Pod
from kubesched.api.times import second_time
from kubesched.cluster.controllers.controller import (
    BURST,
    ObjectsController,
    PodsController,
    is_active,
    pod_of,
    ready_since,
    seconds_of,
)
from kubesched.cluster.server import Plain, annotated, reference_to
from kubesched.cluster.store import Key

_CONTROLLER: Final = "kubernetes.io/job-controller"


class JobController(PodsController):
    """Reconciles Jobs, except those that another controller manages."""

    kind = "jobs.batch"
    owner_kind = "Job"
    written_zeros = ("ready", "terminating")

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create the pods that are needed, and update the Job's status."""
        ended = final_condition(owner)
        if ended is not None:
            self._expire(key, owner, ended)
            return
        spec = owner["spec"]
        if spec.get("managedBy", _CONTROLLER) != _CONTROLLER:
            return
        pods = self.claim(owner)
        active = [pod for pod in pods if is_active(pod)]
        succeeded, failed = (_ended(spec, pods, phase) for phase in ("Succeeded", "Failed"))
        counts: Plain = {"succeeded": len(succeeded), "failed": failed.total()}
        if spec.get("completionMode") == "Indexed" and succeeded:
            counts["completedIndexes"] = _ranges(succeeded)
        if "backoffLimitPerIndex" in spec:
            counts["failedIndexes"] = _ranges(_lost(spec, failed))
        end = self._end_of(key, owner, len(succeeded), failed, active)
        try:
            if end is None:
                self._run(key, owner, active, succeeded, failed)
            else:
                for pod in active:
                    self.pods.delete(pod)
                # The pods of a failed Job have failed.
                counts["failed"] += len(active) if end[0] == "Failed" else 0
        finally:
            self._count(key, owner, counts, end)

    def _end_of(
        self, key: Key, owner: Plain, succeeded: int, failed: _Counts, active: list[Pod]
    ) -> tuple[str, str, str] | None:
        """Return the final condition of a Job, with reason and message; None before its end."""
        spec = owner["spec"]
        limit, restarts = spec.get("backoffLimit", 6), 0
        if spec["template"]["spec"].get("restartPolicy") == "OnFailure":
            statuses = (one for pod in active for one in pod.status.container_statuses)
            restarts = sum(one.restart_count for one in statuses)
        # Restarts may be as many as the limit, unless that is 0; failed pods may be one more.
        if failed.total() > limit or (restarts and restarts >= limit):
            words = "Job has reached the specified backoff limit"
            return "Failed", "BackoffLimitExceeded", words
        if self._is_past_deadline(key, owner):
            words = "Job was active longer than specified deadline"
            return "Failed", "DeadlineExceeded", words
        completions, lost = spec.get("completions"), len(_lost(spec, failed))
        if lost > spec.get("maxFailedIndexes", lost):
            words = "Job has exceeded the specified maximal number of failed indexes"
            return "Failed", "MaxFailedIndexesExceeded", words
        if lost and lost + succeeded >= completions:
            return "Failed", "FailedIndexes", "Job has failed indexes"
        # Without completions, it is complete when one pod has succeeded and the others have ended.
        is_done = succeeded and not active if completions is None else succeeded >= completions
        if is_done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _is_past_deadline(self, key: Key, owner: Plain) -> bool:
        """Whether a Job has run for too long; if not yet, set a timer."""
        seconds = owner["spec"].get("activeDeadlineSeconds")
        if seconds is None or owner["spec"].get("suspend"):
            return False
        start = owner.get("status", {}).get("startTime")
        left = seconds - (self.server.now() - seconds_of(start) if start else 0.0)
        if left > 0:
            self._enqueue_after(key, left)
        return bool(left <= 0)

    def _run(
        self, key: Key, owner: Plain, active: list[Pod], succeeded: _Counts, failed: _Counts
    ) -> None:
        spec = owner["spec"]
        wanted = 0 if spec.get("suspend") else spec.get("parallelism", 1)
        completions = spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - len(succeeded))
        elif succeeded:
            # One success means that the work is done: no more pods are created.
            wanted = min(wanted, len(active))
        missing = wanted - len(active)
        kept = {_index_of(spec, pod): pod for pod in active[::-1]}
        kept.pop(None, None)
        misplaced = [pod for pod in active if kept.get(_index_of(spec, pod)) is not pod]
        surplus = misplaced or active[::-1][: max(-missing, 0)]
        for one in surplus[:BURST]:
            self.pods.delete(one)
        if not surplus:
            new: Iterator[Plain] = repeat(pod_of(spec["template"], key.name))
            if spec.get("completionMode") == "Indexed":
                taken = {*kept, *succeeded, *_lost(spec, failed)}
                free = (index for index in range(completions or 0) if index not in taken)
                new = (indexed_pod(owner, index, failed[index]) for index in free)
            for pod in islice(new, min(missing, BURST)):
                self.pods.create(owner, pod)
        if max(missing, len(surplus)) > BURST:
            self._enqueue(key)

    def _count(
        self, key: Key, owner: Plain, counts: Plain, end: tuple[str, str, str] | None
    ) -> None:
        now = self.server.timestamp()
        status = {**owner.get("status", {}), **counts}
        unfinished = [pod for pod in self.pods.of(owner) if pod.status.phase not in FINISHED]
        active = [pod for pod in unfinished if is_active(pod)]
        status["active"] = len(active)
        # Nothing is counted after the end.
        status["terminating"] = len(unfinished) - len(active) if end is None else 0
        status["ready"] = sum(ready_since(pod) is not None for pod in active)
        conditions = {one["type"]: one for one in status.get("conditions", ())}
        was_suspended = conditions.get("Suspended", {}).get("status") == "True"
        if end is not None:
            type_, reason, message = end
            first = "FailureTarget" if type_ == "Failed" else "SuccessCriteriaMet"
            conditions[first] = _condition(first, reason, message, now)
            conditions[type_] = _condition(type_, reason, message, now)
            if not owner["spec"].get("suspend"):
                # A Job that wants no pods ends before it has run.
                status.setdefault("startTime", now)
            if type_ == "Complete":
                status["completionTime"] = now
        elif not owner["spec"].get("suspend"):
            if was_suspended:
                resumed = _condition("Suspended", "JobResumed", "Job resumed", now, "False")
                conditions["Suspended"] = resumed
                status["startTime"] = now
            status.setdefault("startTime", now)
        elif not was_suspended:
            conditions["Suspended"] = _condition("Suspended", "JobSuspended", "Job suspended", now)
            status.pop("startTime", None)
        if conditions:
            status["conditions"] = list(conditions.values())
        self.write_status(key, status)

    def _expire(self, key: Key, owner: Plain, ended: Plain) -> None:
        """Delete a Job whose ttlSecondsAfterFinished has passed."""
        seconds = owner["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        left = seconds - (self.server.now() - seconds_of(ended["lastTransitionTime"]))
        if left > 0:
            self._enqueue_after(key, left)
        else:
            self.server.delete(key, owner["metadata"]["uid"])


# The pods of Jobs by their completion index.

_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_Index: TypeAlias = int | str | None
_Counts: TypeAlias = Counter[_Index]


def _index_of(spec: Plain, pod: Pod) -> _Index:
    """Return the index of a pod, None if it has a wrong one; without indexes, its uid."""
    if spec.get("completionMode") != "Indexed":
        return pod.metadata.uid
    text = pod.metadata.annotations.get(_INDEX, "")
    is_right = text.isdecimal() and int(text) < spec.get("completions", 0)
    return int(text) if is_right else None


def _ended(spec: Plain, pods: list[Pod], phase: str) -> _Counts:
    """Return how many pods of each index have ended in a phase."""
    found = (_index_of(spec, pod) for pod in pods if pod.status.phase == phase)
    return Counter(index for index in found if index is not None)


def _lost(spec: Plain, failed: _Counts) -> list[_Index]:
    """Return the indexes that have failed too often."""
    limit = spec.get("backoffLimitPerIndex", inf)
    return [index for index, number in failed.items() if number > limit]


def _ranges(indexes: Iterable[_Index]) -> str:
    """Return indexes as a status has them, such as `0,2-4`."""
    runs: list[list[int]] = []
    for index in sorted(index for index in indexes if isinstance(index, int)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    # Two are written one by one.
    parts = (f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
    return ",".join(parts)


def indexed_pod(owner: Plain, index: int, failures: int) -> Plain:
    """Return the pod of an indexed Job with an index whose pods have failed so many times."""
    spec, name = owner["spec"], f"{owner['metadata']['name']}-{index}"
    pod, label = pod_of(spec["template"], name), {_INDEX: str(index)}
    count = {_FAILURES: str(failures)} if "backoffLimitPerIndex" in spec else {}
    metadata = annotated(pod, {**label, **count})
    metadata["labels"] = {**metadata.get("labels", {}), **label}
    pod_spec = {**pod["spec"], "hostname": name}
    for kind in ("initContainers", "containers"):
        pod_spec[kind] = [_with_index(one) for one in pod_spec.get(kind, ())]
    return {"metadata": metadata, "spec": pod_spec}


def _with_index(container: Plain) -> Plain:
    """Return a container that knows the index of its pod."""
    env = container.get("env", [])
    if any(one["name"] == _VARIABLE for one in env):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}}
    return {**container, "env": [*env, {"name": _VARIABLE, "valueFrom": source}]}


def final_condition(job: Plain) -> Plain | None:
    """Return the condition with which a Job has ended, None if it has not."""
    conditions = job.get("status", {}).get("conditions", ())
    ends = (one for one in conditions if one["type"] in {"Complete", "Failed"})
    return next((one for one in ends if one["status"] == "True"), None)


def _condition(type_: str, reason: str, message: str, now: str, status: str = "True") -> Plain:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }


# CronJobs.

_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905 - short
_DAYS: Final = "sun mon tue wed thu fri sat".split()  # noqa: SIM905 - short
# Of each field: its first and last number, and names for them.
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
# The 29th of February is at most eight years away.
_DAYS_MAX: Final = 8 * 366


class CronSchedule(msgspec.Struct, frozen=True):
    """A schedule: the numbers of each field; Sunday is weekday 0.

    With `needs_both`, day and weekday must match; otherwise one of them is enough.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    needs_both: bool

    def next_after(self, time: datetime) -> datetime | None:
        """Return the first time of the schedule after a time, None if there is none.

        When clocks change, a skipped hour has no times, and a repeated one has its times twice.
        """
        found = _later(time.replace(second=0, microsecond=0), 1)
        last = found + timedelta(days=_DAYS_MAX)
        while found < last:
            minute = next((one for one in self.minutes if one >= found.minute), None)
            if not self._has_day(found):
                found = _later((found + timedelta(days=1)).replace(hour=0, minute=0, fold=0), 0)
            elif found.hour in self.hours and minute is not None:
                return _later(found, minute - found.minute)
            else:
                found = _later(found, 60 - found.minute)
        return None

    def _has_day(self, time: datetime) -> bool:
        is_day = time.day in self.days
        is_weekday = time.isoweekday() % 7 in self.weekdays
        matches = (is_day and is_weekday) if self.needs_both else (is_day or is_weekday)
        return time.month in self.months and matches


def _later(time: datetime, minutes: int) -> datetime:
    """Return the time after some minutes, as clocks in its zone show it."""
    return (time.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(time.tzinfo)


def parse_schedule(text: str) -> CronSchedule:
    """Return the schedule of a text such as `*/5 * * * *`; raises ValueError if it is not one."""
    fields = _NAMED.get(text.strip(), text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError("must have five fields, or be a word such as @daily")
    minutes, hours, days, months, weekdays = (
        _numbers(field, *limits) for field, limits in zip(fields, _FIELDS, strict=True)
    )
    needs_both = _is_open(fields[2]) or _is_open(fields[4])
    return CronSchedule(minutes, hours, days, months, weekdays, needs_both)


def _is_open(field: str) -> bool:
    """Whether a field has a star; one with steps, such as `*/2`, does not count."""
    parts = (part.partition("/") for part in field.split(","))
    return any(span[0] in "*?" and (not step or int(step) == 1) for span, _, step in parts)


def _numbers(field: str, first: int, last: int, names: dict[str, int]) -> tuple[int, ...]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        low, dash, high = span.partition("-")
        if low in {"*", "?"}:
            begin, end = first, last
        else:
            begin = _number(low, names)
            end = _number(high, names) if dash else (last if slash else begin)
        width = _number(step, {}) if slash else 1
        if not first <= begin <= end <= last or width < 1:
            raise ValueError(f"{part!r} is not within {first} and {last}")
        found.update(range(begin, end + 1, width))
    return tuple(sorted(found))


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is None and not text.isdecimal():
        raise ValueError(f"{text!r} is neither a number nor a name")
    return int(text) if known is None else known


log = logging.getLogger(__name__)

_JOBS: Final = "jobs.batch"
_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# Times that were missed longer ago are skipped.
_MISSED_SECONDS_MAX: Final = 7 * 86_400.0
_SECONDS_PER_MINUTE: Final = 60


class CronJobController(ObjectsController):
    """Reconciles CronJobs."""

    kind = "cronjobs.batch"
    owner_kind = "CronJob"
    owned = _JOBS

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create a Job if it is due, and set a timer for the next one."""
        jobs = self.owned_by(owner)
        self._forget_old(owner["spec"], jobs)
        self._write(key, jobs, {})
        spec = owner["spec"]
        if spec.get("suspend"):
            return
        try:
            schedule = parse_schedule(spec["schedule"])
            zone = ZoneInfo(spec["timeZone"]) if spec.get("timeZone") else UTC
        # A part of a zone's name is a directory of the database.
        except (OSError, ValueError, ZoneInfoNotFoundError) as error:
            log.warning("CronJob %s/%s: %s", key.namespace, key.name, error)
            return
        now = datetime.fromtimestamp(self.server.now(), zone)
        due = self._due(owner, schedule, now)
        if due is not None:
            self._run(key, owner, due)
        later = schedule.next_after(now)
        if later is not None:
            self._enqueue_after(key, later.timestamp() - now.timestamp())

    def _due(self, owner: Plain, schedule: CronSchedule, now: datetime) -> datetime | None:
        """Return the last due time of the schedule that has no Job yet."""
        last = owner.get("status", {}).get("lastScheduleTime")
        since = seconds_of(last or owner["metadata"]["creationTimestamp"])
        deadline = owner["spec"].get("startingDeadlineSeconds", _MISSED_SECONDS_MAX)
        since = max(since, now.timestamp() - deadline)
        found = None
        time = schedule.next_after(datetime.fromtimestamp(since, now.tzinfo))
        while time is not None and time.timestamp() <= now.timestamp():
            found, time = time, schedule.next_after(time)
        return found

    def _run(self, key: Key, owner: Plain, due: datetime) -> None:
        spec = owner["spec"]
        policy = spec.get("concurrencyPolicy", "Allow")
        active = [job for job in self.owned_by(owner) if _is_running(job)]
        if active and policy == "Forbid":
            return
        if policy == "Replace":
            for job in active:
                self.delete_owned(job)
        name = f"{key.name}-{int(due.timestamp()) // _SECONDS_PER_MINUTE}"
        if self.server.find(_JOBS, key.namespace, name) is None:
            job = job_of(owner, name)
            job["metadata"] = annotated(job, {_SCHEDULED: due.isoformat().replace("+00:00", "Z")})
            self.create_owned(owner, job)
        time = second_time(due)
        self._write(key, self.owned_by(owner), {"lastScheduleTime": time})

    def _forget_old(self, spec: Plain, jobs: list[Plain]) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        ends = [(job, final_condition(job)) for job in jobs]
        for type_, limit in (
            ("Complete", spec.get("successfulJobsHistoryLimit", 3)),
            ("Failed", spec.get("failedJobsHistoryLimit", 1)),
        ):
            ended = [job for job, end in ends if end is not None and end["type"] == type_]
            for job in ended[: max(len(ended) - limit, 0)]:
                self.delete_owned(job)

    def _write(self, key: Key, jobs: list[Plain], more: Plain) -> None:
        owner = self.server.find(*key)
        if owner is None:
            return
        status = {**owner.get("status", {}), **more}
        status["active"] = [reference_to(job) for job in jobs if _is_running(job)]
        done = [one for job in jobs if (one := job.get("status", {}).get("completionTime"))]
        if done:
            status["lastSuccessfulTime"] = max(done)
        if not status["active"]:
            del status["active"]
        self.write_status(key, status)


def _is_running(job: Plain) -> bool:
    """Whether a Job that its CronJob created has not ended; users may create others from it."""
    return _SCHEDULED in job["metadata"].get("annotations", {}) and final_condition(job) is None


def job_of(cron_job: Plain, name: str) -> Plain:
    """Return a Job of a CronJob."""
    template = cron_job["spec"]["jobTemplate"]
    return {"metadata": {**template.get("metadata", {}), "name": name}, "spec": template["spec"]}
