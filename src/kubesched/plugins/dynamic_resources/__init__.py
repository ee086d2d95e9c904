"""DynamicResources: allocates devices to the resource claims of pods."""

from kubesched.plugins.dynamic_resources.dynamic_resources import DynamicResources

__all__ = ["DynamicResources"]
