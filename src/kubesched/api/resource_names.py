"""Classification of resource names: native, extended, counted by the scheduler.

Upstream: pkg/apis/core/v1/helper/helpers.go, pkg/scheduler/util/utils.go (v1.36)
Differs:  nothing.
"""

from functools import lru_cache
from typing import Final

from kubesched.api.label_format import label_key_errors

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_HUGE_PAGES_PREFIX: Final = "hugepages-"
_ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
_QUOTA_PREFIX: Final = "requests."


def is_native_resource(name: str) -> bool:
    """Whether the name has no domain or one of kubernetes.io."""
    return "/" not in name or _NATIVE_DOMAIN in name


@lru_cache(maxsize=4096)
def is_extended_resource_name(name: str) -> bool:
    """Whether the name is that of an extended resource, such as `example.com/gpu`."""
    if is_native_resource(name) or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key_errors(_QUOTA_PREFIX + name)


def is_huge_page_resource_name(name: str) -> bool:
    """Whether the name is a size of huge pages, such as `hugepages-2Mi`."""
    return name.startswith(_HUGE_PAGES_PREFIX)


def is_measured_in_bytes(name: str) -> bool:
    """Whether the amounts of a resource are bytes: of memory, ephemeral storage or huge pages."""
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_huge_page_resource_name(name)


@lru_cache(maxsize=4096)
def is_scalar_resource_name(name: str) -> bool:
    """Whether the scheduler counts it in addition to cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended_resource_name(name)
        or is_huge_page_resource_name(name)
        or _NATIVE_DOMAIN in name
        or name.startswith(_ATTACHABLE_VOLUMES_PREFIX)
    )


def is_counted_resource_name(name: str) -> bool:
    """Whether the scheduler counts requests of this resource; it ignores all others."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource_name(name)
