"""A few changes of a pod that make it fit together, if no single one does.

Invariants: the changes were tried and place the pod, which does not fit without any one of them.
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
from kubesched.snapshot.node_table import NodeTable

# Each step takes the change after which the pod is rejected for the fewest reasons on its best
# node; among equals, the smallest kind of change. Amounts are searched for at the end.

_STEPS_MAX: Final = 5
_NOTHING: Final = "0"


def changes_together(trial: ChangeTrial) -> tuple[SuggestedChange, ...]:
    """Return a few changes that place the pod, made in this order; empty if none are found."""
    steps = _steps(trial)
    if not steps:
        return ()
    kept = list(steps)
    for step in steps[:-1]:
        rest = [other for other in kept if other is not step]
        if trial.node_for(_changed(trial, rest, {})):
            kept = rest
    return _with_amounts(trial, kept)


def _steps(trial: ChangeTrial) -> list[SuggestedChange]:
    steps: list[SuggestedChange] = []
    pod, distance = trial.pod, trial.distance(trial.pod)
    while distance and len(steps) < _STEPS_MAX:
        found = [
            (trial.distance(draft.pod), by_size(draft.change), draft)
            for draft in _candidates(pod, trial.cluster.cache.nodes)
        ]
        if not found:
            return []
        nearest, _, draft = min(found, key=lambda one: one[:2])
        if nearest >= distance:
            return []
        steps.append(draft.change)
        pod, distance = draft.pod, nearest
    return [] if distance else steps


def _candidates(pod: Pod, nodes: NodeTable) -> Iterator[Draft]:
    yield from drafts(pod, nodes)
    yield from _without_all_terms(pod)
    for request in _requests(pod):
        yield Draft(request.lowered(pod, _NOTHING), request.put(pod, _NOTHING))


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


def _made(
    trial: ChangeTrial, steps: list[SuggestedChange], amounts: dict[str, Quantity]
) -> Iterator[Draft]:
    """Make changes one after another; requests become 0 unless there is an amount for the field."""
    pod, requests = trial.pod, {request.field: request for request in _requests(trial.pod)}
    for step in steps:
        if step.kind is ChangeKind.LOWER_REQUEST:
            request, amount = requests[step.field], amounts.get(step.field, _NOTHING)
            draft = Draft(request.lowered(trial.pod, amount), request.put(pod, amount))
        else:
            found = _candidates(pod, trial.cluster.cache.nodes)
            draft = max(found, key=lambda one: _likeness(one.change, step))
            if step.sentence != draft.change.sentence and step.field != draft.change.field:
                continue
        pod = draft.pod
        yield draft


def _likeness(one: SuggestedChange, other: SuggestedChange) -> tuple[bool, ...]:
    """Return how alike two changes are, of which one may follow other changes of the pod.

    The same change may have another index in its field then, or another number in its sentence.
    Changes of different lists may have equal sentences.
    """
    lists = one.field.rpartition("[")[0], other.field.rpartition("[")[0]
    return one.sentence == other.sentence, lists[0] == lists[1], one.field == other.field


def _changed(trial: ChangeTrial, steps: list[SuggestedChange], amounts: dict[str, Quantity]) -> Pod:
    return [trial.pod, *(draft.pod for draft in _made(trial, steps, amounts))][-1]


def _with_amounts(trial: ChangeTrial, steps: list[SuggestedChange]) -> tuple[SuggestedChange, ...]:
    """Replace requests of 0 by the largest that fit, one after another."""
    amounts: dict[str, Quantity] = {}
    requests = {request.field: request for request in _requests(trial.pod)}
    for step in steps:
        if step.kind is ChangeKind.LOWER_REQUEST:
            rest = [other for other in steps if other is not step]
            pod = _changed(trial, rest, amounts)
            amount = most_that_fits(trial, pod, requests[step.field])
            assert amount is not None, "nothing was requested when it fitted"
            amounts[step.field] = amount
    node = trial.node_for(_changed(trial, steps, amounts))
    return tuple(replace(draft.change, node=node) for draft in _made(trial, steps, amounts))
