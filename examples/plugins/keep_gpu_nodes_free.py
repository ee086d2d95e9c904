"""KeepGpuNodesFree: nodes with GPUs are for pods that ask for one."""

from kubesched.framework import SUCCESS, NodeRow, PerRowFilter, PodInfo, Status, unresolvable

GPU = "nvidia.com/gpu"


class KeepGpuNodesFree(PerRowFilter[None]):
    """Reject a node with GPUs for a pod without."""

    name = "KeepGpuNodesFree"

    def filter_node(self, state: None, pod: PodInfo, node: NodeRow) -> Status:
        """Look at one node."""
        if node.allocatable(GPU) > 0 and not pod.template.requests.get(GPU):
            return unresolvable("node(s) were kept free for pods that ask for a GPU")
        return SUCCESS
