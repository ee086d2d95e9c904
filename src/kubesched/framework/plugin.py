"""The extension points: the methods that the scheduler calls on a plugin.

A plugin is a class that inherits the extension points it implements. A method that takes a node
table returns one value per row.

Upstream: staging/src/k8s.io/kube-scheduler/framework/interface.go;
          pkg/scheduler/framework/plugins/helper/normalize_score.go (v1.36)
Differs:  Filter and Score answer for all rows at once; the value that pre_filter or pre_score
          returns is passed to filter or score with its type; QueueSort returns a sort key instead
          of comparing two pods; the methods for explain, `kinds_needed` and those that describe,
          are not in upstream, which lists every kind from its API server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.field_errors import ConfigError
from kubesched.api.meta import KubeObject
from kubesched.config.args import PluginArgs, decode_args
from kubesched.framework.cluster_event import ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.status import SKIP, SUCCESS, NodeToStatus, Status, failure
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kubesched.framework.handle import Handle
    from kubesched.framework.queued_pod_info import QueuedPodInfo

S = TypeVar("S")


class Scope(Enum):
    """What a plugin's answer for a row depends on, besides the pod; determines what is cached.

    Heartbeats of a Node object, and the volumes in its status, do not count.
    """

    NODE = "node"  # that row's Node object
    USAGE = "usage"  # that row's allocatable amounts and the sums of its pods' requests
    ROW = "row"  # that row's Node object and the pods on it, but not their status
    NODES = "nodes"  # the Node objects of all rows
    CLUSTER = "cluster"  # anything; never cached

    # Enum's own is written in Python, and planning a cycle calls it some 40 times.
    __hash__ = object.__hash__


OF_SUMS: Final = frozenset((Scope.NODE, Scope.NODES, Scope.USAGE))
"""Scopes that include nothing of pods on nodes but sums of their requests."""
UNSIGNED: Final = object()
"""Returned by `sign` for a pod whose answers must not be cached."""
NOT_SHARED: Final = object()
"""Returned by `sign` for a pod whose answers hold for its template alone.

The plugin is asked about each pod. The answers of other plugins are shared by pods that differ only
in what this plugin reads.
"""


class Decides(StrEnum):
    """The part of a decision that objects of a kind may change, for explain and simulate."""

    FIT = "Fit"  # which nodes can run the pod
    CHOICE = "Choice"  # which of those nodes it gets
    VICTIMS = "Victims"  # which pods are evicted for it


class NeededKind(NamedTuple):
    """A kind of objects that a plugin's answer for a pod depends on.

    An input file without objects of a kind does not prove that the cluster has none.

    Attributes:
        kind: The class of the objects.
        why: A clause that describes how the pod depends on the objects.
        decides: What the objects may change.
    """

    kind: type[KubeObject]
    why: str
    decides: Decides = Decides.FIT


class Plugin(ABC):
    """A named piece of scheduling logic, built once per profile.

    Attributes:
        name: The name in the configuration.
        args_type: The class of the plugin's arguments; None if they are not decoded.
        scope: What the answers of `filter` and `score` depend on.
        score_scope: The scope of `score`, if it differs.
        signed_kinds: Kinds of other objects that `sign` and cached answers read; a change of such
            an object discards what was cached.
        signs_base: Whether `sign` reads of the pod only `spec.nodeName` and what `template.base`
            has; it is then called once for all pods of a base.
        per_template: Whether `sign`, and the answers for pods without a signature, depend only on
            the pod's template and the snapshot; subclasses do not inherit it.
        survivors_only: Whether `filter` and `score` receive only the rows that no plugin has
            rejected yet, because an answer is costly or has side effects. Answers that are cached
            are always computed for all rows.
    """

    name: ClassVar[str]
    args_type: ClassVar[type[PluginArgs] | None] = None
    scope: ClassVar[Scope] = Scope.CLUSTER
    score_scope: ClassVar[Scope | None] = None
    signed_kinds: ClassVar[tuple[type, ...]] = ()
    signs_base: ClassVar[bool] = False
    per_template: ClassVar[bool] = False
    survivors_only: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "sign" in cls.__dict__:
            # What holds for an inherited `sign` need not hold for this one.
            cls.signs_base = cls.__dict__.get("signs_base", False)
        cls.per_template = cls.__dict__.get("per_template", False)

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    @classmethod
    def decode_args(cls, raw: dict[str, object] | None, handle: Handle, path: str) -> object:
        """Decode and validate the plugin's arguments, by default into `args_type`.

        Args:
            raw: The value of `pluginConfig[].args`; None if absent.
            handle: Provides the feature gates, which decide which fields are allowed.
            path: Field path of `raw`, for field errors.

        Raises:
            ConfigError: With every field error found.
        """
        if cls.args_type is None:
            return raw
        args = decode_args(cls.args_type, raw, path)
        if errors := tuple(args.errors(path)):
            raise ConfigError(errors)
        return args

    @classmethod
    def check_args(cls, raw: dict[str, object] | None, handle: Handle, path: str) -> None:
        """Check the arguments of an in-tree plugin that the profile does not run.

        Arguments and errors are those of `decode_args`.
        """
        cls.decode_args(raw, handle, path)

    def events_to_register(self) -> Sequence[ClusterEventWithHint] | None:
        """Return the events after which a pod that this plugin rejected may fit.

        None means all events of the default resources, an empty sequence no event.
        """
        return None

    def sign(self, pod: PodInfo) -> Hashable:
        """Return a value with everything that the plugin reads of the pod, UNSIGNED or NOT_SHARED.

        Two pods with equal signatures must get equal answers for equal rows.
        """
        return UNSIGNED

    def kinds_needed(self, pod: PodInfo, snapshot: Snapshot) -> Iterable[NeededKind]:
        """Return, for explain, the kinds of other objects that the pod's answer depends on."""
        return ()


