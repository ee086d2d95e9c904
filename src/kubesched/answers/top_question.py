"""What is asked of top: rows, their order, and the room for a shape.

Rejects:  unknown labels and resources, and arguments that contradict each other.
"""

from __future__ import annotations

from typing import NamedTuple

from kubesched.answers.room import RoomPerNode, parse_pod_shape, room_for_shape, room_like
from kubesched.answers.top import BY_NAME, BY_ROOM, TopGroup, TopReport, pool_label_of, top
from kubesched.api.core import Pod
from kubesched.inputs.errors import UserError
from kubesched.inputs.near_names import near_names
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.utilisation import resource_names
from kubesched.snapshot.node_table import NodeTable


class TopQuestion(NamedTuple):
    """What is asked.

    Attributes:
        group: What the rows are.
        pool_label: The label that names pools; "" for a well-known one.
        sort_by: As written.
        room: The shape to count the room for, as written; None for none.
        room_like: The pod to count the room for, as `find_pod` takes it; None for none.
    """

    group: TopGroup
    pool_label: str
    sort_by: str
    room: str | None
    room_like: str | None


def ask_top(cluster: ClusterState, question: TopQuestion, like: Pod | None) -> TopReport:
    """Answer the question.

    Args:
        cluster: The cluster.
        question: The question.
        like: The pod that `room_like` names.

    Raises:
        UserError: A label or resource does not exist, or options contradict each other.
        PluginError: A plugin raised.
    """
    group = question.group
    shape = _check_options(question)
    nodes = cluster.cache.nodes
    label = _pool_label(nodes, question.pool_label) if group is TopGroup.POOLS else ""
    sort_by = question.sort_by
    if sort_by not in (BY_NAME, BY_ROOM):
        sort_by = _resource("--sort-by", sort_by, cluster)
    room: RoomPerNode | None = None
    if question.room is not None:
        shape = {_resource("--room", name, cluster): amount for name, amount in shape.items()}
        room = room_for_shape(nodes, shape, question.room)
    elif like is not None:
        try:
            room = room_like(cluster, like)
        except ValueError as error:
            raise UserError(f"--room-like {question.room_like}: {error}") from error
    return top(cluster, group, pool_label=label, sort_by=sort_by, room=room)


def _check_options(question: TopQuestion) -> dict[str, int]:
    """Return the shape; empty for none."""
    group = question.group
    flag = "--room" if question.room is not None else "--room-like"
    has_room = question.room is not None or question.room_like is not None
    if question.room is not None and question.room_like is not None:
        raise UserError("--room and --room-like are two shapes; leave out one")
    if has_room and not group.is_of_nodes:
        raise UserError(f"{flag} is for nodes, pools and zones; there is no room in {group}")
    if question.pool_label and group is not TopGroup.POOLS:
        raise UserError(f"--pool-label is for pools, and the rows are {group}; write top pools")
    if question.sort_by == BY_ROOM and not has_room:
        raise UserError("--sort-by room: no room is counted; add --room or --room-like")
    if question.room is None:
        return {}
    try:
        return parse_pod_shape(question.room)
    except ValueError as error:
        raise UserError(f"--room: {error}") from error


def _pool_label(nodes: NodeTable, given: str) -> str:
    label = given or pool_label_of(nodes)
    keys = {key: None for node in nodes.nodes for key in node.metadata.labels}
    if label in keys or not len(nodes):
        return label
    if not label:
        raise UserError("no node has a label that is known to name its pool; add --pool-label KEY")
    near = near_names(label, keys)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(keys)[:5])}"
    raise UserError(f"--pool-label {label}: no node has this label{hint}")


def _resource(flag: str, text: str, cluster: ClusterState) -> str:
    """Return a resource that a node has or a pod requests; `gpu` stands for `nvidia.com/gpu`.

    Raises:
        UserError: There is none of that name.
    """
    known = dict.fromkeys(resource_names(cluster.cache.nodes))
    for info in cluster.pending.values():
        known |= dict.fromkeys(info.template.requests)
    short = [name for name in known if name.rpartition("/")[2] == text]
    if text in known or len(short) == 1:
        return text if text in known else short[0]
    near = short or near_names(text, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise UserError(f"{flag} {text}: no node has and no pod requests it; {hint}")
