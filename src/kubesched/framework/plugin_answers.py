"""Checks what the methods of plugins that are not in-tree return, and that they change no object.

It also warns of slow ones. A wrong answer is the plugin's error, like an exception: without the
check it would fail later, and far from the plugin.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import coroutine
from typing import Any, Final, NoReturn, Protocol, TypeVar, TypeVarTuple

import numpy as np

from kubesched.api.scheme import custom_kinds
from kubesched.framework.cluster_event import RESOURCES, ClusterEvent, ClusterEventWithHint
from kubesched.framework.cycle_state import is_clonable
from kubesched.framework.plugin import NeededKind, PostFilterResult, PreFilterResult, PreScoreResult
from kubesched.framework.pod_groups import GeneratedPlacements, Placement
from kubesched.framework.status import SUCCESS, NodeToStatus, Status
from kubesched.framework.structured_log import write
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

log: Final = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T", bound="_Result")
Arguments = TypeVarTuple("Arguments")

_TIMED_CALLS: Final = 50
"""The number of calls of a method that are timed."""
_COMPARED_CALLS: Final = 3
"""The number of calls of a method around which objects are compared, which takes long."""
_WATCHED_NODES: Final = 2
_SCORE_BYTES_MIN: Final = 4
_SCORE_MAX: Final = int(np.iinfo(np.int64).max)
_SLOW_SECONDS: Final = 1.0
"""A method is slow if its checked calls take longer in total."""


class WrongAnswerError(TypeError):
    """A plugin's method returned what its extension point does not take, or changed its arguments.

    Attributes:
        method: The name of the plugin's method.
    """

    def __init__(self, method: str, text: str) -> None:
        super().__init__(f"{method} {text}")
        self.method = method


def refuse(method: str, wanted: str, answer: object) -> NoReturn:
    """Raise WrongAnswerError for `answer`."""
    is_short = answer is None or isinstance(answer, str | int | float | tuple)
    found = repr(answer) if is_short else type(answer).__name__
    hint = "; is a `return` missing?" if answer is None else ""
    raise WrongAnswerError(method, f"must return {wanted}, not {found}{hint}")


def check_status(method: str, answer: object, _args: Sequence[object] = ()) -> None:
    """Check a status; codes that an extension point does not take fail as upstream's do."""
    if answer is SUCCESS:
        return
    if not isinstance(answer, Status):
        refuse(method, "a Status such as SUCCESS", answer)
    texts = (answer.error, *answer.reasons)
    if not isinstance(answer.reasons, tuple) or not all(isinstance(text, str) for text in texts):
        raise WrongAnswerError(method, f"must give reasons as texts, not {answer.reasons!r}")


def _check_rows(method: str, answer: object, args: Sequence[Any]) -> None:
    rows = len(args[-1])
    if not isinstance(answer, NodeToStatus):
        refuse(method, "a NodeToStatus, such as NodeToStatus.passing(len(nodes))", answer)
    if len(answer) != rows:
        raise WrongAnswerError(method, f"answered for {len(answer)} rows, not for all {rows}")
    for status in answer.statuses:
        check_status(method, status)
    if rows and not _is_index(answer.index, len(answer.statuses)):
        wanted = f"must index its {len(answer.statuses)} statuses by whole numbers from 0"
        raise WrongAnswerError(method, wanted)
    if rows and answer.statuses[0] != SUCCESS:
        raise WrongAnswerError(method, "must have SUCCESS as its first status")


def _is_index(index: object, statuses: int) -> bool:
    """Whether an array with a row or more holds positions of statuses."""
    if not isinstance(index, np.ndarray) or index.ndim != 1:
        return False
    if not np.can_cast(index.dtype, np.intp):
        return False
    return bool(0 <= index.item(index.argmin()) <= index.item(index.argmax()) < statuses)


def _check_scores(method: str, answer: object, args: Sequence[Any]) -> None:
    rows = len(args[-1])
    # Products of smaller numbers and weights would overflow.
    if (
        isinstance(answer, np.ndarray)
        and answer.dtype.kind == "i"
        and answer.dtype.itemsize >= _SCORE_BYTES_MIN
        and answer.shape == (rows,)
    ):
        return
    wanted = f"an array of int64, one for each of {rows} rows"
    if not isinstance(answer, np.ndarray):
        refuse(method, wanted, answer)
    if answer.shape != (rows,):
        raise WrongAnswerError(method, f"must return {wanted}, not the shape {answer.shape}")
    round_it = "round it and " if answer.dtype.kind == "f" else ""
    hint = f"{round_it}use .astype(np.int64)"
    raise WrongAnswerError(method, f"must return {wanted}, not of {answer.dtype}; {hint}")


def check_score(method: str, answer: object, _args: Sequence[object] = ()) -> None:
    """Check the score of one row."""
    if type(answer) is int and -_SCORE_MAX <= answer <= _SCORE_MAX:
        return
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    if not isinstance(answer, int | np.integer):
        refuse(method, "a whole number", answer)
    if not -_SCORE_MAX <= int(answer) <= _SCORE_MAX:
        refuse(method, "a number of 64 bits", answer)


