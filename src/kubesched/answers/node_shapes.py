"""Nodes that could be added: their shapes, and how many of them are missing so that pods fit.

A shape is written in one line, or taken from a node. Of several shapes, the cheapest mix is found.
The pods wait in the settled cluster; nodes are added, empty but for the pods of DaemonSets, and the
scheduler tries again. The nodes that are returned were tried. Of one shape, one node fewer was
tried too; of several, every cheaper mix whose nodes are large enough for the pods' requests.

Rejects:  shapes without cpu and memory, unknown words, quantities and taints that cannot be parsed;
          several of one name, or of which only some have a price.
Differs:  if more than a hundred trials are needed, fewer for thousands of pods, the mix is chosen
          step by step, and the report says so.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from kubesched.answers.pod_outcomes import PodOutcomeNow, PodOutcomes, PodsWithoutNode, grouped
from kubesched.answers.trial_cluster import TrialCluster, names_of
from kubesched.api.core import Node, NodeSpec, NodeStatus, Taint
from kubesched.api.decode import load
from kubesched.api.meta import ObjectMeta
from kubesched.api.names import PODS, is_counted_resource_name, label_key_errors, label_value_errors
from kubesched.api.quantity import parse_quantity, resource_values
from kubesched.api.tolerations import EFFECTS
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.cluster.nodes import STATE_TAINTS
from kubesched.explain.document import DocumentPart
from kubesched.inputs.errors import UserError
from kubesched.inputs.loading import distinct_objects
from kubesched.snapshot.pod_info import PodInfo

RESOURCES: Final = "cpu, memory, pods, ephemeral-storage, hugepages-SIZE, a resource with a domain"
_PODS: Final = "110"
_OWN_LABELS: Final = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
_EXAMPLE: Final = "cpu=8,memory=32Gi"


class NodeShape(msgspec.Struct, frozen=True):
    """A kind of node that could be added, and what one costs.

    Attributes:
        name: Short; nodes of the shape have names that begin with it.
        title: What answers call it: the name that it was given, or its amounts.
        model: A node of the shape.
        price: Of one node; None if it is not given.
        like: The existing node that it is the shape of, with its devices and CSI drivers; empty for
            a shape of amounts.
    """

    name: str
    title: str
    model: Node
    price: float | None = None
    like: str = ""


def read_shapes(templates: Sequence[str]) -> tuple[NodeShape, ...]:
    """Return shapes that are written in one line, or are the node of a file: `FILE,price=P`.

    Raises UserError if a shape is wrong, or does not go with the others.
    """
    shapes = []
    for number, text in enumerate(templates, 1):
        try:
            shapes.append(_read_shape(text, number))
        except ValueError as error:
            raise UserError(f"--node-template {text}: {error}") from error
    prices = [shape.price is None for shape in shapes]
    if any(prices) and not all(prices):
        raise UserError(
            f"--node-template {templates[prices.index(True)]}: it has no price, but another has; "
            "add ,price=P to all or to none"
        )
    used: set[str] = set()
    for shape in shapes:
        if shape.name in used:
            raise UserError(f"--node-template: two are named {shape.name}; add ,name=NAME to one")
        used.add(shape.name)
    return tuple(shapes)


def parse_shape(text: str, number: int = 1) -> NodeShape:
    """Return a shape from `cpu=8,memory=32Gi,zone=a,label.KEY=VALUE,taint.KEY=VALUE:EFFECT`.

    Further words are `name`, `price`, `pods` and resources such as `nvidia.com/gpu`. A shape
    without a name is named by its number. Raises ValueError, which names the wrong
    word and the remedy.
    """
    amounts: dict[str, str] = {"pods": _PODS}
    labels = dict(_OWN_LABELS)
    taints: list[Taint] = []
    name, price = "", None
    described: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = word.partition("=")
        if key.startswith("taint."):
            taints.append(parse_taint(word.removeprefix("taint.")))
        elif not equals or not value:
            raise ValueError(f"{word}: write it as NAME=VALUE, such as {_EXAMPLE}")
        elif key == "name":
            name = value
        elif key == "price":
            price = parse_price(value)
            continue
        elif key == "zone" or key.startswith("label."):
            label = ZONE if key == "zone" else key.removeprefix("label.")
            labels[label] = checked_label(label, value)
        else:
            if not is_resource(key):
                words = f"{RESOURCES}, zone, label.KEY, taint.KEY, name or price"
                raise ValueError(f"{word}: {key} is not known; use {words}")
            amounts[key] = _checked_amount(key, value)
        described.append(word)
    missing = [one for one in ("cpu", "memory") if one not in amounts]
    if missing:
        raise ValueError(f"{' and '.join(missing)} missing; write it as {_EXAMPLE}")
    title = name or ",".join(described)
    name = name or f"new-{number}"
    model = Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(capacity=dict(amounts), allocatable=dict(amounts)),
    )
    return NodeShape(name, title, model, price)


def _read_shape(text: str, number: int) -> NodeShape:
    file, _, words = text.partition(",")
    if "=" in file:
        return parse_shape(text, number)
    price = None
    for word in filter(None, words.split(",")):
        if not word.startswith("price="):
            raise ValueError(f"{word}: after a file, only price=P can be given")
        price = parse_price(word.removeprefix("price="))
    try:
        loaded = [*load([Path(file)])]
    except OSError as error:
        raise ValueError(str(error)) from error
    if len(loaded) != 1 or not isinstance(loaded[0].object, Node):
        raise ValueError(f"{file} does not hold one Node; write a shape such as cpu=8,memory=32Gi")
    [node] = distinct_objects(loaded)
    return shape_of(cast("Node", node), price)


def shape_of(node: Node, price: float | None = None) -> NodeShape:
    """Return the shape of an existing node, without its pods, cordon and state taints."""
    taints = tuple(taint for taint in node.spec.taints if taint.key not in STATE_TAINTS)
    name = node.metadata.name
    return NodeShape(
        name,
        name,
        replace(
            node,
            metadata=ObjectMeta(
                name=f"{name}-new",
                labels=node.metadata.labels,
                annotations=node.metadata.annotations,
            ),
            spec=replace(node.spec, taints=taints, unschedulable=False),
            status=replace(node.status, conditions=()),
        ),
        price,
        name,
    )


def new_nodes(model: Node, number: int, taken: Iterable[str]) -> list[Node]:
    """Return empty nodes of a shape, with names that are not taken."""
    used, found = set(taken), []
    names = (f"{model.metadata.name}-{at}" for at in count(1))
    for name in islice((name for name in names if name not in used), number):
        labels = {**model.metadata.labels, HOSTNAME: name}
        metadata = replace(model.metadata, name=name, uid="", labels=labels)
        found.append(replace(model, metadata=metadata))
    return found


def parse_taint(text: str) -> Taint:
    """Return a taint from `KEY=VALUE:EFFECT` or `KEY:EFFECT`; raises ValueError for other texts."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if effect not in EFFECTS or not key:
        raise ValueError(
            f"{text}: write a taint as KEY=VALUE:EFFECT, with an effect of {', '.join(EFFECTS)}"
        )
    checked_label(key, value)
    return Taint(key=key, value=value, effect=effect)


