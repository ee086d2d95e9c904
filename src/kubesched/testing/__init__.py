"""For tests: clusters in the test's process, and builders and fakes for authors of plugins."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.testing.sandbox_cluster import SandboxCluster

__all__ = ["SandboxCluster"]


def __getattr__(name: str) -> Any:
    """Import the cluster when it is first used: builders need no server."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kubesched.testing.sandbox_cluster"), name)
