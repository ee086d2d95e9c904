"""Services: what plugins use of the scheduler besides the snapshot of each call.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go, Handle;
          pkg/scheduler/framework/plugins/volumebinding/binder.go, bindAPIUpdate;
          pkg/scheduler/metrics/metrics.go, the metrics that plugins write themselves;
          pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go (v1.36)
Differs:  one immutable value, passed to a profile when it is built, with only the calls that
          plugins make.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.resource import ResourceClaim
from kubesched.api.volume import PersistentVolume, PersistentVolumeClaim
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.dra.claim_tracker import ClaimTracker
from kubesched.framework.plugin_error import ReportPluginError, log_plugin_error
from kubesched.framework.pod_groups import PodGroupStates
from kubesched.framework.status import Status, failure
from kubesched.framework.waiting_pods import WaitingPods
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo


class ClaimWriter(Protocol):
    """Writes ResourceClaims and the pod status field for extended resource claims.

    The objects hold only the fields that scheduling reads, so an implementation must write only
    the named fields. `metadata.resourceVersion` guards against lost updates.
    The async methods raise ApiError. Methods called `..._soon` only start a write in the
    background, and never raise.
    """

    def now(self) -> str:
        """Return the current time in RFC 3339 format."""

    def announce_wait(self, pod: Pod, node_name: str) -> None:
        """Emit the pod's event `BindingConditionsPending`."""

    def deallocate_soon(self, claim: ResourceClaim) -> None:
        """Start to write the status of this claim, which has no allocation."""

    def delete_soon(self, claim: ResourceClaim) -> None:
        """Start to remove the scheduler's finalizer from the claim and to delete it."""

    def release_soon(self, claim: ResourceClaim, pod: Pod) -> None:
        """Start to remove the pod from the claim's `status.reservedFor`."""

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        """Return the claim's newest version."""

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim, with a generated name; return the stored claim."""

    async def update(self, claim: ResourceClaim) -> ResourceClaim:
        """Update `metadata.finalizers`; return the stored claim."""

    async def update_status(self, claim: ResourceClaim) -> ResourceClaim:
        """Update the status; return the stored claim."""

    async def patch_extended_resource_claim_status(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Set `status.extendedResourceClaimStatus` of the pod."""


class VolumeWriter(Protocol):
    """Writes volumes and claims for VolumeBinding.

    The objects hold only the fields that scheduling reads, so an implementation must write only
    the named fields. `metadata.resourceVersion` guards against lost updates.
    The async methods raise ApiError.
    """

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write `spec.claimRef` and the annotations; return the stored object."""

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        """Write the annotations; return the stored object."""

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the pod exists, according to the informer cache."""


class BindingConditionsStatus(StrEnum):
    """The result of waiting for a pod's devices."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class VolumeSchedulingStage(StrEnum):
    """A step of volume scheduling."""

    PREDICATE = "predicate"
    ASSUME = "assume"
    BIND = "bind"


class PluginObserver:
    """Receives metrics of one profile's plugins; does nothing unless a method is overridden."""

    def resource_claim_create_requested(self, *, is_success: bool) -> None:
        """Handle the creation, or failed creation, of a claim for extended resources."""

    def binding_conditions_awaited(
        self, driver: str, status: BindingConditionsStatus, seconds: float
    ) -> None:
        """Handle the end of a pod's wait; called for each device of its claims."""

    def binding_conditions_used(self, driver: str, status: BindingConditionsStatus) -> None:
        """Handle the end of a pod's wait; called for each device with binding conditions."""

    def volume_scheduling_failed(self, stage: VolumeSchedulingStage) -> None:
        """Handle an error in a step of volume scheduling; a rejected node is not an error."""


async def _refuse(pod: Pod, node_name: str) -> Status:
    return failure("there is no API to bind through")


def _ignore(pods: Sequence[PodInfo]) -> None:
    """Do nothing, because there is no queue."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The services of one scheduler; the defaults suit one without a queue and an API server.

    Attributes:
        objects: The cluster's objects other than nodes and pods.
        waiting_pods: The pods that wait for Permit plugins.
        pod_group_states: The members of pod groups.
        claim_tracker: The allocated devices, including pending allocations.
        is_preempting: Whether the preemption for the pod or group with a uid is in progress.
        bind: Creates a pod's Binding; a failure has the API server's message.
        claim_writer, volume_writer: Write claims and volumes; None without an API server.
        activate: Moves pods to the active queue.
        observer: Receives the plugins' own metrics.
        report_plugin_error: Receives every exception that a plugin raises.
        now: The clock in seconds by which slow plugins are named.
    """

    objects: Objects = msgspec.field(default_factory=Objects)
    waiting_pods: WaitingPods = msgspec.field(default_factory=WaitingPods)
    pod_group_states: PodGroupStates = msgspec.field(default_factory=PodGroupStates)
    claim_tracker: ClaimTracker = msgspec.field(default_factory=ClaimTracker)
    is_preempting: Callable[[str], bool] = lambda _uid: False
    bind: Callable[[Pod, str], Coroutine[Any, Any, Status]] = _refuse
    claim_writer: ClaimWriter | None = None
    volume_writer: VolumeWriter | None = None
    activate: Callable[[Sequence[PodInfo]], None] = _ignore
    observer: PluginObserver = msgspec.field(default_factory=PluginObserver)
    report_plugin_error: ReportPluginError = log_plugin_error
    now: Callable[[], float] = float


def services_for(feature_gates: FeatureGates, objects: Objects | None = None) -> Services:
    """Return the services of a scheduler without a queue and an API."""
    consumable = feature_gates.enabled("DRAConsumableCapacity")
    tracker = ClaimTracker(consumable_capacity=consumable)
    return Services(objects=Objects() if objects is None else objects, claim_tracker=tracker)
