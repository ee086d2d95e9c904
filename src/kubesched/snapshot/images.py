"""ImageStates lists the images on nodes, with their sizes and the nodes that have them.

Upstream: pkg/scheduler/backend/cache/cache.go, addNodeImageStates (v1.36)
Reads:    node.status.images
Differs:  where nodes report different sizes of an image, that of the first node counts, which is
          the first of the list here; upstream adds the nodes of a list in map order. The number
          of nodes that have an image is that of now; upstream's snapshot of a node keeps the one
          from when that node or its pods last changed.
"""

from __future__ import annotations

import msgspec

from kubesched.api.core import Node


class ImageState(msgspec.Struct, gc=False):
    """One image name: its size as the first node reported it, and the names of its nodes."""

    size_bytes: int
    nodes: dict[str, None]


class ImageStates:
    """Image name -> state, over all nodes of a table, whose number is `node_count`."""

    def __init__(self) -> None:
        self.node_count = 0
        self._states: dict[str, ImageState] = {}

    def get(self, name: str) -> ImageState | None:
        """Return the state of an image name, None if no node lists it."""
        return self._states.get(name)

    def add(self, node: Node) -> None:
        """Add a node with its images."""
        self.node_count += 1
        for image in node.status.images:
            for name in image.names:
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = ImageState(image.size_bytes, {})
                state.nodes[node.metadata.name] = None

    def remove(self, node: Node) -> None:
        """Remove a node with its images."""
        self.node_count -= 1
        for image in node.status.images:
            for name in image.names:
                state = self._states.get(name)
                if state is None:
                    continue  # the node lists the name twice
                state.nodes.pop(node.metadata.name, None)
                if not state.nodes:
                    del self._states[name]
