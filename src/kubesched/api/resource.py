"""The resource.k8s.io/v1 kinds: devices, and the claims that allocate them.

Upstream: staging/src/k8s.io/api/resource/v1/types.go (v1.36)
Differs:  network data of allocated devices is not read.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec import field
from msgspec.structs import replace

from kubesched.api.core import Taint, Toleration
from kubesched.api.integers import Int64
from kubesched.api.meta import Condition, KubeObject, KubeStruct, NodeSelector, ObjectMeta
from kubesched.api.quantity import Quantity

ALLOCATION_RESULTS_MAX = 32
FIRST_AVAILABLE_MAX = 8

FINALIZER = "resource.kubernetes.io/delete-protection"
IMPLICIT_EXTENDED_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"

EXACT_COUNT = "ExactCount"
ALL = "All"


class Counter(KubeStruct):
    """One counter of a counter set, or the part of it that a device consumes."""

    value: Quantity = "0"


class CounterSet(KubeStruct):
    """A named set of counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class ResourcePool(KubeStruct):
    """The pool a slice belongs to; only slices of the highest generation count."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class DeviceCounterConsumption(KubeStruct):
    """What a device consumes of one counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class CapacityRequestPolicyRange(KubeStruct):
    """Amounts that may be consumed: from min to max in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(KubeStruct):
    """How much of a capacity a request consumes."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(KubeStruct):
    """A capacity of a device, and the policy for consuming it."""

    value: Quantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class DeviceAttribute(KubeStruct):
    """One attribute of a device; exactly one field is set."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[Int64, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")


class DeviceTaint(Taint):
    """A taint of a device."""


class Device(KubeStruct):
    """One device of a slice. Attribute and capacity names without a domain are the driver's."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(KubeStruct):
    """The devices, or the shared counters, that a driver publishes in one slice of a pool."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject):
    """A part of a driver's pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(KubeStruct):
    """The devices that a rule taints; absent fields match all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeStruct):
    """A taint and the devices to which it applies."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject):
    """A taint that an administrator or a controller puts on devices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class CELDeviceSelector(KubeStruct):
    """A CEL expression on one device."""

    expression: str = ""


class DeviceSelector(KubeStruct):
    """One condition on a device; without `cel`, its kind is unknown."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Toleration):
    """A toleration of device taints."""


class CapacityRequirements(KubeStruct):
    """The capacities that a request consumes of each of its devices."""

    requests: dict[str, Quantity] = {}


class DevicesOfClass(KubeStruct):
    """Devices of one class: which ones, and how many."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(DevicesOfClass):
    """A request that has no alternatives."""

    admin_access: bool | None = None


class DeviceSubRequest(DevicesOfClass):
    """One alternative of a prioritized list."""

    name: str = ""


class DeviceRequest(KubeStruct):
    """One named request of a claim: exactly this, or the first of these that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(KubeStruct):
    """A condition on the devices of several requests together (of all if none is named)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(KubeStruct):
    """Parameters that only the driver understands."""

    driver: str = ""
    parameters: Any = None


class DeviceClaimConfiguration(KubeStruct):
    """Configuration for the devices of some requests (of all if none is named)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(KubeStruct):
    """The requests of a claim, with constraints and configuration."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(KubeStruct):
    """The desired devices; immutable."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaimConsumerReference(KubeStruct):
    """A user of an allocated claim; usually a Pod, without API group and with resource `pods`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceRequestAllocationResult(KubeStruct):
    """A device, or a share of one, allocated to a request (`request` or `request/subrequest`)."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}


class DeviceAllocationConfiguration(KubeStruct):
    """Configuration that goes with an allocation, from the class or from the claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(KubeStruct):
    """The devices of an allocation."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(KubeStruct):
    """The allocated devices, and the nodes that can use them (None means all)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class AllocatedDeviceStatus(KubeStruct):
    """What a driver reports about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Any = None


class ResourceClaimStatus(KubeStruct):
    """The allocation and the users of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeObject):
    """A request for devices, which pods of its namespace reference by name."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    def without_users(self, uids: Container[str]) -> ResourceClaim:
        """Return the claim without these pods; with the last one, its devices are released."""
        users = self.status.reserved_for
        left = tuple(user for user in users if user.uid not in uids)
        if len(left) == len(users):
            return self
        allocation = self.status.allocation if left else None
        return replace(self, status=replace(self.status, reserved_for=left, allocation=allocation))


class ResourceClaimTemplateSpec(KubeStruct):
    """Metadata and spec of the claims that are created from the template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject):
    """A template from which one claim per pod is created."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(KubeStruct):
    """Configuration for every device allocated by the class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(KubeStruct):
    """The devices of the class, and the extended resource that it provides (None if none)."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    """A class of devices, which requests reference by name."""

    spec: DeviceClassSpec = DeviceClassSpec()
