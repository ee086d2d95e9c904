"""Scripted plugins implement every extension point with the answers of a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import Pod
from kubesched.framework.cluster_event import Action, ClusterEvent, ClusterEventWithHint
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    PreScoreResult,
    ReservePlugin,
    ScorePlugin,
)
from kubesched.framework.status import SUCCESS, Code, NodeToStatus, Status
from kubesched.scheduler.pod_scheduling import PODS_TO_ACTIVATE
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot

from .recorder import short

Write = Callable[[str, str], None]

_CODES: Final = {code.label: code for code in Code}
_ANY: Final = ""


class Answer(msgspec.Struct, frozen=True):
    """An answer of a plugin.

    Attributes:
        status: Its status.
        seconds: How long it takes, or, for Wait, the timeout.
        raises: The text of the exception that it raises instead, "" for none.
        node_names: From PreFilter: the allowed nodes; from PostFilter: the node to nominate.
        activates: Pods that it activates.
    """

    status: Status = SUCCESS
    seconds: float = 0.0
    raises: str = ""
    node_names: tuple[str, ...] = ()
    activates: tuple[str, ...] = ()


def answer_of(words: Sequence[str]) -> Answer:
    """Return an answer from words such as `after 2s Error "no disk"` or `Wait 5s`."""
    rest = list(words)
    seconds = 0.0
    if rest[0] == "after":
        seconds = float(rest[1].removesuffix("s"))
        rest = rest[2:]
    word, *rest = rest
    reason = " ".join(rest)
    match word:
        case "raise":
            return Answer(seconds=seconds, raises=reason)
        case "nodes":
            return Answer(seconds=seconds, node_names=tuple(reason.split(",")))
        case "activate":
            return Answer(seconds=seconds, activates=tuple(reason.split(",")))
        case "Wait":
            return Answer(Status(Code.WAIT), float(reason.removesuffix("s")))
        case "Error":
            return Answer(Status(Code.ERROR, error=reason), seconds)
    return Answer(Status(_CODES[word], (reason,) if reason else ()), seconds)


class Script:
    """The answers of all scripted plugins of a transcript.

    Attributes:
        write: Takes a line of the log.
        find: Looks a pod up by name.
    """

    def __init__(self, write: Write, find: Callable[[str], PodInfo | None]) -> None:
        self.write = write
        self.find = find
        self._answers: dict[tuple[str, str, str, str], Answer] = {}

    def say(self, plugin: str, point: str, answer: Answer, pod: str = _ANY, on: str = _ANY) -> None:
        """Set a plugin's answer from now on, perhaps for one pod or node only."""
        self._answers[plugin, point, pod, on] = answer

    def answer(self, plugin: str, point: str, pod: PodInfo, node: str = _ANY) -> Answer:
        """Return a plugin's current answer; the most specific one counts."""
        name = short(pod.key)
        for key in ((name, node), (name, _ANY), (_ANY, node), (_ANY, _ANY)):
            found = self._answers.get((plugin, point, *key))
            if found is not None:
                return found
        return Answer()