def parse_price(text: str) -> float:
    """Return a price; raises ValueError if it is not a positive number."""
    try:
        price = float(text)
    except ValueError:
        price = 0.0
    if not 0.0 < price < float("inf"):
        raise ValueError(f"price={text}: a price is a positive number, such as 0.4")
    return price


def _checked_amount(key: str, value: str) -> str:
    try:
        amount = parse_quantity(value)
    except ValueError as error:
        raise ValueError(f"{key}={value}: {error}") from None
    if amount.sign < 0:
        raise ValueError(f"{key}={value}: it must not be negative")
    return value


def is_resource(name: str) -> bool:
    """Whether nodes can have a resource of that name; see RESOURCES."""
    return name == PODS or is_counted_resource_name(name)


def checked_label(key: str, value: str) -> str:
    """Return the value of a label; raises ValueError if the API server would refuse it."""
    errors = [*label_key_errors(key), *label_value_errors(value)]
    if errors:
        raise ValueError(f"{key}={value}: {errors[0]}")
    return value


# Missing nodes.

_TRIALS_MAX: Final = 100
_TRIALS_MIN: Final = 5
_PODS_TRIED_MAX: Final = 50_000
"""Number of pods in all trials of mixes: some ten seconds."""
_MIXES_MAX: Final = 100_000
_NODES_MIN: Final = 16
"""At least so many nodes are tried, for spread constraints that need more nodes than pods."""
_FIXED_PLUGINS: Final = frozenset(
    ("NodeResourcesFit", "NodeName", "NodeAffinity", "NodeUnschedulable", "TaintToleration")
)
"""Plugins whose answers for a node do not change because there are others."""

