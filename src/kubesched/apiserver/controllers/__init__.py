"""Controllers make of objects what people expect of them: pods of workloads, an orderly end."""

from __future__ import annotations

from kubesched.apiserver.controllers.controllers import Controllers

__all__ = ["Controllers"]
