"""Checks what the methods of plugins that are not in-tree return, and that they change no object.

A wrong answer is the plugin's error, like an exception: without the check it would fail later, and
far from the plugin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NoReturn

import numpy as np

from kubesched.framework.cluster_event import ClusterEventWithHint
from kubesched.framework.plugin import PostFilterResult, PreFilterResult, PreScoreResult
from kubesched.framework.status import NodeToStatus, Status
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo

_WATCHED_CALLS: Final = 20
"""How many calls of each method are checked for changes of objects; a change shows in the first."""
_WATCHED_NODES: Final = 2


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


def check_status(method: str, answer: object) -> None:
    """Check a status; codes that an extension point does not take fail as upstream's do."""
    if not isinstance(answer, Status):
        refuse(method, "a Status such as SUCCESS", answer)
    texts = (answer.error, *answer.reasons)
    if not isinstance(answer.reasons, tuple) or not all(isinstance(text, str) for text in texts):
        raise WrongAnswerError(method, f"must give reasons as texts, not {answer.reasons!r}")


def _check_rows(method: str, answer: object, rows: int) -> None:
    if not isinstance(answer, NodeToStatus):
        refuse(method, "a NodeToStatus, such as NodeToStatus.passing(len(nodes))", answer)
    if len(answer) != rows:
        raise WrongAnswerError(method, f"answered for {len(answer)} rows, not for all {rows}")
    for status in answer.statuses:
        check_status(method, status)
    if rows and not 0 <= answer.index.min() <= answer.index.max() < len(answer.statuses):
        raise WrongAnswerError(method, "must reject rows by a mask of bools, a bool per row")


def _check_scores(method: str, answer: object, rows: int) -> None:
    wanted = f"an array of int64, one for each of {rows} rows"
    if not isinstance(answer, np.ndarray):
        refuse(method, wanted, answer)
    if answer.dtype.kind not in "iu":
        hint = "; round it and use .astype(np.int64)" if answer.dtype.kind == "f" else ""
        raise WrongAnswerError(method, f"must return {wanted}, not of {answer.dtype}{hint}")
    if answer.shape != (rows,):
        raise WrongAnswerError(method, f"must return {wanted}, not the shape {answer.shape}")


def check_score(method: str, answer: object) -> None:
    """Check the score of one row."""
    is_whole = isinstance(answer, int | np.integer)
    if not is_whole and not (isinstance(answer, float) and answer.is_integer()):
        refuse(method, "a whole number", answer)


def _check_pre_filter(method: str, answer: object, _args: Sequence[object]) -> None:
    if not isinstance(answer, PreFilterResult):
        refuse(method, "a PreFilterResult, such as PreFilterResult(state)", answer)
    check_status(method, answer.status)
    names = answer.node_names
    if names is not None and not isinstance(names, AbstractSet):
        refuse(method, "None or a frozenset of names as node_names", names)


def _check_pre_score(method: str, answer: object, _args: Sequence[object]) -> None:
    if not isinstance(answer, PreScoreResult):
        refuse(method, "a PreScoreResult, such as PreScoreResult(state)", answer)
    check_status(method, answer.status)


def _check_post_filter(method: str, answer: object, _args: Sequence[object]) -> None:
    if not isinstance(answer, PostFilterResult):
        refuse(method, 'a PostFilterResult, such as PostFilterResult(unschedulable(""))', answer)
    check_status(method, answer.status)
    name = answer.nominated_node_name
    if not isinstance(name, str | None):
        refuse(method, "None or a node's name as nominated_node_name", name)
    for victim in answer.victims:
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


def _check_status(method: str, answer: object, _args: Sequence[object]) -> None:
    check_status(method, answer)


# Method -> a function of its name, its answer and its arguments.
_CHECKS: Final[Mapping[str, Callable[[str, object, Sequence[object]], None]]] = {
    "pre_enqueue": _check_status,
    "pre_filter": _check_pre_filter,
    "add_pod": _check_status,
    "remove_pod": _check_status,
    "filter": lambda method, answer, args: _check_rows(method, answer, _length(args[-1])),
    "filter_row": _check_status,
    "post_filter": _check_post_filter,
    "pre_score": _check_pre_score,
    "score": lambda method, answer, args: _check_scores(method, answer, _length(args[-1])),
    "score_row": lambda method, answer, _args: check_score(method, answer),
    "normalize_score": lambda method, answer, args: _check_scores(
        method, answer, _length(args[-1])
    ),
    "reserve": _check_status,
    "permit": _check_permit,
    "pre_bind_pre_flight": _check_status,
    "pre_bind": _check_status,
    "bind": _check_status,
}


def _length(value: object) -> int:
    assert isinstance(value, NodeTable | np.ndarray), "a table or its rows"
    return len(value)


class AnswerChecks:
    """Checks the answers of the plugins of a profile."""

    def __init__(self) -> None:
        self._watched: Counter[str] = Counter()

    def before(self, plugin: str, method: str, args: Sequence[object]) -> Sequence[str]:
        """Return what `args` have of Kubernetes' objects, for `after`; empty after some calls."""
        call = f"{plugin}.{method}"
        if self._watched[call] >= _WATCHED_CALLS:
            return ()
        self._watched[call] += 1
        return [*map(_objects_of, args)]

    def after(
        self, method: str, answer: object, args: Sequence[object], objects: Sequence[str]
    ) -> None:
        """Check an answer, and that the objects are as they were.

        Raises:
            WrongAnswerError: The answer is wrong, or an object was changed.
        """
        check = _CHECKS.get(method)
        if check is not None:
            check(method, answer, args)
        for arg, was in zip(args, objects, strict=False):
            if was and was != _objects_of(arg):
                what = f"pod {arg.key}" if isinstance(arg, PodInfo) else "a Node object"
                raise WrongAnswerError(
                    method, f"changed {what}, which the scheduler shares: change a copy.deepcopy"
                )


def _objects_of(arg: object) -> str:
    if isinstance(arg, PodInfo):
        return repr(arg.pod)
    if isinstance(arg, NodeTable):
        return repr(arg.nodes[:_WATCHED_NODES])
    return ""