class Scripted(
    PreEnqueuePlugin,
    PreFilterPlugin[None],
    FilterPlugin[None],
    PostFilterPlugin,
    PreScorePlugin[None],
    ScorePlugin[None],
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    """Answers from a script, and writes a line for calls that are not too frequent."""

    script: ClassVar[Script]
    registered: ClassVar[tuple[ClusterEventWithHint, ...] | None] = None

    def _ask(self, point: str, pod: PodInfo, node: str = _ANY) -> Answer:
        answer = self.script.answer(self.name, point, pod, node)
        if answer.raises:
            raise RuntimeError(answer.raises)
        return answer

    def _tell(self, point: str, pod: PodInfo, node: str, outcome: str) -> None:
        self.script.write("plugin", f"{self.name} {point} {short(pod.key)} on {node}: {outcome}")

    def events_to_register(self) -> Sequence[ClusterEventWithHint] | None:
        """Return the registrations of the transcript."""
        return self.registered

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Answer."""
        return self._ask("preEnqueue", pod).status

    def pre_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterResult[None]:
        """Answer."""
        answer = self._ask("preFilter", pod)
        names = frozenset(answer.node_names) if answer.node_names else None
        return PreFilterResult(status=answer.status, node_names=names)

    def filter_state(self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot) -> None:
        """Return None, so that Filter runs without PreFilter."""

    def score_state(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> None:
        """Return None, so that Score runs without PreScore."""

    def filter(self, state: None, pod: PodInfo, nodes: NodeTable) -> NodeToStatus:
        """Answer for each node."""
        return NodeToStatus.of([self._ask("filter", pod, name).status for name in nodes.names])

    def post_filter(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeToStatus
    ) -> PostFilterResult:
        """Answer."""
        answer = self._ask("postFilter", pod)
        node = answer.node_names[0] if answer.node_names else None
        return PostFilterResult(answer.status, node)

    def pre_score(
        self, cycle: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> PreScoreResult[None]:
        """Answer."""
        return PreScoreResult(status=self._ask("preScore", pod).status)

    def score(self, state: None, pod: PodInfo, nodes: NodeTable) -> NDArray[np.int64]:
        """Return 0 for every node."""
        self._ask("score", pod)
        return np.zeros(len(nodes), np.int64)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Answer."""
        answer = self._ask("reserve", pod, node_name)
        self._tell("reserve", pod, node_name, answer.status.code.label)
        found = [self.script.find(name) for name in answer.activates]
        pods = {info.key: info for info in found if info is not None}
        if pods:
            cycle.shared[PODS_TO_ACTIVATE] = pods
        return answer.status

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Write a line."""
        self.script.write("plugin", f"{self.name} unreserve {short(pod.key)} on {node_name}")

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Answer."""
        answer = self._ask("permit", pod, node_name)
        self._tell("permit", pod, node_name, answer.status.code.label)
        return answer.status, answer.seconds

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Answer."""
        return self._ask("preBindPreFlight", pod, node_name).status

    async def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Answer, after a while."""
        answer = self._ask("preBind", pod, node_name)
        if answer.seconds:
            self._tell("preBind", pod, node_name, "begins")
        try:
            await asyncio.sleep(answer.seconds)
        except asyncio.CancelledError:
            self._tell("preBind", pod, node_name, "cancelled")
            raise
        self._tell("preBind", pod, node_name, answer.status.code.label)
        return answer.status

    async def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Answer after a delay; success binds nothing."""
        answer = self._ask("bind", pod, node_name)
        await asyncio.sleep(answer.seconds)
        self._tell("bind", pod, node_name, answer.status.code.label)
        return answer.status

    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Write a line."""
        self._tell("postBind", pod, node_name, "told")
        self._ask("postBind", pod, node_name)


class ScriptedSpec(msgspec.Struct, frozen=True):
    """The description of a scripted plugin.

    Attributes:
        points: Where it runs.
        events: What it registers, such as `Node/Add|UpdateNodeTaint`; None for whatever there is.
        hint: What its hint says: `Queue`, `QueueSkip`, `raise`; "" for no hint.
        parallel: Whether its PreBind runs beside others'.
    """

    points: tuple[str, ...]
    events: tuple[str, ...] | None = None
    hint: str = ""
    parallel: bool = False


def scripted_plugin(name: str, spec: ScriptedSpec, script: Script) -> type[Scripted]:
    """Make the class of a plugin."""
    registered = None
    if spec.events is not None:
        hint = _HINTS[spec.hint]
        registered = tuple(ClusterEventWithHint(_event(text), hint) for text in spec.events)
    return type(
        name,
        (Scripted,),
        {
            "name": name,
            "script": script,
            "registered": registered,
            "allows_parallel": spec.parallel,
        },
    )


def _event(text: str) -> ClusterEvent:
    resource, _, actions = text.rpartition("/")
    bits = Action(0)
    for word in actions.split("|"):
        bits |= next(a for a in _ACTIONS if ClusterEvent("", a).label == word)
    return ClusterEvent(resource, bits)


def _raise(_pod: Pod, _old: object | None, _new: object | None) -> bool:
    raise RuntimeError("the hint does not know")


_ACTIONS: Final = (*Action, Action.UPDATE, Action.ALL)
_HINTS: Final[dict[str, Callable[[Pod, object | None, object | None], bool] | None]] = {
    "": None,
    "Queue": lambda _pod, _old, _new: True,
    "QueueSkip": lambda _pod, _old, _new: False,
    "raise": _raise,
}
