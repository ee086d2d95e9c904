"""JobController runs the pods of each Job until enough of them have succeeded.

Upstream: pkg/controller/job (v1.36)
Differs:  deleted pods are not counted; indexed completion, deadlines, failure and success policies,
          and backoff are not supported.
"""

from __future__ import annotations

from kubesched.api.core import Pod
from kubesched.cluster.controllers.owner_controller import (
    BURST,
    PodsController,
    is_active,
    pod_of,
    ready_since,
    seconds_of,
)
from kubesched.cluster.server import Plain
from kubesched.cluster.store import Key


class JobController(PodsController):
    """Reconciles Jobs."""

    kind = "jobs.batch"
    owner_kind = "Job"

    def reconcile(self, key: Key, owner: Plain) -> None:
        """Create the pods that are needed, and update the Job's status."""
        ended = final_condition(owner)
        if ended is not None:
            self._expire(key, owner, ended)
            return
        pods = self.pods.of(owner)
        phases = [pod.status.phase for pod in pods]
        succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
        active = [pod for pod in pods if is_active(pod)]
        end = self._end_of(owner["spec"], succeeded, failed, len(active))
        try:
            if end is not None:
                for pod in active:
                    self.pods.delete(pod)
            else:
                self._run(key, owner, active, succeeded)
        finally:
            counts = {"succeeded": succeeded, "failed": failed}
            self._count(key, owner, counts, end)

    def _end_of(
        self, spec: Plain, succeeded: int, failed: int, active: int
    ) -> tuple[str, str, str] | None:
        """Return the final condition of a Job, with reason and message; None before its end."""
        if failed > spec.get("backoffLimit", 6):
            words = "Job has reached the specified backoff limit"
            return "Failed", "BackoffLimitExceeded", words
        completions = spec.get("completions")
        # Without completions, it is complete when one pod has succeeded and the others have ended.
        is_done = succeeded and not active if completions is None else succeeded >= completions
        if is_done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _run(self, key: Key, owner: Plain, active: list[Pod], succeeded: int) -> None:
        spec = owner["spec"]
        wanted = 0 if spec.get("suspend") else spec.get("parallelism", 1)
        completions = spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - succeeded)
        elif succeeded:
            # One success means that the work is done: no more pods are created.
            wanted = min(wanted, len(active))
        missing = wanted - len(active)
        pod = pod_of(spec["template"], owner["metadata"]["name"])
        for _ in range(min(missing, BURST)):
            self.pods.create(owner, pod)
        for one in active[::-1][: max(-missing, 0)][:BURST]:
            self.pods.delete(one)
        if abs(missing) > BURST:
            self._queue.add(key)

    def _count(
        self, key: Key, owner: Plain, counts: Plain, end: tuple[str, str, str] | None
    ) -> None:
        now = self.server.timestamp()
        status = {**owner.get("status", {}), **counts}
        active = [pod for pod in self.pods.of(owner) if is_active(pod)]
        status["active"] = len(active)
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
            self._queue.add_after(key, left)
        else:
            self.server.delete(key, owner["metadata"]["uid"])


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