class _Result(Protocol):
    """What an extension point returns if that is more than a status."""

    @property
    def status(self) -> Status:
        """The outcome."""


def _check_result(method: str, kind: type[T], example: str, answer: object) -> T:
    """Return the answer, which is a result with a status."""
    if not isinstance(answer, kind):
        refuse(method, f"a {kind.__name__}, such as {kind.__name__}({example})", answer)
    check_status(method, answer.status)
    return answer


def _check_still_gates(method: str, answer: object, args: Sequence[Any]) -> None:
    if not isinstance(answer, Sequence) or len(answer) != len(args[0]):
        refuse(method, f"a list with True or False for each of {len(args[0])} pods", answer)


def _check_pre_filter(method: str, answer: object, _args: Sequence[object]) -> None:
    names = _check_result(method, PreFilterResult, "state", answer).node_names
    if names is not None and not isinstance(names, AbstractSet):
        refuse(method, "None or a frozenset of names as node_names", names)


def _check_clonable(method: str, state: object) -> None:
    if state is not None and not is_clonable(state):
        kind = type(state).__name__
        why = "as add_pod and remove_pod change it"
        raise WrongAnswerError(method, f"must return a state with `clone()`, {why}, not {kind}")


def _check_pre_score(method: str, answer: object, _args: Sequence[object]) -> None:
    _check_result(method, PreScoreResult, "state", answer)


def _check_post_filter(method: str, answer: object, _args: Sequence[object]) -> None:
    result = _check_result(method, PostFilterResult, 'unschedulable("")', answer)
    name = result.nominated_node_name
    if not isinstance(name, str | None):
        refuse(method, "None or a node's name as nominated_node_name", name)
    if result.victims and not name:
        raise WrongAnswerError(method, "must name the victims' node as nominated_node_name")
    victims: object = result.victims
    if not isinstance(victims, Sequence):
        refuse(method, "a tuple as victims", victims)
    for victim in victims:
        if not isinstance(victim, PodInfo):
            refuse(method, "PodInfo values of the snapshot as victims", victim)


def _check_permit(method: str, answer: object, _args: Sequence[object]) -> None:
    wanted = "a status and a timeout in seconds, such as (SUCCESS, 0.0)"
    if not isinstance(answer, tuple) or len(answer) != 2:
        refuse(method, wanted, answer)
    status, seconds = answer
    check_status(method, status)
    if not isinstance(seconds, int | float) or not seconds >= 0:
        refuse(method, wanted, seconds)


def _check_text(method: str, answer: object, _args: Sequence[object]) -> None:
    if not isinstance(answer, str):
        refuse(method, "a text", answer)


def _check_texts(method: str, answer: object, _args: Sequence[object]) -> None:
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        refuse(method, "a list of texts", answer)
    for text in answer:
        _check_text(method, text, ())


def check_kinds(answer: Iterable[object]) -> None:
    """Check what `kinds_needed` returns."""
    for kind in answer:
        if not isinstance(kind, NeededKind):
            refuse("kinds_needed", "NeededKind values", kind)


def check_sort_key(answer: object) -> None:
    """Check the key of a QueueSort plugin."""
    if not isinstance(answer, tuple) or not all(isinstance(part, int | float) for part in answer):
        refuse("sort_key", "a tuple of numbers", answer)


def check_events(answer: object) -> None:
    """Check what `events_to_register` returns."""
    wanted = "None or a list of ClusterEventWithHint"
    if not isinstance(answer, Sequence | None):
        refuse("events_to_register", wanted, answer)
    for event in answer or ():
        if not isinstance(event, ClusterEventWithHint):
            refuse("events_to_register", wanted, event)
        found: object = event.event
        if not isinstance(found, ClusterEvent):
            refuse("events_to_register", 'events such as ClusterEvent("Node", Action.ADD)', found)
        action: object = found.action
        if not isinstance(action, int):
            refuse("events_to_register", "events with actions such as Action.ADD", action)
        known = (*RESOURCES, *custom_kinds())
        if event.event.resource not in known:
            text = f"events of {', '.join(known)}, or of a declared custom_resource"
            refuse("events_to_register", text, event.event.resource)


def _check_placements(method: str, answer: object, _args: Sequence[object]) -> None:
    for placement in _check_result(method, GeneratedPlacements, "()", answer).placements:
        if not isinstance(placement, Placement):
            refuse(method, "Placement values as placements", placement)


def _check_placement_score(method: str, answer: object, _args: Sequence[object]) -> None:
    if not isinstance(answer, tuple) or len(answer) != 2:
        refuse(method, "a score and a status, such as (100, SUCCESS)", answer)
    check_score(method, answer[0])
    check_status(method, answer[1])


def _check_placement_scores(method: str, answer: object, args: Sequence[Any]) -> None:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Sequence):
        refuse(method, "scores and a status, such as (scores, SUCCESS)", answer)
    scores, status = answer
    if len(scores) != len(args[0]):
        raise WrongAnswerError(method, f"returned {len(scores)} scores, not {len(args[0])}")
    for score in scores:
        check_score(method, score)
    check_status(method, status)


