"""NodeResourcesFit and NodeResourcesBalancedAllocation, with the formulas that score resources."""

from kubesched.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from kubesched.plugins.node_resources.fit import NodeResourcesFit

__all__ = ["NodeResourcesBalancedAllocation", "NodeResourcesFit"]
