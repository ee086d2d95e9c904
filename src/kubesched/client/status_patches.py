"""What has to be sent so that a status changes as wanted: the difference, as upstream computes it.

Conditions are merged by their type. A patch of a list that was not empty also says the order of all
its elements; a field that is not there any more is null.

Upstream: pkg/scheduler/util/utils.go, PatchPodStatus, PatchPodGroupStatus;
          pkg/api/v1/pod/util.go, UpdatePodCondition;
          staging/src/k8s.io/apimachinery/pkg/api/meta/conditions.go, SetStatusCondition;
          staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from kubesched.api.core import Pod, PodCondition
from kubesched.api.meta import Condition
from kubesched.api.scheduling import PodGroup

Plain = dict[str, Any]

_CONDITIONS: Final = "conditions"
_ORDER: Final = "$setElementOrder/conditions"
_NOMINATED: Final = "nominatedNodeName"


class WantedCondition(Protocol):
    """A condition to set; its time and its generation follow from the object."""

    @property
    def type(self) -> str:
        """Such as `PodScheduled`."""
        ...

    @property
    def status(self) -> str:
        """`True`, `False` or `Unknown`."""
        ...

    @property
    def reason(self) -> str:
        """One word."""
        ...

    @property
    def message(self) -> str:
        """For people."""
        ...


class WantedGroupCondition(WantedCondition, Protocol):
    """A condition of a pod group to set; its time follows from the group."""

    @property
    def observed_generation(self) -> int:
        """The generation of the group that was looked at."""
        ...


def pod_status_patch(
    pod: Pod, wanted: WantedCondition | None, nominated_node_name: str | None, now: str
) -> Plain:
    """Return the status that has to be sent, empty if nothing changes.

    Args:
        pod: As it is known.
        wanted: A condition to set; None leaves the conditions alone.
        nominated_node_name: To set, "" to clear; None leaves it alone.
        now: When a condition that changes its status did so.
    """
    status = pod.status
    before = status.conditions
    after, is_changed = (before, False)
    if wanted is not None:
        after, is_changed = _with_pod_condition(before, wanted, pod.metadata.generation, now)
    is_nominated = nominated_node_name not in {None, status.nominated_node_name}
    if not is_changed and not is_nominated:
        return {}
    # Once something changes, differences count that are no reason to write by themselves.
    patch = _conditions_patch(
        [_plain_pod_condition(one) for one in before], [_plain_pod_condition(one) for one in after]
    )
    if is_nominated:
        patch[_NOMINATED] = nominated_node_name or None
    return patch


def _with_pod_condition(
    conditions: tuple[PodCondition, ...], wanted: WantedCondition, generation: int, now: str
) -> tuple[tuple[PodCondition, ...], bool]:
    """Return the conditions with one set, and whether that is a change worth writing."""
    at, old = next(
        ((at, one) for at, one in enumerate(conditions) if one.type == wanted.type), (-1, None)
    )
    is_same_status = old is not None and old.status == wanted.status
    new = PodCondition(
        type=wanted.type,
        observed_generation=generation,
        status=wanted.status,
        last_transition_time=old.last_transition_time if old and is_same_status else now,
        reason=wanted.reason,
        message=wanted.message,
    )
    if old is None:
        return (*conditions, new), True
    # A new generation alone is no change.
    is_equal = (new.status, new.reason, new.message, new.last_probe_time) == (
        *(old.status, old.reason, old.message),
        old.last_probe_time,
    )
    return (*conditions[:at], new, *conditions[at + 1 :]), not is_equal


def _plain_pod_condition(condition: PodCondition) -> Plain:
    plain: Plain = {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": condition.last_transition_time,
    }
    optional = {
        "observedGeneration": condition.observed_generation,
        "reason": condition.reason,
        "message": condition.message,
    }
    return plain | {name: value for name, value in optional.items() if value}


def pod_group_status_patch(group: PodGroup, wanted: WantedGroupCondition, now: str) -> Plain:
    """Return the status that has to be sent, empty if nothing changes; as `pod_status_patch`."""
    before = group.status.conditions
    at, old = next(
        ((at, one) for at, one in enumerate(before) if one.type == wanted.type), (-1, None)
    )
    is_same_status = old is not None and old.status == wanted.status
    new = Condition(
        type=wanted.type,
        status=wanted.status,
        observed_generation=wanted.observed_generation,
        last_transition_time=old.last_transition_time if old and is_same_status else now,
        reason=wanted.reason,
        message=wanted.message,
    )
    after = (*before, new) if old is None else (*before[:at], new, *before[at + 1 :])
    return _conditions_patch(
        [_plain_condition(one) for one in before], [_plain_condition(one) for one in after]
    )


def _plain_condition(condition: Condition) -> Plain:
    plain: Plain = {
        "type": condition.type,
        "status": condition.status,
        "lastTransitionTime": condition.last_transition_time,
        "reason": condition.reason,
        "message": condition.message,
    }
    generation = condition.observed_generation
    return plain | ({"observedGeneration": generation} if generation else {})


def _conditions_patch(before: list[Plain], after: list[Plain]) -> Plain:
    """Return the difference of two lists; the second begins with the types of the first."""
    if not before:
        return {_CONDITIONS: after} if after else {}
    changed = []
    for old, new in zip(before, after, strict=False):
        difference = difference_of(old, new)
        if difference:
            changed.append(difference | {"type": new["type"]})
    changed += after[len(before) :]
    if not changed:
        return {}
    return {_ORDER: [{"type": one["type"]} for one in after], _CONDITIONS: changed}


def difference_of(old: Plain, new: Plain) -> Plain:
    """Return the fields that are new or different, and null for those that are gone."""
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    return changed | dict.fromkeys(name for name in old if name not in new)
