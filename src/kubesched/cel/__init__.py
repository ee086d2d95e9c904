"""Kubernetes' expression language (CEL), as far as device selectors use it.

A cluster without devices needs none of it: what others use is imported with its first use.
"""

from typing import TYPE_CHECKING

from kubesched.lazy import lazy_names

if TYPE_CHECKING:
    from kubesched.cel.device_selectors import (
        DeviceSelectorError,
        DeviceVariables,
        compile_selector,
        device_variables,
    )

__all__ = ["DeviceSelectorError", "DeviceVariables", "compile_selector", "device_variables"]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "kubesched.cel.device_selectors"))
