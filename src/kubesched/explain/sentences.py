"""An explanation as English sentences.

Differs:  upstream has one sentence, the message of the pod's condition, which is unchanged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from kubesched.explain.report import (
    Answer,
    PodExplanation,
    PodOutcome,
    PreemptionExplanation,
    PreFilterStep,
    Unknown,
)
from kubesched.explain.saving import get_command

K = TypeVar("K")
T = TypeVar("T")


def grouped_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items of each key, in the order in which the keys first appear."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def largest_first(groups: Mapping[K, list[T]]) -> list[tuple[K, list[T]]]:
    """Return groups by falling size; equally large ones keep their order."""
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def answer_groups(answers: Iterable[tuple[str, Answer]]) -> list[list[tuple[str, Answer]]]:
    """Return nodes with their answers in groups of the same plugin, code and reasons.

    The largest group comes first.
    """
    groups = grouped_by(answers, lambda one: (one[1].plugin, one[1].code, one[1].message))
    return [group for _, group in largest_first(groups)]


# Sentences.

_NAMES_MAX = 3
_USUAL_CODE = "Unschedulable"
_DETAILS_MAX = 3


def headline(report: PodExplanation) -> str:
    """Return the sentence with the outcome for the pod."""
    subject = f"Pod {report.pod}"
    match report.outcome:
        case PodOutcome.GATED:
            held = report.held_by
            assert held is not None, "a gated pod is held by a plugin"
            return f"{subject} is held back by {held.plugin}: {held.message}."
        case PodOutcome.ERROR:
            return f"{subject} cannot be judged: {report.message}."
        case PodOutcome.UNKNOWN if not is_rejected_everywhere(report):
            return f"Whether pod {report.pod} fits is not known."
        case PodOutcome.SCHEDULABLE:
            awaited = " and ".join(report.waits_for)
            text = f"{subject} goes to {report.node}{f' when it has {awaited}' * bool(awaited)}."
            return as_far_as_known(report, report.with_gang or text)
        case _ if not report.node_count:
            return f"{subject} cannot be placed: there are no nodes."
        case _:
            text = f"{subject} {fits_nowhere(report.node_count)}."
            return as_far_as_known(report, text) if report.outcome is PodOutcome.UNKNOWN else text


def is_rejected_everywhere(report: PodExplanation) -> bool:
    """Whether every node rejects the pod, as far as is known; False without nodes."""
    return bool(report.nodes) and all(verdict.rejections for verdict in report.nodes)


def summary(report: PodExplanation) -> str:
    """Return the sentence after the headline: the runner-up, or what would help."""
    if report.outcome is PodOutcome.SCHEDULABLE:
        return _reason_for_node(report)
    if report.outcome is PodOutcome.UNSCHEDULABLE and report.preemption is not None:
        return as_far_as_known(report, preemption_sentence(report.preemption))
    return ""


def as_far_as_known(report: PodExplanation, text: str) -> str:
    """Return a sentence, marked as uncertain if the files lack objects."""
    if not report.unknown or not text:
        return text
    return f"As far as is known, {text[:1].lower()}{text[1:]}"


def unknown_sentences(unknown: Sequence[Unknown]) -> Iterator[str]:
    """Yield what the files lack and why it matters, then the command that prints it."""
    for why, found in grouped_by(unknown, lambda one: one.why).items():
        yield f"{names([_plural(one.kind) for one in found])}: {why}"
    yield f"to know, also read what this prints: {get_command(*(one.kind for one in unknown))}"


def _plural(kind: str) -> str:
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _reason_for_node(report: PodExplanation) -> str:
    if report.nominated_hit:
        return "It was nominated to that node and fits there, so no other node was tried."
    all_nodes = count(report.node_count, "node")
    if report.feasible_count == 1:
        if report.node_count == 1:
            return "It is the only node there is."
        return f"Of {all_nodes} no other can take the pod."
    fits = f"It fits {report.feasible_count:,} of {all_nodes}"
    if report.ties:
        others = names([name for name in report.ties if name != report.node])
        return f"{fits}; {report.node} ties with {others}, and one of them is drawn."
    best, second = report.scores[:2]
    return f"{fits}; {best.node} scores highest, {best.total} to {second.total} of {second.node}."


def preemption_sentence(preemption: PreemptionExplanation) -> str:
    """Return whether and where evicting pods would help."""
    if not preemption.eligible:
        return f"It may not preempt other pods: {preemption.reason.removesuffix('.')}."
    if preemption.chosen:
        chosen = next(c for c in preemption.candidates if c.node == preemption.chosen)
        victims = count(len(chosen.victims), "pod")
        return f"Evicting {victims} on {chosen.node} would make room for it."
    if not preemption.not_helped:
        return "Evicting other pods would help on no node."
    nodes = count(len(preemption.not_helped), "node")
    return f"Evicting other pods was tried on {nodes}, without success."


def choice_sentence(preemption: PreemptionExplanation) -> str:
    """Return why the candidate was chosen; empty if there was no choice."""
    others = len(preemption.candidates) - 1
    if not preemption.chosen or not others:
        return ""
    text = f"{preemption.chosen} is chosen before {count(others, 'other candidate')}"
    if preemption.ties:
        return (
            f"{text}: {preemption.decided_by} of {len(preemption.ties)} that are equal otherwise."
        )
    return f"{text}: {preemption.decided_by}."


def pre_filter_sentences(step: PreFilterStep) -> Iterator[str]:
    """Yield the result of PreFilter."""
    if step.plugin:
        yield f"{step.plugin} rejects the pod as a whole: {', '.join(step.reasons)}."
    elif step.code != "Success":
        yield f"The pod is rejected as a whole: {', '.join(step.reasons)}."
    if step.detail:
        yield f"{step.detail[:1].upper()}{step.detail[1:]}."
    if step.restricted_to is not None:
        whom = " and ".join(step.restricted_by) or "A plugin"
        allowed = names(step.restricted_to) if step.restricted_to else "no node"
        yield f"{whom} {'leave' if len(step.restricted_by) > 1 else 'leaves'} only {allowed}."


def group_heading(group: Sequence[tuple[str, Answer]]) -> str:
    """Return how many nodes of a group there are, which plugin rejected them, and why."""
    _, answer = group[0]
    code = "" if answer.code == _USUAL_CODE else answer.code
    by_whom = ", ".join(part for part in (answer.plugin, code) if part)
    text = f"{count(len(group), 'node')}: {answer.message or 'no reason given'}"
    return f"{text} ({by_whom})" if by_whom else text


def group_details(group: Sequence[tuple[str, Answer]]) -> Iterator[str]:
    """Yield a few nodes of a group with their details, the most frequent detail first."""
    details = largest_first(grouped_by(group, lambda one: one[1].detail))
    for detail, found in details[:_DETAILS_MAX]:
        listed = names([node for node, _ in found])
        yield f"{listed}: {detail}" if detail else listed
    left = sum(len(found) for _, found in details[_DETAILS_MAX:])
    if left:
        yield f"and {left:,} more"


def names(listed: Sequence[str]) -> str:
    """Return the first names and the number of others."""
    shown = listed if len(listed) <= _NAMES_MAX + 1 else listed[:_NAMES_MAX]
    more = len(listed) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def there_are(noun: str, listed: Sequence[str]) -> str:
    """Return the existing names in words, for a message about a name that does not exist."""
    if not listed:
        return f"there are no {_plural(noun)}"
    return f"there {'is only' if len(listed) == 1 else 'are'} {names(listed)}"


def phrases(found: Iterable[tuple[int, str, str]], noun: str = "") -> str:
    """Return numbers with their words for one and for many, without those that are 0.

    The first number has the noun, if there is one.
    """
    listed = [(number, one if number == 1 else many) for number, one, many in found if number]
    return ", ".join(
        f"{number:,} {words}" if at or not noun else f"{count(number, noun)} {words}"
        for at, (number, words) in enumerate(listed)
    )


def count(number: int, noun: str) -> str:
    """Return the number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def fits_nowhere(nodes: int) -> str:
    """Return the rest of a sentence about a pod that fits none of `nodes` nodes."""
    return "does not fit the only node" if nodes == 1 else f"fits none of {nodes:,} nodes"
