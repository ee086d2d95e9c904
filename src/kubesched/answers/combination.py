"""Changes of a pod that make it fit together when no single one does.

Each step takes the change after which the pod is rejected for the fewest reasons on its best node;
among equals, the smallest kind of change. Amounts are searched for at the end.

Invariants: the changes that are returned place the pod together; without any one of them it does
            not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubesched.answers.pod_changes import (
    ContainerRequest,
    Draft,
    draft_of,
    drafts,
    most_that_fits,
    request_limits,
    requests_of,
    required_pod_terms,
)
from kubesched.answers.trial import ChangeKind, ChangeTrial, SuggestedChange, by_size
from kubesched.api.core import Pod
from kubesched.api.quantity import Quantity

_STEPS_MAX: Final = 5
_NOTHING: Final = "0"


def changes_together(trial: ChangeTrial) -> tuple[SuggestedChange, ...]:
    """Return a few changes of the pod that place it together; none if they were not found."""
    steps = _steps(trial)
    if not steps:
        return ()
    kept = list(steps)
    for step in steps[:-1]:
        rest = [other for other in kept if other is not step]
        if trial.node_for(_changed(trial, rest)):
            kept = rest
    return _with_amounts(trial, kept)


def _steps(trial: ChangeTrial) -> list[SuggestedChange]:
    steps: list[SuggestedChange] = []
    pod, distance = trial.pod, trial.distance(trial.pod)
    while distance and len(steps) < _STEPS_MAX:
        found = [
            (trial.distance(draft.pod), by_size(draft.change), draft)
            for draft in _candidates(ChangeTrial(trial.cluster, pod))
        ]
        if not found:
            return []
        nearest, _, draft = min(found, key=lambda one: one[:2])
        if nearest >= distance:
            return []
        steps.append(draft.change)
        pod, distance = draft.pod, nearest
    return [] if distance else steps


def _candidates(trial: ChangeTrial) -> Iterator[Draft]:
    yield from drafts(trial)
    yield from _without_all_terms(trial.pod)
    for request in _requests(trial.pod):
        yield Draft(request.lowered(trial.pod, _NOTHING), request.put(trial.pod, _NOTHING))


def _requests(pod: Pod) -> Iterator[ContainerRequest]:
    yield from requests_of(pod)
    yield from request_limits(pod)


def _without_all_terms(pod: Pod) -> Iterator[Draft]:
    """Yield the pod without the required terms of a kind: dropping one may change no reason."""
    for path, words, terms in required_pod_terms(pod):
        if len(terms) > 1:
            kind, before = ChangeKind.DROP_CONSTRAINT, f"{len(terms)} terms"
            sentence = f"drop all {len(terms)} required terms of {words}"
            yield draft_of(pod, path, (), kind, sentence, before, size=1.0)


def _changed(
    trial: ChangeTrial, steps: list[SuggestedChange], amounts: dict[str, Quantity] | None = None
) -> Pod:
    """Return the pod after changes; they are found by sentence, as field paths may have changed."""
    pod = trial.pod
    requests = {request.field: request for request in _requests(pod)}
    for step in steps:
        if step.kind is ChangeKind.LOWER_REQUEST:
            pod = requests[step.field].put(pod, (amounts or {}).get(step.field, _NOTHING))
        else:
            found = _candidates(ChangeTrial(trial.cluster, pod))
            pod = next(draft.pod for draft in found if draft.change.sentence == step.sentence)
    return pod


def _with_amounts(trial: ChangeTrial, steps: list[SuggestedChange]) -> tuple[SuggestedChange, ...]:
    """Replace requests of 0 by the largest that fit, one after another."""
    found: list[SuggestedChange] = []
    requests = {request.field: request for request in _requests(trial.pod)}
    for step in steps:
        if step.kind is ChangeKind.LOWER_REQUEST:
            request = requests[step.field]
            rest = [other for other in steps if other is not step]
            pod = _changed(trial, rest, {one.field: one.after for one in found})
            amount = most_that_fits(trial, pod, request)
            assert amount is not None, "nothing was requested when it fitted"
            found.append(request.lowered(trial.pod, amount))
        else:
            found.append(step)
    node = trial.node_for(_changed(trial, steps, {one.field: one.after for one in found}))
    return tuple(replace(step, node=node) for step in found)
