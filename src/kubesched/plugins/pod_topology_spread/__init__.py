"""PodTopologySpread: the plugin, its arguments, constraints, counts and scores."""

from kubesched.plugins.pod_topology_spread.pod_topology_spread import PodTopologySpread

__all__ = ["PodTopologySpread"]
