"""Strategic merge patches of statuses: the difference between the old and the wanted status.

Conditions are merged by type. The patch of a non-empty list also has the order of its elements; a
removed field is null.

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
    """A condition to set; time and generation follow from the object."""

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
        """A CamelCase word."""
        ...

    @property
    def message(self) -> str:
        """Text for people."""
        ...


class WantedGroupCondition(WantedCondition, Protocol):
    """A condition of a pod group to set; the time follows from the group."""

    @property
    def observed_generation(self) -> int:
        """The generation of the group that the condition is about."""
        ...


def pod_status_patch(
    pod: Pod, wanted: WantedCondition | None, nominated_node_name: str | None, now: str
) -> Plain:
    """Return the patch of a pod's status, empty if nothing changes.

    Args:
        pod: As last observed.
        wanted: A condition to set; None leaves the conditions alone.
        nominated_node_name: To set, "" to clear; None leaves it alone.
        now: The transition time of a condition whose status changes.
    """
    status = pod.status
    before = status.conditions
    after, is_changed = (before, False)
    if wanted is not None:
        after, is_changed = _with_pod_condition(before, wanted, pod.metadata.generation, now)
    is_nominated = nominated_node_name not in {None, status.nominated_node_name}
    if not is_changed and not is_nominated:
        return {}
    # The patch also has differences that alone would be no reason to write.
    patch = _conditions_patch(
        [_plain_pod_condition(one) for one in before], [_plain_pod_condition(one) for one in after]
    )
    if is_nominated:
        patch[_NOMINATED] = nominated_node_name or None
    return patch


def _with_pod_condition(
    conditions: tuple[PodCondition, ...], wanted: WantedCondition, generation: int, now: str
) -> tuple[tuple[PodCondition, ...], bool]:
    """Return the conditions with one set, and whether that must be written."""
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
    """Return the patch of a pod group's status, empty if nothing changes."""
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
    """Return the patch from one list to another that begins with the same types."""
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
    """Return fields that are new or different, and null for removed ones."""
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    return changed | dict.fromkeys(name for name in old if name not in new)
