"""The policy/v1 kinds: disruption budgets.

Upstream: staging/src/k8s.io/api/policy/v1/types.go (v1.36)
Differs:  nothing.
"""

from typing import Annotated

import msgspec

from kubesched.api.integers import Int32, Int64
from kubesched.api.meta import Condition, KubeObject, KubeStruct, LabelSelector

Percentage = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+%$")]


class PodDisruptionBudgetSpec(KubeStruct):
    """The pods, and how many of them (a number or percentage) must stay available."""

    min_available: Int32 | Percentage | None = None
    max_unavailable: Int32 | Percentage | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(KubeStruct):
    """How many pods may be disrupted now; `disrupted_pods` is name -> time of eviction."""

    observed_generation: Int64 = 0
    disrupted_pods: dict[str, str | None] = {}
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(KubeObject):
    """A limit on voluntary disruptions."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
