from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Node
from kubesched.snapshot.images import ImageStates
from kubesched.testing.builders import make_node

NODES = st.lists(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), max_size=3), st.integers(1, 9)), max_size=3
    ),
    max_size=5,
)


def node_with(name: str, images: list[tuple[list[str], int]]) -> Node:
    """A node with images of these names and sizes."""
    return make_node(
        name,
        status={"images": [{"names": names, "sizeBytes": size} for names, size in images]},
    )


def sizes_and_nodes(states: ImageStates) -> dict[str, tuple[int, list[str]]]:
    """The state of every image name."""
    found = {name: states.get(name) for name in "abc"}
    return {name: (s.size_bytes, sorted(s.nodes)) for name, s in found.items() if s is not None}


@given(NODES, st.data())
def test_removing_nodes_leaves_the_others(
    contents: list[list[tuple[list[str], int]]], data: st.DataObject
) -> None:
    """Each name has exactly the nodes that list it; the size is that of its first reporter."""
    nodes = [node_with(f"node-{at}", images) for at, images in enumerate(contents)]
    states = ImageStates()
    for node in nodes:
        states.add(node)
    expected: dict[str, tuple[int, list[str]]] = {}
    for node in nodes:
        for image in node.status.images:
            for name in image.names:
                _, listed = expected.setdefault(name, (image.size_bytes, []))
                if node.metadata.name not in listed:
                    listed.append(node.metadata.name)
    assert expected == sizes_and_nodes(states)
    assert len(nodes) == states.node_count

    gone = data.draw(st.lists(st.sampled_from(nodes), unique_by=id)) if nodes else []
    for node in gone:
        states.remove(node)
    names = {node.metadata.name for node in gone}
    left = {
        name: (size, [node for node in listed if node not in names])
        for name, (size, listed) in expected.items()
    }
    assert {name: state for name, state in left.items() if state[1]} == sizes_and_nodes(states)
    assert len(nodes) - len(gone) == states.node_count


def test_a_name_that_vanished_takes_the_size_of_its_next_reporter() -> None:
    """A name without nodes has no size."""
    states = ImageStates()
    first = node_with("first", [(["a"], 1)])
    states.add(first)
    states.remove(first)
    states.add(node_with("second", [(["a"], 2)]))
    assert {"a": (2, ["second"])} == sizes_and_nodes(states)