def _lacks_row_method(cls: type[Plugin], name: str) -> bool:
    """Whether the class that has the method for tables has none for one row.

    An inherited method for one row might return other answers.
    """
    row_method = f"{name}_row"
    owner = next(each for each in cls.__mro__ if {name, row_method} & each.__dict__.keys())
    return row_method not in owner.__dict__


class NoState(msgspec.Struct, frozen=True):
    """Takes the place of a missing state.

    Every row that needs the state has its status: a failure, or a filter's rejection.
    """

    status: Status


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Return success to admit the pod, a rejection to keep it out."""

    def still_gates(self, pods: Sequence[PodInfo], snapshot: Snapshot) -> Sequence[bool]:
        """Return, for each of these pods that it keeps out, whether `pre_enqueue` rejects it still.

        It is asked after an event that it has registered. Override it if there is a faster way for
        many pods.
        """
        return [not self.pre_enqueue(pod, snapshot).is_success for pod in pods]


class QueueSortPlugin(Plugin):
    """Orders the active queue."""

    @abstractmethod
    def sort_key(self, queued: QueuedPodInfo) -> tuple[int | float, ...]:
        """Return a key; the smallest is scheduled first."""


class PreFilterResult(msgspec.Struct, Generic[S], frozen=True):
    """The outcome of pre_filter.

    Attributes:
        state: Passed to the plugin's `filter`.
        status: Success, Skip (do not call `filter`), or a rejection of the pod on all nodes.
        node_names: The nodes that are possible at all; None means all.
        lasts: Whether Skip holds for all pods of the template until an affinity term of a pod on a
            node comes or goes, or any object changes that is neither a pod nor a node.
    """

    state: S | None = None
    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    lasts: bool = False


PRE_FILTER_SKIP: Final[PreFilterResult[Any]] = PreFilterResult(status=SKIP)
"""Returned by `pre_filter` to skip the plugin's filter."""