Counts = tuple[int, ...]


class NodesOfShape(DocumentPart, frozen=True):
    """A number of nodes of one shape.

    Attributes:
        shape: The name of the shape, or its amounts if it was given none.
        count: How many nodes.
    """

    shape: str
    count: int


class MissingNodes(DocumentPart, frozen=True):
    """The empty nodes that are missing so that all pods fit.

    Attributes:
        enough: Whether such nodes help at all.
        nodes: The nodes, by shape; those that helped some pods if they are not enough.
        price: What they cost together; None without prices.
        exact: Whether no cheaper mix is enough; otherwise the mix was chosen step by step.
        left: The pods that fit on no such node; empty if they are enough.
    """

    enough: bool
    nodes: tuple[NodesOfShape, ...]
    price: float | None
    exact: bool
    left: tuple[PodsWithoutNode, ...] = ()


async def missing_nodes(
    cluster: TrialCluster, waiting: Sequence[str], shapes: Sequence[NodeShape]
) -> MissingNodes:
    """Return the cheapest nodes with which pods fit; the cluster is as before afterwards.

    The cluster has settled, and `waiting` are the uids of pods without a node. Prices are given for
    all shapes or for none.
    """
    search = _Search(cluster, waiting, shapes)
    counts, exact = await search.cheapest()
    has_prices = shapes[0].price is not None
    left = await search.left(counts)
    return MissingNodes(
        not left,
        tuple(
            NodesOfShape(shape.title, number)
            for shape, number in zip(shapes, counts, strict=True)
            if number
        ),
        search.price(counts) if has_prices else None,
        exact,
        grouped(left),
    )


