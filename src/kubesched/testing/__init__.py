"""For tests: clusters in the test's process, and builders and fakes for authors of plugins."""

from typing import TYPE_CHECKING

from kubesched.lazy import lazy_names

if TYPE_CHECKING:
    from kubesched.api.errors import ApiError
    from kubesched.testing.builders import (
        all_rows,
        make_node,
        make_pod,
        make_pod_info,
        make_snapshot,
        make_table,
    )
    from kubesched.testing.handle import FakeHandle
    from kubesched.testing.sandbox_cluster import SandboxCluster

__all__ = [
    "ApiError",
    "FakeHandle",
    "SandboxCluster",
    "all_rows",
    "make_node",
    "make_pod",
    "make_pod_info",
    "make_snapshot",
    "make_table",
]

_BUILDERS = [name for name in __all__ if name.islower()]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(_BUILDERS, "kubesched.testing.builders"),
        "ApiError": "kubesched.api.errors",
        "FakeHandle": "kubesched.testing.handle",
        "SandboxCluster": "kubesched.testing.sandbox_cluster",
    },
)


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return __all__