class PreFilterPlugin(Plugin, Generic[S]):
    """Prepares `filter`: runs once per pod, before any row is filtered."""

    @abstractmethod
    def pre_filter(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult[S]:
        """Return the state for `filter`, Skip, or a rejection.

        With a `scope` other than CLUSTER the result must depend on the pod's signature alone.
        """

    def describe_rejection(self, pod: PodInfo, snapshot: Snapshot) -> str:
        """Return, for explain, what made `pre_filter` reject the pod, such as claims or classes.

        Called only for a pod that `pre_filter` rejected. Empty if the reason is sufficient.
        """
        return ""


class PreFilterExtensions(PreFilterPlugin[S]):
    """Updates a pre_filter state for what-if questions: a pod is added to a node, or removed.

    The state needs a `clone()`; both methods change it in place.
    """

    @abstractmethod
    def add_pod(self, state: S, pod: PodInfo, added: PodInfo, nodes: NodeTable) -> Status:
        """Change `state` as if `added` were on the one row of `nodes`."""

    @abstractmethod
    def remove_pod(self, state: S, pod: PodInfo, removed: PodInfo, nodes: NodeTable) -> Status:
        """Change `state` as if `removed` had left the one row of `nodes`."""


class FilterPlugin(Plugin, Generic[S]):
    """Rejects rows that cannot run the pod.

    Attributes:
        no_filter_state: The error text if the profile does not run the plugin's `pre_filter`.
        fewer_pods_help: Whether a row that passes also passes when pods leave it, for a `scope`
            that includes pods; makes preemption fast.
    """

    fewer_pods_help: ClassVar[bool] = False
    no_filter_state: ClassVar[str] = "there is no state, because pre_filter is not enabled"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if _lacks_row_method(cls, "filter"):
            cls.filter_row = FilterPlugin.filter_row  # type: ignore[method-assign]

    def ignores(self, state: S, pod: PodInfo, other: PodInfo) -> bool:
        """Return whether no answer changes when `other` comes to a node or leaves one.

        Such pods are decided about together, which makes preemption fast. By default none is
        ignored.
        """
        return False

    def filter_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> S | NoState | None:
        """Return the state for `filter` if the profile does not run the plugin's `pre_filter`.

        A plugin that works without `pre_filter` builds its state here, and cannot skip. The
        others fail on every row that no earlier filter rejects.
        With a `scope` other than CLUSTER the result must depend on the pod's signature alone.
        """
        if not isinstance(self, PreFilterPlugin):
            return None
        return NoState(failure(self.no_filter_state))

    @abstractmethod
    def filter(self, state: S, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Return one status per row of `nodes`."""

    def filter_row(self, state: S, pod: PodInfo, nodes: NodeTable, row: int) -> Status:
        """Return the status that `filter` returns for a row.

        For a few changed rows the scheduler calls this instead of `filter` if a plugin overrides
        it. Override it only if it needs no arrays.
        """
        return self.filter(state, pod, nodes.row_view(row))[0]

    def describe(self, state: S, pod: PodInfo, nodes: NodeTable) -> str:
        """Return, for explain, the quantities, taints or labels that decided on a row.

        Called only for a one-row table that `filter` rejected. Empty if the reason is sufficient.
        """
        return ""


class PostFilterResult(msgspec.Struct, frozen=True):
    """The outcome of post_filter.

    Attributes:
        status: Success if the pod may fit after the victims are evicted.
        nominated_node_name: Node to nominate; "" clears a nomination, None keeps it.
        victims: The pods to evict.
        details: How the decision was reached, for explain.
    """

    status: Status
    nominated_node_name: str | None = None
    victims: tuple[PodInfo, ...] = ()
    details: object = None


class PostFilterPlugin(Plugin):
    """Tries to make room when no row is feasible, for example by preemption."""

    @abstractmethod
    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Return what to do; `statuses` has one status per row of `snapshot.nodes`."""


class PreScoreResult(msgspec.Struct, Generic[S], frozen=True):
    """The outcome of pre_score: the state for `score`, or Skip; see PreFilterResult."""

    state: S | None = None
    status: Status = SUCCESS
    lasts: bool = False


PRE_SCORE_SKIP: Final[PreScoreResult[Any]] = PreScoreResult(status=SKIP)
"""Returned by `pre_score` to skip the plugin's score."""


class PreScorePlugin(Plugin, Generic[S]):
    """Prepares `score`: runs once per pod, before the feasible rows are scored."""

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
    """Scores the feasible rows.

    Attributes:
        normalizes: Whether the plugin overrides `normalize_score`; set when the class is created.
        no_score_state: The error text if the profile does not run the plugin's `pre_score`.
    """

    normalizes: ClassVar[bool] = False
    no_score_state: ClassVar[str] = "there is no state, because pre_score is not enabled"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if _lacks_row_method(cls, "score"):
            cls.score_row = ScorePlugin.score_row  # type: ignore[method-assign]
        cls.normalizes = cls.normalize_score is not ScorePlugin.normalize_score

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> S | NoState | None:
        """Return the state for `score` if the profile does not run the plugin's `pre_score`.

        A plugin that works without `pre_score` builds its state here, and cannot skip. The
        others fail.
        With a score scope other than CLUSTER the result must depend on the pod's signature alone.
        """
        if not isinstance(self, PreScorePlugin):
            return None
        return NoState(failure(self.no_score_state))

    @abstractmethod
    def score(self, state: S, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return an int64 per row of `nodes`; the scores of infeasible rows are ignored."""

    def score_row(self, state: S, pod: PodInfo, nodes: NodeTable, row: int) -> int:
        """Return the score that `score` returns for a feasible row; see `filter_row`."""
        return self.score(state, pod, nodes.row_view(row)).item(0)

    def normalize_score(
        self, state: S, pod: PodInfo, scores: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Scale the scores of the feasible rows to 0..100.

        Args:
            state: The state passed to `score`.
            pod: The pod to place.
            scores: int64 per feasible row.
            rows: The table rows of `scores`, in the same order.

        With a score scope other than CLUSTER the result must depend on `scores` alone; if all
        scores are equal, it must not depend on their number.
        """
        return scores


# Scores.

NODE_SCORE_MAX: Final = 100
NODE_SCORE_MIN: Final = 0
_UNSIGNED: Final = np.dtype(np.uint64)


def are_valid_scores(scores: NDArray[np.int64]) -> bool:
    """Whether every score is from 0 to 100."""
    if scores.dtype.char == "l":
        # Read as unsigned, a negative score is above all others, so that one pass is enough.
        unsigned = scores.view(_UNSIGNED)
        return not len(unsigned) or unsigned.item(unsigned.argmax()) <= NODE_SCORE_MAX
    # A plugin may have returned another type of numbers.
    least = np.minimum.reduce(scores, initial=NODE_SCORE_MAX)
    return bool(least >= NODE_SCORE_MIN and np.maximum.reduce(scores, initial=0) <= NODE_SCORE_MAX)


def normalize_scores(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return scores (int64 per row, none negative) scaled so that the largest becomes 100.

    Returns them unchanged if all are 0.
    """
    largest = int(scores.max(initial=0))
    return scores if largest == 0 else scores * NODE_SCORE_MAX // largest


def normalize_reversed(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return scores scaled so that the largest becomes 0; all become 100 if all are 0."""
    return NODE_SCORE_MAX - normalize_scores(scores)


class ReservePlugin(Plugin):
    """Reserves resources of its own for a pod that has been placed, and releases them."""

    @abstractmethod
    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Reserve; a rejection or failure undoes the placement."""

    @abstractmethod
    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Release what `reserve` took.

        The scheduler may call it more than once, and for a pod for which nothing was reserved.
        """


class PermitPlugin(Plugin):
    """Approves, delays or rejects the binding of a placed pod."""

    @abstractmethod
    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return a status, and the timeout in seconds if it is Wait."""


class PreBindPlugin(Plugin):
    """Does the work that must precede binding, such as provisioning volumes."""

    allows_parallel: ClassVar[bool] = False

    @abstractmethod
    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Return success if `pre_bind` has work to do, Skip if not."""

    def describe_wait(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Sequence[str]:
        """Return, for explain, what has to happen before the pod can be bound to the node.

        Called only for the node that the cycle chose, before and after `reserve`.
        """
        return ()

    @abstractmethod
    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do the work; any status but success undoes the placement."""


class BindPlugin(Plugin):
    """Binds the pod to the node in the API."""

    @abstractmethod
    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Bind the pod; Skip leaves that to the next Bind plugin."""


class PostBindPlugin(Plugin):
    """Runs after a pod was bound."""

    @abstractmethod
    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Handle the binding of a pod, for example to clean up."""
