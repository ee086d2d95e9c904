"""Well-known labels, annotations and names that several components read or write.

Upstream: staging/src/k8s.io/api/core/v1/{well_known_labels,annotation_key_constants}.go,
          staging/src/k8s.io/component-helpers/storage/volume/helpers.go (v1.36)
Differs:  nothing.
"""

from collections.abc import Mapping
from typing import Final

# Labels of nodes.
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

# A label of ReplicaSets and their pods.
TEMPLATE_HASH: Final = "pod-template-hash"

# Claims and volumes.
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"

# A label of namespaces.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"

# Fields of affinities.
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

RBAC_GROUP: Final = "rbac.authorization.k8s.io"

SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
"""The values of the priority classes that every cluster has."""
