"""The scheduling.k8s.io kinds: priorities, and pods that are scheduled together.

Upstream: staging/src/k8s.io/api/scheduling/v1 and v1alpha2, types.go (v1.36)
Differs:  of workloads no field is read.
"""

from kubesched.api.core import PodResourceClaim, PodResourceClaimStatus
from kubesched.api.integers import Int32
from kubesched.api.meta import Condition, KubeObject, KubeStruct


class PriorityClass(KubeObject):
    """A name for a priority."""

    value: Int32 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class BasicSchedulingPolicy(KubeStruct):
    """Pods of the group are scheduled one by one."""


class GangSchedulingPolicy(KubeStruct):
    """At least `min_count` pods are scheduled, or none."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(KubeStruct):
    """Exactly one of the two."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(KubeStruct):
    """All pods of the group must be in one domain of this node label."""

    key: str = ""


class PodGroupSchedulingConstraints(KubeStruct):
    """Constraints on the placement of a group's pods relative to each other."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(PodResourceClaim):
    """A resource claim that the group's pods share."""


class PodGroupSpec(KubeStruct):
    """How the pods of a group are scheduled."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupResourceClaimStatus(PodResourceClaimStatus):
    """The claim that was created from a template."""


class PodGroupStatus(KubeStruct):
    """The observed state of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(KubeObject):
    """Pods that are scheduled together."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class Workload(KubeObject):
    """An application that consists of pod groups."""