class _Search:
    def __init__(
        self, cluster: TrialCluster, waiting: Sequence[str], shapes: Sequence[NodeShape]
    ) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._shapes = shapes
        self._prices = [1.0 if shape.price is None else shape.price for shape in shapes]
        self._offered = [resource_values(one.model.status.allocatable) for one in shapes]
        self._known: dict[Counts, list[PodOutcomeNow]] = {}
        self._needed = self._needs()

    def price(self, counts: Counts) -> float:
        prices = zip(self._prices, counts, strict=True)
        return round(sum(price * number for price, number in prices), 6)

    async def left(self, counts: Counts) -> list[PodOutcomeNow]:
        """Return the pods that have no node with these further nodes."""
        found = self._known.get(counts)
        if found is None:
            found = self._known[counts] = await self._tried(counts)
        return found

    async def _tried(self, counts: Counts) -> list[PodOutcomeNow]:
        cluster = self._cluster
        cluster.begin()
        taken = names_of(cluster)
        added: list[tuple[list[Node], str]] = []
        for shape, number in zip(self._shapes, counts, strict=True):
            nodes = new_nodes(shape.model, number, taken)
            taken += [node.metadata.name for node in nodes]
            added.append((nodes, shape.like))
        # Pods of DaemonSets first. Then priority decides: no pod is backing off by the time that
        # nodes are added to a real cluster.
        with cluster.moving_only():
            for nodes, like in added:
                cluster.add_nodes(nodes, like)
            await cluster.settle()
        cluster.rehearsal.scheduler.wake()
        await cluster.settle()
        outcomes = PodOutcomes(cluster)
        found = [outcomes.of(uid) for uid in self._waiting]
        await cluster.undo()
        return [one for one in found if not one.node]

    # Several shapes.

    async def cheapest(self) -> tuple[Counts, bool]:
        """Return the cheapest mix that is enough, and whether it is known to be the cheapest."""
        if len(self._shapes) == 1:
            return await self._alone(0), True
        best = await self._stepwise()
        if await self.left(best):
            return best, False
        trials = min(_TRIALS_MAX, max(_TRIALS_MIN, _PODS_TRIED_MAX // len(self._waiting)))
        budget = len(self._known) + trials
        for counts in self._by_price(self.price(best)):
            if counts is None or len(self._known) >= budget:
                return best, False
            if self._is_large_enough(counts) and not await self.left(counts):
                return counts, True
        return best, True

    def _by_price(self, limit: float) -> Iterator[Counts | None]:
        """Yield the mixes that are cheaper than a limit, the cheapest first; None to give up."""
        width = len(self._shapes)
        heap: list[tuple[float, int, Counts, int]] = [(0.0, 0, (0,) * width, 0)]
        for number in count():
            if not heap:
                return
            price, _, counts, last = heapq.heappop(heap)
            if price >= limit:
                return
            if number >= _MIXES_MAX:
                yield None
            yield counts
            # Only later shapes are added, so that every mix is reached once.
            for at in range(last, width):
                more = (*counts[:at], counts[at] + 1, *counts[at + 1 :])
                heapq.heappush(heap, (self.price(more), len(heap) + number, more, at))

    async def _stepwise(self) -> Counts:
        """Return the cheapest nodes of one shape (the last may be cheaper), or else a mix."""
        enough = []
        for at in range(len(self._shapes)):
            counts = await self._alone(at)
            if not await self.left(counts):
                enough.append(counts)
        if not enough:
            return await self._mixed()
        best = min(enough, key=self.price)
        largest = best.index(max(best))
        for at in sorted(range(len(best)), key=self._prices.__getitem__):
            fewer = [number - (place == largest) for place, number in enumerate(best)]
            fewer[at] += 1
            other = tuple(fewer)
            if self.price(other) < self.price(best) and not await self.left(other):
                return other
        return best

    async def _mixed(self) -> Counts:
        """Repeatedly add the node that helps most for its price, until no node helps."""
        counts: Counts = (0,) * len(self._shapes)
        while left := len(await self.left(counts)):
            found: list[tuple[float, Counts]] = []
            for at, price in enumerate(self._prices):
                more = (*counts[:at], counts[at] + 1, *counts[at + 1 :])
                found.append(((left - len(await self.left(more))) / price, more))
            gain, more = max(found, key=lambda one: one[0])
            if gain <= 0:
                break
            counts = more
        return counts

    # One shape.

    async def _alone(self, at: int) -> Counts:
        """Return the fewest nodes of one shape that help as many pods as such nodes can."""

        def of(number: int) -> Counts:
            return tuple(number if place == at else 0 for place in range(len(self._shapes)))

        limit = max(len(self._waiting), _NODES_MIN)
        wanted = len(await self.left(of(limit)))
        if wanted == len(self._waiting):
            return of(0)
        low, high = 0, limit
        # Most numbers are small, and most pods fill nodes well: double first, then halve.
        step = next((n for n in range(1, limit) if self._is_large_enough(of(n))), 1)
        if not wanted:
            low = step - 1
        while high - low > 1:
            number = step if step < high else (low + high) // 2
            if len(await self.left(of(number))) <= wanted:
                high = number
            else:
                low, step = number, 2 * step
        return of(high)

    # Arithmetic, to leave out what cannot be enough.

    def _needs(self) -> Counter[str] | None:
        """Return the pods' requests together; None if existing nodes might take some of them."""
        outcomes = PodOutcomes(self._cluster)
        rejecting = [outcomes.of(uid).plugins for uid in self._waiting]
        # A pod that no plugin rejects waits for the others of its gang.
        if any(not plugins or not _FIXED_PLUGINS.issuperset(plugins) for plugins in rejecting):
            return None
        pods = self._cluster.pods()
        total: Counter[str] = Counter()
        for uid in self._waiting:
            pod = pods.get(self._cluster.last_successor(uid))
            if pod is None:
                return None
            total.update(PodInfo(pod).template.held)
            total["pods"] += 1
        return total

    def _is_large_enough(self, counts: Counts) -> bool:
        if self._needed is None:
            return True
        return all(
            sum(n * one.get(resource, 0) for n, one in zip(counts, self._offered, strict=True))
            >= amount
            for resource, amount in self._needed.items()
        )
