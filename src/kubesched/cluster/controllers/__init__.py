"""Controllers create pods for workloads and delete what has to go."""

from __future__ import annotations

from kubesched.cluster.controllers.controllers import Controllers

__all__ = ["Controllers"]
