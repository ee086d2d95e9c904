"""CronJobController creates Jobs at the times of a schedule in cron's five fields.

Upstream: pkg/controller/cronjob, github.com/robfig/cron/v3 (v1.36)
Rejects:  schedules with other than five fields, unknown names and numbers out of range.
Differs:  `@every` is not supported. Of several missed times only the last counts, however many
          there are; an invalid schedule or time zone is logged.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from kubesched.api.times import second_time
from kubesched.cluster.controllers.jobs import final_condition
from kubesched.cluster.controllers.owner_controller import ObjectsController, seconds_of
from kubesched.cluster.server import Plain, reference_to
from kubesched.cluster.store import Key

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
        """Return the first time of the schedule after a time, None if there is none."""
        start = time.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for offset in range(_DAYS_MAX):
            day = start + timedelta(days=offset)
            if not self._has_day(day):
                continue
            for hour in self.hours:
                for minute in self.minutes:
                    found = day.replace(hour=hour, minute=minute)
                    if found >= start:
                        return found
        return None

    def _has_day(self, time: datetime) -> bool:
        is_day = time.day in self.days
        is_weekday = time.isoweekday() % 7 in self.weekdays
        matches = (is_day and is_weekday) if self.needs_both else (is_day or is_weekday)
        return time.month in self.months and matches


def parse_schedule(text: str) -> CronSchedule:
    """Return the schedule of a text such as `*/5 * * * *`.

    Raises:
        ValueError: The schedule is invalid.
    """
    fields = _NAMED.get(text.strip(), text).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(fields)} fields; a schedule has five")
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
        width = int(step) if slash else 1
        if not first <= begin <= end <= last or width < 1:
            raise ValueError(f"{part!r} is not within {first} and {last}")
        found.update(range(begin, end + 1, width))
    return tuple(sorted(found))


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    return int(text) if known is None else known


log = logging.getLogger(__name__)

_JOBS: Final = "jobs.batch"
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
        if owner["spec"].get("suspend"):
            return
        try:
            schedule = parse_schedule(owner["spec"]["schedule"])
            self._now(owner["spec"])
        except (ValueError, ZoneInfoNotFoundError) as error:
            log.warning("CronJob %s/%s: %s", key.namespace, key.name, error)
            return
        due = self._due(owner, schedule)
        if due is not None:
            self._run(key, owner, due)
        now = self._now(owner["spec"])
        later = schedule.next_after(now)
        if later is not None:
            self._queue.add_after(key, (later - now).total_seconds())

    def _now(self, spec: Plain) -> datetime:
        zone = ZoneInfo(spec["timeZone"]) if spec.get("timeZone") else UTC
        return datetime.fromtimestamp(self.server.now(), zone)

    def _due(self, owner: Plain, schedule: CronSchedule) -> datetime | None:
        """Return the last due time of the schedule that has no Job yet."""
        now = self._now(owner["spec"])
        last = owner.get("status", {}).get("lastScheduleTime")
        since = seconds_of(last or owner["metadata"]["creationTimestamp"])
        deadline = owner["spec"].get("startingDeadlineSeconds", _MISSED_SECONDS_MAX)
        since = max(since, now.timestamp() - deadline)
        found = None
        time = schedule.next_after(datetime.fromtimestamp(since, now.tzinfo))
        while time is not None and time <= now:
            found, time = time, schedule.next_after(time)
        return found

    def _run(self, key: Key, owner: Plain, due: datetime) -> None:
        spec = owner["spec"]
        policy = spec.get("concurrencyPolicy", "Allow")
        active = [job for job in self.owned_by(owner) if final_condition(job) is None]
        if active and policy == "Forbid":
            return
        if policy == "Replace":
            for job in active:
                self.delete_owned(job)
        name = f"{key.name}-{int(due.timestamp()) // _SECONDS_PER_MINUTE}"
        if self.server.find(_JOBS, key.namespace, name) is None:
            self.create_owned(owner, job_of(owner, name))
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
        status["active"] = [reference_to(job) for job in jobs if final_condition(job) is None]
        done = [one for job in jobs if (one := job.get("status", {}).get("completionTime"))]
        if done:
            status["lastSuccessfulTime"] = max(done)
        if not status["active"]:
            del status["active"]
        self.write_status(key, status)


def job_of(cron_job: Plain, name: str) -> Plain:
    """Return a Job of a CronJob."""
    template = cron_job["spec"]["jobTemplate"]
    return {"metadata": {**template.get("metadata", {}), "name": name}, "spec": template["spec"]}