# Method -> a function of its name, its answer and its arguments.
_CHECKS: Final[Mapping[str, Callable[[str, object, Sequence[Any]], None]]] = {
    "pre_enqueue": check_status,
    "still_gates": _check_still_gates,
    "pre_filter": _check_pre_filter,
    "add_pod": check_status,
    "remove_pod": check_status,
    "filter": _check_rows,
    "filter_row": check_status,
    "post_filter": _check_post_filter,
    "pre_score": _check_pre_score,
    "score": _check_scores,
    "score_row": check_score,
    "normalize_score": _check_scores,
    "reserve": check_status,
    "permit": _check_permit,
    "pre_bind_pre_flight": check_status,
    "pre_bind": check_status,
    "bind": check_status,
    "describe": _check_text,
    "describe_rejection": _check_text,
    "describe_wait": _check_texts,
    "generate_placements": _check_placements,
    "score_placement": _check_placement_score,
    "normalize_placement_scores": _check_placement_scores,
}


class AnswerChecks:
    """Checks the answers of one plugin.

    Attributes:
        timed: The methods that were timed; only their answers are checked from then on.
    """

    def __init__(self, plugin: str, now: Callable[[], float], *, needs_clone: bool = False) -> None:
        """Take the plugin's name and a monotonic clock in seconds.

        With `needs_clone`, the state that `pre_filter` returns must have the method.
        """
        self.timed: set[str] = set()
        self._plugin = plugin
        self._now = now
        self._needs_clone = needs_clone
        self._calls: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}

    def ask(self, method: str, question: Callable[[*Arguments], R], *args: *Arguments) -> R:
        """Call a method of the plugin, by its name and itself, and check what it returns.

        Raises WrongAnswerError if the answer is wrong, or an object was changed.
        """
        self._calls[method] += 1
        calls = self._calls[method]
        if calls > _TIMED_CALLS:
            answer = question(*args)
            self.check(method, answer, args)
            return answer
        objects: Sequence[object] = args if calls <= _COMPARED_CALLS else ()
        before = [*map(_text_of, objects)]
        began = self._now()
        answer = question(*args)
        self._add_time(method, self._now() - began)
        self.check(method, answer, args)
        for item, was in zip(objects, before, strict=True):
            if was != _text_of(item):
                what = f"pod {item.key}" if isinstance(item, PodInfo) else "a Node object"
                raise WrongAnswerError(
                    method, f"changed {what}, which the scheduler shares: change a copy.deepcopy"
                )
        if calls == _TIMED_CALLS:
            self.timed.add(method)
        return answer

    def check(self, method: str, answer: object, args: Sequence[object]) -> None:
        """Check what a method returned for `args`; raises WrongAnswerError."""
        check_answer(method, answer, args)
        if self._needs_clone and isinstance(answer, PreFilterResult) and not answer.status.is_skip:
            _check_clonable(method, answer.state)

    async def ask_async(
        self, question: Callable[[*Arguments], Awaitable[R]], args: tuple[*Arguments]
    ) -> R:
        """Await a method of the plugin, and check what it returns.

        While it awaits something, other pods do not wait for it, and its time does not count.
        Raises WrongAnswerError if the answer is wrong.
        """
        method, awaited = question.__name__, question(*args)
        self._calls[method] += 1
        if self._calls[method] <= _TIMED_CALLS:
            awaited = self._timed(method, awaited)
        answer = await awaited
        check_answer(method, answer, args)
        return answer

    @coroutine
    def _timed(self, method: str, awaited: Awaitable[R]) -> Generator[Any, Any, R]:
        """Add the time of each step of a coroutine, from one future that it awaits to the next."""
        steps = awaited.__await__()
        proceed: Callable[[], Any] = partial(next, steps)
        while True:
            began = self._now()
            try:
                future = proceed()
            except StopIteration as end:
                answer: R = end.value
                return answer
            finally:
                self._add_time(method, self._now() - began)
            try:
                proceed = partial(steps.send, (yield future))
            except BaseException as error:  # noqa: BLE001 - the coroutine gets it
                proceed = partial(steps.throw, error)

    def _add_time(self, method: str, seconds: float) -> None:
        """Add a time to those of a method, and warn when the method turns out to be slow."""
        before = self._seconds.get(method, 0.0)
        self._seconds[method] = total = before + seconds
        if before < _SLOW_SECONDS <= total:
            calls = self._calls[method]
            write(
                log,
                logging.WARNING,
                "A plugin is slow, and all pods wait for it",
                plugin=self._plugin,
                method=method,
                calls=calls,
                mean=f"{total / calls:.3g}s",
            )


def check_answer(method: str, answer: object, args: Sequence[object]) -> None:
    """Check what a method returned for `args`; raises WrongAnswerError."""
    check = _CHECKS.get(method)
    if check is not None:
        check(method, answer, args)


def _text_of(arg: object) -> str:
    """Return what an argument has of Kubernetes' objects, as text; "" if it has none."""
    if isinstance(arg, PodInfo):
        return repr(arg.pod)
    if isinstance(arg, NodeTable):
        return repr(arg.nodes[:_WATCHED_NODES])
    return ""
