"""Why a workload lacks pods that were never created: a quota, a limit range, another admission.

Reads:    the workload's condition ReplicaFailure, and its events FailedCreate, if files hold them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kubesched.answers.workload_pods import owns, replicas_of
from kubesched.api.apps import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.api.conditions import find_condition
from kubesched.api.core import CoreEvent, Pod, ReplicationController
from kubesched.api.meta import KubeObject
from kubesched.explain.sentences import count
from kubesched.inputs.pod_names import belongs_to, find_pod, workload_named

_Owner: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job


class LackedPods(NamedTuple):
    """Pods of a workload that were never created.

    Attributes:
        sentence: How many there are, and why not all.
        is_all: Whether the workload has no pods at all.
    """

    sentence: str
    is_all: bool


def pod_or_lack(
    text: str, objects: Sequence[KubeObject], preferred: str = "", *, only: bool = False
) -> tuple[Pod, tuple[str, ...]] | LackedPods:
    """Return a pod and notes on it; for a workload without pods, why it has none.

    The arguments are as for `find_pod`, which looks among the pods of `objects`.

    Raises:
        UserError: There is no such pod or workload, or there are several.
    """
    lacked = _lack(text, objects, preferred, only=only)
    if lacked is not None and lacked.is_all:
        return lacked
    pods = [one for one in objects if isinstance(one, Pod)]
    stored = ((type(one).__name__, one.metadata.name) for one in objects if isinstance(one, _Owner))
    found, notes = find_pod(text, pods, preferred, only=only, stored=stored)
    return found, notes if lacked is None else (*notes, lacked.sentence)


def _lack(
    text: str, objects: Sequence[KubeObject], preferred: str, *, only: bool
) -> LackedPods | None:
    """Return why the named workload lacks pods; the arguments are as for `find_pod`.

    None if the text names no workload among the objects, or one that has its pods.
    """
    item = _workload(text, objects, preferred, only=only)
    if item is None:
        return None
    kind, metadata = type(item).__name__, item.metadata
    pods = [
        one
        for one in objects
        if isinstance(one, Pod) and one.metadata.namespace == metadata.namespace
    ]
    sets = [one for one in objects if isinstance(one, ReplicaSet)]
    has = sum(owns(item, one, sets) for one in pods)
    has_any = has or any(belongs_to(one, kind, metadata.name) for one in pods)
    wanted = replicas_of(item)
    if isinstance(item, DaemonSet):
        wanted = item.status.desired_number_scheduled
    reason = _refusal(item, objects)
    if has_any and (has >= wanted or not reason or isinstance(item, Job)):
        return None
    if not wanted and not isinstance(item, DaemonSet):
        return LackedPods(f"{kind} {metadata.key} asks for no pods.", is_all=True)
    describe = f"`kubectl describe {kind.lower()} {metadata.name} -n {metadata.namespace}`"
    reason = reason or f"the input does not tell why; {describe} shows its events"
    number = f"{has} of {count(wanted, 'pod')}" if wanted else "no pods"
    return LackedPods(f"{kind} {metadata.key} has {number}: {reason}.", not has_any)


def _workload(
    text: str, objects: Sequence[KubeObject], preferred: str, *, only: bool
) -> _Owner | None:
    """Return the named workload; None if there is none, or several namespaces have one."""
    named = workload_named(text)
    found = [
        item
        for item in objects
        if isinstance(item, _Owner)
        and (type(item).__name__, item.metadata.name) == named
        and (not only or item.metadata.namespace == preferred)
    ]
    found = [item for item in found if item.metadata.namespace == preferred] or found
    return found[0] if len(found) == 1 else None


def _refusal(item: _Owner, objects: Sequence[KubeObject]) -> str:
    """Return the message of the API server that refuses the pods; "" if it is not known."""
    if isinstance(item, Deployment | ReplicaSet | ReplicationController):
        condition = find_condition(item.status.conditions, "ReplicaFailure")
        if condition is not None and condition.status == "True":
            return condition.message.rstrip(".")
    kind, metadata = type(item).__name__, item.metadata
    events = [
        one
        for one in objects
        if isinstance(one, CoreEvent)
        and one.reason == "FailedCreate"
        and (one.involved_object.kind, one.involved_object.name) == (kind, metadata.name)
        and one.involved_object.namespace == metadata.namespace
    ]
    newest = max(events, key=lambda one: one.last_timestamp or one.event_time or "", default=None)
    # "create Pod web-0 in StatefulSet web failed error: ..." names what is known.
    return newest.message.rpartition(" failed error: ")[2].rstrip(".") if newest else ""
