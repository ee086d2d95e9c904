"""The extension points: what the scheduler may ask of a plugin.

A plugin is a class that inherits the extension points it implements. Every question about nodes is
asked about a table of rows and answered with one value per row.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go (v1.36)
Differs:  Filter and Score answer for all rows at once; a plugin's state of a cycle is what its
          pre_filter or pre_score returned, handed back to it typed; QueueSort gives a sort key
          instead of a comparison.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cluster_event import ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.needed_kinds import NeededKind
from kubesched.framework.status import SKIP, SUCCESS, NodeToStatus, Status, failure
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kubesched.framework.handle import Handle
    from kubesched.framework.queued_pod_info import QueuedPodInfo

S = TypeVar("S")


class Scope(Enum):
    """What a plugin's answer for a row depends on, besides the pod; decides what is remembered."""

    NODE = "node"  # that row's Node object
    USAGE = "usage"  # what that row has to offer and what its pods ask for, as numbers
    ROW = "row"  # that row's Node object and the pods on it
    NODES = "nodes"  # the Node objects of all rows
    CLUSTER = "cluster"  # anything; never remembered


UNSIGNED: Final = object()
"""What `sign` returns for a pod whose answers must not be remembered."""


class Plugin(ABC):
    """A named piece of scheduling logic, built once per profile.

    Attributes:
        name: The name in the configuration.
        scope: What the answers of `filter` and `score` depend on.
        score_scope: The same for `score` alone, where it differs.
        signed_kinds: Kinds of other objects that `sign` and remembered answers read; what was
            remembered is void when one of them changes.
        per_template: Whether the plugin's answers about a pod that it does not sign depend on
            nothing of the pod but its template, and on nothing else but the snapshot.
        survivors_only: Ask `filter` and `score` only about rows that nothing has rejected yet:
            for plugins whose answer is costly or has effects of its own. Answers that are
            remembered are asked about all rows.
    """

    name: ClassVar[str]
    scope: ClassVar[Scope] = Scope.CLUSTER
    score_scope: ClassVar[Scope | None] = None
    signed_kinds: ClassVar[tuple[type, ...]] = ()
    per_template: ClassVar[bool] = False
    survivors_only: ClassVar[bool] = False

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    @classmethod
    def decode_args(cls, raw: dict[str, object] | None, handle: Handle, path: str) -> object:
        """Decode and validate the plugin's arguments.

        Args:
            raw: What stands under `pluginConfig[].args`; None if nothing does.
            handle: For feature gates that decide which fields are allowed.
            path: Field path of `raw`, for faults.

        Raises:
            ConfigError: with every fault found.
        """
        return raw

    @classmethod
    def check_args(cls, raw: dict[str, object] | None, handle: Handle, path: str) -> None:
        """Check the arguments of an in-tree plugin that the profile does not run.

        Args:
            raw: What stands under `pluginConfig[].args`; None if nothing does.
            handle: For feature gates that decide which fields are allowed.
            path: Field path of `raw`, for faults.

        Raises:
            ConfigError: with every fault found.
        """
        cls.decode_args(raw, handle, path)

    def events_to_register(self) -> Sequence[ClusterEventWithHint] | None:
        """Events after which a pod this plugin rejected is worth another try.

        None means any event of the usual resources; an empty sequence means no event at all.
        """
        return None

    def sign(self, pod: PodInfo) -> Hashable:
        """Return what the plugin reads of the pod, or UNSIGNED.

        Two pods with equal signatures must get equal answers on equal rows.
        """
        return UNSIGNED

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return, for explain, kinds of other objects that the answer for the pod depends on."""
        return ()


class NoState(msgspec.Struct, frozen=True):
    """Stands in for a state that is not there.

    Attributes:
        status: The answer of whoever needs the state: a failure, or for a filter a rejection.
    """

    status: Status


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Return success to let the pod in, a rejection to hold it back."""


class QueueSortPlugin(Plugin):
    """Orders the active queue."""

    @abstractmethod
    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """Return a key; the smallest is scheduled first."""


class PreFilterResult(msgspec.Struct, Generic[S], frozen=True):
    """The outcome of pre_filter.

    Attributes:
        state: Handed to the plugin's filter.
        status: Success, Skip (leave out my filter), or a rejection of the pod as a whole.
        node_names: Only these nodes can be right; None means any.
    """

    state: S | None = None
    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


PRE_FILTER_SKIP: Final[PreFilterResult[None]] = PreFilterResult(status=SKIP)


