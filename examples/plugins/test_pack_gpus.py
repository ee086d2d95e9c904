"""Tests of PackGpus."""

import numpy as np
from pack_gpus import PackGpus

from kubesched.testing import FakeHandle, make_node, make_pod, make_pod_info, make_table

GPUS = {"nvidia.com/gpu": "4"}


def test_nodes_with_fewer_free_gpus_are_better() -> None:
    """A node without GPUs is best, then the fuller ones."""
    running = make_pod("train", node_name="half", requests={"nvidia.com/gpu": "2"})
    table = make_table(
        [
            make_node("none"),
            make_node("half", allocatable=GPUS),
            make_node("free", allocatable=GPUS),
        ],
        [running],
    )
    plugin, pod = PackGpus(None, FakeHandle()), make_pod_info("web")
    free = plugin.score(None, pod, table)
    scores = plugin.normalize_score(None, pod, free, np.arange(3))
    assert [0, 2, 4] == free.tolist()
    assert [100, 50, 0] == scores.tolist()
