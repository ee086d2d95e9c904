"""How many nodes of given shapes are missing so that pods fit; the cheapest mix of several shapes.

The pods wait in the settled cluster; nodes are added, empty but for the pods of DaemonSets, and the
scheduler tries again. The nodes that are returned were tried. Of one shape, one node fewer was
tried too; of several, every cheaper mix whose nodes are large enough for the pods' requests.

Differs:  if more than a hundred trials are needed, fewer for thousands of pods, the mix is chosen
          step by step, and the report says so.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from kubesched.answers.node_shapes import NodeShape
from kubesched.answers.pod_outcomes import PodOutcomeNow, PodOutcomes, PodsWithoutNode, grouped
from kubesched.answers.trial_cluster import TrialCluster, names_of, new_nodes
from kubesched.api.core import Node
from kubesched.api.quantity import resource_values
from kubesched.explain.document import DocumentPart
from kubesched.snapshot.pod_info import PodInfo

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
        added: list[Node] = []
        for shape, number in zip(self._shapes, counts, strict=True):
            nodes = new_nodes(shape.model, number, taken)
            taken += [node.metadata.name for node in nodes]
            added += nodes
        # Pods of DaemonSets first. Then priority decides: no pod is backing off by the time that
        # nodes are added to a real cluster.
        with cluster.moving_only():
            for node in added:
                cluster.add_node(node)
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
        while step < limit:
            if len(await self.left(of(step))) <= wanted:
                high = step
                break
            low, step = step, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            if len(await self.left(of(middle))) <= wanted:
                high = middle
            else:
                low = middle
        return of(high)

    # Arithmetic, to leave out what cannot be enough.

    def _needs(self) -> Counter[str] | None:
        """Return the pods' requests together; None if existing nodes might take some of them."""
        outcomes = PodOutcomes(self._cluster)
        if any(not _FIXED_PLUGINS.issuperset(outcomes.of(uid).plugins) for uid in self._waiting):
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