class PreFilterPlugin(Plugin, Generic[S]):
    """Looks at pod and cluster once before the rows are asked."""

    @abstractmethod
    def pre_filter(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult[S]:
        """Return the state for `filter`, Skip, or a rejection.

        With a `scope` other than CLUSTER the result must depend on the pod's signature alone.
        """

    def describe_rejection(self, pod: PodInfo, snapshot: Snapshot) -> str:
        """Return, for explain, what made `pre_filter` reject the pod: claims, classes.

        Only asked for a pod that `pre_filter` rejected. Empty if the reason says it all.
        """
        return ""


class PreFilterExtensions(PreFilterPlugin[S]):
    """A pre_filter state that can be asked "what if this pod were there, or gone".

    The state needs a `clone()`; both methods change it in place.
    """

    @abstractmethod
    def add_pod(self, state: S, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Change `state` as if `added` were on the one row of `nodes`."""

    @abstractmethod
    def remove_pod(self, state: S, pod: PodInfo, removed: PodInfo, nodes: NodeTable) -> Status:
        """Change `state` as if `removed` had left the one row of `nodes`."""


class FilterPlugin(Plugin, Generic[S]):
    """Says which rows cannot take the pod.

    Attributes:
        no_filter_state: How it fails where the profile does not run its `pre_filter`.
    """

    no_filter_state: ClassVar[str] = "there is no state, because pre_filter is not enabled"

    def filter_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> S | NoState | None:
        """Return the state for `filter` where the profile does not run the plugin's `pre_filter`.

        A plugin that can do without `pre_filter` makes the state here; it cannot skip any more.
        Others fail on every row that no earlier filter rejects.
        With a `scope` other than CLUSTER the result must depend on the pod's signature alone.
        """
        if not isinstance(self, PreFilterPlugin):
            return None
        return NoState(failure(self.no_filter_state))

    @abstractmethod
    def filter(self, state: S, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Return one status per row of `nodes`."""

    def describe(self, state: S, pod: PodInfo, nodes: NodeTable) -> str:
        """Return, for explain, what decided on the one row of `nodes`: quantities, taints, labels.

        Only asked for a row that `filter` rejected. Empty if the reason says it all.
        """
        return ""


class PostFilterResult(msgspec.Struct, frozen=True):
    """The outcome of post_filter.

    Attributes:
        status: Success if something was done that may make the pod fit.
        nominated_node_name: Node to nominate; "" clears a nomination, None leaves it alone.
        victims: The pods to evict.
        details: How the decision came about, for explain.
    """

    status: Status
    nominated_node_name: str | None = None
    victims: tuple[PodInfo, ...] = ()
    details: object = None


class PostFilterPlugin(Plugin):
    """Looks for a way out when no row is feasible."""

    @abstractmethod
    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Return what to do; `statuses` has one status per row of `snapshot.nodes`."""


class PreScoreResult(msgspec.Struct, Generic[S], frozen=True):
    """The outcome of pre_score: the state for `score`, or Skip."""

    state: S | None = None
    status: Status = SUCCESS


PRE_SCORE_SKIP: Final[PreScoreResult[None]] = PreScoreResult(status=SKIP)


class PreScorePlugin(Plugin, Generic[S]):
    """Looks at pod, cluster and feasible rows once before rows are scored."""

    @abstractmethod
    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[S]:
        """Return the state for `score`, or Skip to contribute nothing.

        Args:
            cycle: The pod's cycle.
            pod: The pod to place.
            snapshot: The cluster.
            feasible: Bool per row of `snapshot.nodes`.

        With a score scope other than CLUSTER the result must depend on the pod's signature alone.
        """


class ScorePlugin(Plugin, Generic[S]):
    """Rates the feasible rows.

    Attributes:
        normalizes: Whether `normalize_score` does anything.
        no_score_state: How it fails where the profile does not run its `pre_score`.
    """

    normalizes: ClassVar[bool] = False
    no_score_state: ClassVar[str] = "there is no state, because pre_score is not enabled"

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> S | NoState | None:
        """Return the state for `score` where the plugin has no `pre_score` that the profile runs.

        A plugin that can do without `pre_score` makes the state here; it cannot skip any more.
        Others fail.
        With a score scope other than CLUSTER the result must depend on the pod's signature alone.
        """
        if not isinstance(self, PreScorePlugin):
            return None
        return NoState(failure(self.no_score_state))

    @abstractmethod
    def score(self, state: S, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return an int64 per row of `nodes`; answers for infeasible rows are not looked at."""

    def normalize_score(
        self, state: S, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Bring the scores of the feasible rows into 0..100.

        Args:
            state: What `score` was given.
            pod: The pod to place.
            scores: int64 per feasible row.
            rows: Which rows of the table those are, in the same order.

        With a score scope other than CLUSTER the result must depend on `scores` alone, and where
        all are equal not on how many there are.
        """
        return scores


class ReservePlugin(Plugin):
    """Takes and returns resources of its own for a pod that has been placed."""

    @abstractmethod
    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take; a rejection or failure undoes the placement."""

    @abstractmethod
    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Return what `reserve` took; called also if it took nothing, and more than once."""


class PermitPlugin(Plugin):
    """Lets a placed pod go on, holds it, or sends it back."""

    @abstractmethod
    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return a status, and for Wait the timeout in seconds."""


class PreBindPlugin(Plugin):
    """Does what must be done before binding; may take long."""

    allows_parallel: ClassVar[bool] = False

    @abstractmethod
    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return success if `pre_bind` has work to do, Skip if not."""

    def describe_wait(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Sequence[str]:
        """Return, for explain, what has to happen before the pod can be bound to the node.

        Only asked for a node that the cycle chose, before and after `reserve`.
        """
        return ()

    @abstractmethod
    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do it; anything but success undoes the placement."""


class BindPlugin(Plugin):
    """Binds the pod to the node in the API."""

    @abstractmethod
    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Bind; Skip leaves it to the next bind plugin."""


class PostBindPlugin(Plugin):
    """Is told that a pod was bound."""

    @abstractmethod
    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take note."""
