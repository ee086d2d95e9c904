"""Controllers: they create pods for workloads, and delete objects that have no owner or node."""

from __future__ import annotations

from kubesched.cluster.controllers.controllers import Controllers

__all__ = ["Controllers"]
