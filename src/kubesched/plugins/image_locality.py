"""ImageLocality: prefer nodes that already have the pod's images, especially large ones.

Upstream: pkg/scheduler/framework/plugins/imagelocality (v1.36)
Reads:    images of containers, init containers and image volumes; nodes.images
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kubesched.api.integers import truncate
from kubesched.framework.plugin import NODE_SCORE_MAX, Scope, ScorePlugin
from kubesched.snapshot.images import ImageState
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_MIB: Final = 1024 * 1024
_BYTES_MIN: Final = 23 * _MIB
_BYTES_MAX_PER_CONTAINER: Final = 1000 * _MIB


class ImageLocality(ScorePlugin[None]):
    """Score by the size of the images present, weighted by the share of nodes that have them."""

    name: ClassVar = "ImageLocality"
    # The weight of an image depends on how many of all nodes have it.
    scope: ClassVar = Scope.NODES
    signs_base: ClassVar = True

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the images with repetitions, and the number of containers."""
        return (tuple(sorted(_images_of(pod))), len(pod.containers))

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return 0 to 100 per row, by the bytes of the images present."""
        there = np.zeros(len(nodes), np.int64)
        for name in _images_of(pod):
            image = nodes.images.get(name)
            if image is not None:
                there[_rows_with(image, nodes)] += _weighed_bytes(image, nodes.images.node_count)
        bytes_max = _BYTES_MAX_PER_CONTAINER * len(pod.containers)
        # Upstream checks the lower bound first; without containers the upper one is below it.
        clamped = np.where(there < _BYTES_MIN, _BYTES_MIN, np.minimum(there, bytes_max))
        return NODE_SCORE_MAX * (clamped - _BYTES_MIN) // (bytes_max - _BYTES_MIN)


def _images_of(pod: PodInfo) -> Iterator[str]:
    for container in pod.containers:
        yield normalized_image_name(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield normalized_image_name(volume.image.reference)


def normalized_image_name(name: str) -> str:
    """Return the image name, with `:latest` if it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _rows_with(image: ImageState, nodes: NodeTable) -> list[int] | slice:
    if len(image.nodes) == nodes.images.node_count:
        return slice(None)
    if len(nodes) <= len(image.nodes):
        return [row for row, name in enumerate(nodes.names) if name in image.nodes]
    rows = [nodes.row_of.get(name) for name in image.nodes]
    return [row for row in rows if row is not None]


def _weighed_bytes(image: ImageState, node_count: int) -> int:
    """Return the image's size times the share of all nodes that hold it."""
    return truncate(float(image.size_bytes) * (len(image.nodes) / node_count))
