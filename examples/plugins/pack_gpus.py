"""PackGpus: the fewer free GPUs a node has, the higher its score."""

import numpy as np
from numpy.typing import NDArray

from kubesched.framework import NodeTable, PodInfo, Scope, ScorePlugin, normalize_reversed

GPU = "nvidia.com/gpu"


class PackGpus(ScorePlugin[None]):
    """Fill nodes with GPUs one after another, and leave them alone if no GPU is needed."""

    name = "PackGpus"
    scope = Scope.ROW  # a node's answer depends on that node and on the pods there

    def sign(self, pod: PodInfo) -> tuple[()]:
        """Nothing of the pod is read, so all pods get the same answers."""
        return ()

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Count the free GPUs of all nodes at once."""
        return nodes.allocatable_of(GPU) - nodes.requested_of(GPU)

    def normalize_score(
        self, state: None, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Fewer free GPUs are better: 100 for none, 0 for the most."""
        return normalize_reversed(scores)
