"""ImageLocality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node, Pod
from kubesched.plugins.image_locality import ImageLocality
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import Json, make_node, make_pod, make_table
from kubesched.testing.handle import FakeHandle

MIB = 1 << 20
IMAGES = ("a:latest", "b:1", "c:latest", "d@sha256:0", "host:5000/e:latest")
NAMES = ("a", "b:1", "c:latest", "d@sha256:0", "host:5000/e", "missing")


def _pod(images: Sequence[str], init: Sequence[str] = (), volumes: Sequence[str] = ()) -> Pod:
    return make_pod(
        containers=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)],
        init_containers=[{"name": f"i{i}", "image": image} for i, image in enumerate(init)],
        volumes=[
            {"name": f"v{i}", "image": {"reference": image}} for i, image in enumerate(volumes)
        ],
    )


def _scores(pod: Pod, nodes: Sequence[Node]) -> list[int]:
    scores = ImageLocality(None, FakeHandle()).score(None, PodInfo(pod), make_table(nodes))
    return list(map(int, scores))


def _twin(pod: Pod, nodes: Sequence[Node]) -> list[int]:
    """Score node by node, from the definition."""
    sizes: dict[str, int] = {}
    holders: dict[str, set[str]] = {}
    for node in nodes:
        for image in node.status.images:
            for name in image.names:
                sizes.setdefault(name, image.size_bytes)
                holders.setdefault(name, set()).add(node.metadata.name)
    wanted = [c.image for c in (*pod.spec.init_containers, *pod.spec.containers)]
    count = len(wanted)
    wanted += [v.image.reference for v in pod.spec.volumes if v.image is not None]
    scores = []
    for node in nodes:
        total = 0
        for asked in wanted:
            name = asked if ":" in asked.rsplit("/", 1)[-1] else asked + ":latest"
            if node.metadata.name in holders.get(name, set()):
                total += int(float(sizes[name]) * (len(holders[name]) / len(nodes)))
        total = min(max(total, 23 * MIB), 1000 * MIB * count)
        scores.append(100 * (total - 23 * MIB) // (1000 * MIB * count - 23 * MIB))
    return scores


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param([{"a:latest": 250 * MIB}, {}], [5, 0], id="one image on one of two nodes"),
        pytest.param(
            [{"a:latest": 40 * MIB, "b:1": 300 * MIB}, {}], [7, 0], id="both images on one node"
        ),
        pytest.param(
            [{"a:latest": 4000 * MIB}, {"x": 4000 * MIB}, {}], [66, 0, 0], id="a huge image"
        ),
        pytest.param([{"a:latest": 9000 * MIB}], [100], id="at most 100"),
        pytest.param([{"a:latest": 10 * MIB}], [0], id="small images do not count"),
    ],
)
def test_two_containers(held: Sequence[dict[str, int]], expected: list[int]) -> None:
    """The score is the size times the share of nodes that have the image."""
    nodes = [make_node(f"n{i}", images=images) for i, images in enumerate(held)]
    assert expected == _scores(_pod(["a", "b:1"]), nodes)


@pytest.mark.parametrize(
    ("image", "listed"),
    [
        pytest.param("busybox", "busybox:latest", id="no tag"),
        pytest.param("busybox:1", "busybox:1", id="tag"),
        pytest.param("host:5000/busybox", "host:5000/busybox:latest", id="port, no tag"),
        pytest.param("host:5000/busybox:1", "host:5000/busybox:1", id="port and tag"),
        pytest.param("host/busybox@sha256:ab", "host/busybox@sha256:ab", id="digest"),
    ],
)
def test_names_are_normalized(image: str, listed: str) -> None:
    """A name without tag and digest means its latest tag."""
    assert [48] == _scores(_pod([image]), [make_node(images={listed: 500 * MIB})])


def test_image_volumes_count_without_raising_the_limit() -> None:
    """The image of a volume adds its size; only containers raise the upper bound."""
    nodes = [make_node(images={"a:latest": 300 * MIB})]
    assert [28] == _scores(_pod(["missing"], volumes=["a"]), nodes)
    assert [14] == _scores(_pod(["missing"], init=["missing"], volumes=["a"]), nodes)


def test_signature_tells_pods_apart() -> None:
    """Images, their numbers and the number of containers matter; their order does not."""
    plugin = ImageLocality(None, FakeHandle())
    pods = [_pod(["a", "b"]), _pod(["b", "a:latest"]), _pod(["a"], volumes=["b"]), _pod(["a"])]
    first, second, third, fourth = (plugin.sign(PodInfo(pod)) for pod in pods)
    assert first == second
    assert len({first, third, fourth}) == 3


_CLUSTER = st.lists(
    st.dictionaries(st.sampled_from(IMAGES), st.integers(0, 3000).map(lambda mib: mib * MIB + 7)),
    min_size=1,
    max_size=6,
)


@given(
    _CLUSTER,
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
    st.lists(st.sampled_from(NAMES), max_size=2),
    st.lists(st.sampled_from(NAMES), max_size=2),
)
def test_scores_equal_the_twin(
    cluster: list[Json], images: list[str], init: list[str], volumes: list[str]
) -> None:
    """All rows at once and each row by itself get the twin's score."""
    nodes = [make_node(f"n{i}", images=held) for i, held in enumerate(cluster)]  # type: ignore[arg-type]  # sizes
    pod = _pod(images, init, volumes)
    expected = _twin(pod, nodes)
    assert expected == _scores(pod, nodes)
    table, plugin = make_table(nodes), ImageLocality(None, FakeHandle())
    ones = [table.take(np.array([row])) for row in range(len(nodes))]
    assert expected == [int(plugin.score(None, PodInfo(pod), one)[0]) for one in ones]
