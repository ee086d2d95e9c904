"""DynamicResources: devices for pods."""

from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResources

__all__ = ["DynamicResources"]
