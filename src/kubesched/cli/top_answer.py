"""The work of `kubesched top`: load the cluster, count the room, add up requests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kubesched.answers.room import RoomPerNode, parse_pod_shape, room_for_shape, room_like
from kubesched.answers.top import BY_NAME, BY_ROOM, TopGroup, TopReport, pool_label_of, top
from kubesched.api.core import Pod
from kubesched.cli.errors import write_warnings
from kubesched.inputs.cluster_input import read_cluster
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import load_scheduler, new_cluster, with_scheduler_name
from kubesched.inputs.near_names import near_names
from kubesched.inputs.pod_names import find_pod
from kubesched.inputs.sources import ClusterSource, SchedulerOptions
from kubesched.simulator.cluster import ClusterState
from kubesched.simulator.exhaustive import exhaustive
from kubesched.simulator.utilisation import resource_names
from kubesched.snapshot.node_table import NodeTable

_GROUPS = tuple(str(group) for group in TopGroup)


class TopQuestion(NamedTuple):
    """What is asked.

    Attributes:
        group: What the rows are; None for nodes.
        pool_label: The label that names pools; "" for a well-known one.
        sort_by: As written.
        shape: The shape to count the room for, as written; None for none.
        like: The pod to count the room for, as `find_pod` takes it; None for none.
    """

    group: TopGroup | None
    pool_label: str
    sort_by: str
    shape: str | None
    like: str | None


def group_named(text: str | None) -> TopGroup | None:
    """Return the group of that name; None if it is the name of a file, or nothing.

    Raises:
        UserError: It is neither.
    """
    if text in _GROUPS:
        return TopGroup(text)
    if text and not Path(text).exists() and (near := near_names(text, _GROUPS)):
        raise UserError(f"{text}: there is no such file; did you mean {near[0]}?")
    return None


def add_up(options: SchedulerOptions, source: ClusterSource, question: TopQuestion) -> TopReport:
    """Answer the question.

    Raises:
        UserError: A label, resource or pod does not exist, or options contradict each other.
        DecodeError, ConfigError, SetupError: A file cannot be used.
        PluginError: A plugin raised.
    """
    group = question.group or TopGroup.NODES
    shape = _check_options(question, group)
    scheduler = load_scheduler(options)
    given = read_cluster(source)
    write_warnings(given.warnings)
    scheduler = scheduler._replace(configuration=exhaustive(scheduler.configuration))
    cluster = new_cluster(scheduler, options)
    cluster.load(given.objects)
    cluster.declare_complete(given.complete)
    nodes = cluster.cache.nodes
    label = _pool_label(nodes, question.pool_label) if group is TopGroup.POOLS else ""
    sort_by = question.sort_by
    if sort_by not in (BY_NAME, BY_ROOM):
        sort_by = _resource("--sort-by", sort_by, cluster)
    room: RoomPerNode | None = None
    if question.shape is not None:
        shape = {_resource("--room", name, cluster): amount for name, amount in shape.items()}
        room = room_for_shape(nodes, shape, question.shape)
    elif question.like is not None:
        pods = [item for item in given.objects if isinstance(item, Pod)]
        pod, _ = find_pod(question.like, pods, given.namespace)
        try:
            room = room_like(cluster, with_scheduler_name(pod, options.profile))
        except ValueError as error:
            raise UserError(f"--room-like {question.like}: {error}") from error
    return top(cluster, group, pool_label=label, sort_by=sort_by, room=room)


def _check_options(question: TopQuestion, group: TopGroup) -> dict[str, int]:
    """Return the shape; empty for none."""
    flag = "--room" if question.shape is not None else "--room-like"
    has_room = question.shape is not None or question.like is not None
    if question.shape is not None and question.like is not None:
        raise UserError("--room and --room-like are two shapes; leave out one")
    if has_room and not group.is_of_nodes:
        raise UserError(f"{flag} is for nodes, pools and zones; there is no room in {group}")
    if question.pool_label and group is not TopGroup.POOLS:
        raise UserError(f"--pool-label is for pools, and the rows are {group}; write top pools")
    if question.sort_by == BY_ROOM and not has_room:
        raise UserError("--sort-by room: no room is counted; add --room or --room-like")
    if question.shape is None:
        return {}
    try:
        return parse_pod_shape(question.shape)
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
