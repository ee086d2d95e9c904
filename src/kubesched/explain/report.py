"""The explanation of a pod as data: what was asked, what was answered, what follows.

Upstream: pkg/scheduler/schedule_one.go, framework/preemption (v1.36): the decisions explained
Invariants: `nodes` are sorted by name; `scores` by rank.
Differs:  upstream keeps a count per reason; here every node's own answer is kept.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kubesched.framework.needed_kinds import Decides


class PodOutcome(StrEnum):
    """What becomes of the pod."""

    SCHEDULABLE = "Schedulable"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    ERROR = "Error"
    UNKNOWN = "Unknown"


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the report: frozen, JSON names in camelCase."""


class Unknown(_Part, frozen=True):
    """A kind that the files hold no object of, though the answer depends on it.

    Attributes:
        kind: Its name.
        decides: What its objects may change.
        why: What they are to the pod.
        command: Prints all objects of the kind.
    """

    kind: str
    decides: Decides
    why: str
    command: str


class Answer(_Part, frozen=True):
    """What a plugin answered.

    Attributes:
        plugin: Who answered; empty if no single plugin did.
        code: The status code's name.
        reasons: In upstream's words, sorted.
        detail: What decided on this node: amounts, taints, labels; empty if the reason says all.
    """

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()
    detail: str = ""

    @property
    def message(self) -> str:
        """The reasons as one text."""
        return ", ".join(self.reasons)


class NodeVerdict(_Part, frozen=True):
    """One node's outcome.

    Attributes:
        node: Its name.
        feasible: Whether the pod fits.
        tried: Whether the filters were asked about it.
        rejections: The first filter that rejected it, or all of them if all were asked.
        unknown: Whether the files lack what decides this; then there are no rejections.
    """

    node: str
    feasible: bool
    tried: bool = True
    rejections: tuple[Answer, ...] = ()
    unknown: bool = False


class PreFilterStep(_Part, frozen=True):
    """What PreFilter plugins said before any node was looked at.

    Attributes:
        code: The combined outcome's name.
        plugin: Who rejected the pod as a whole; empty if nobody did.
        reasons: Why.
        detail: What decided: claims, classes; empty if the reason says all.
        skipped: Plugins whose filter has nothing to do for this pod.
        restricted_to: The only nodes that can be right; None if any.
        restricted_by: The plugins that said so.
    """

    code: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    detail: str = ""
    skipped: tuple[str, ...] = ()
    restricted_to: tuple[str, ...] | None = None
    restricted_by: tuple[str, ...] = ()


class PluginScore(_Part, frozen=True):
    """One plugin's score for one node: as given, brought into 0..100, times the weight."""

    plugin: str
    raw: int
    normalized: int
    weight: int
    weighted: int


class NodeScore(_Part, frozen=True):
    """A feasible node's scores.

    Attributes:
        node: Its name.
        rank: 1 for the highest total; nodes with equal totals share a rank.
        total: The sum of the weighted scores.
        scores: Per plugin, in the profile's order.
    """

    node: str
    rank: int
    total: int
    scores: tuple[PluginScore, ...] = ()


class Victim(_Part, frozen=True):
    """A pod that would be evicted."""

    pod: str
    priority: int


class PreemptionCandidate(_Part, frozen=True):
    """A node where evicting the victims, the most important first, makes room.

    Attributes:
        node: Its name.
        victims: The pods to evict.
        pdb_violations: How many of them a budget protects; None if budgets are not known.
    """

    node: str
    victims: tuple[Victim, ...]
    pdb_violations: int | None = 0


class NotHelped(_Part, frozen=True):
    """A node that was tried, and why evicting does not help there."""

    node: str
    answer: Answer


class PreemptionExplanation(_Part, frozen=True):
    """How it was decided whom to evict.

    Attributes:
        eligible: Whether the pod may preempt at all.
        reason: Why not.
        candidates: Where evicting would help.
        chosen: The candidate chosen; empty if there is none.
        decided_by: What left it over.
        ties: The candidates that are equal in everything, the chosen one included.
        not_helped: The nodes tried in vain.
        not_tried: How many nodes were rejected in a way that evicting never cures.
    """

    eligible: bool
    reason: str = ""
    candidates: tuple[PreemptionCandidate, ...] = ()
    chosen: str = ""
    decided_by: str = ""
    ties: tuple[str, ...] = ()
    not_helped: tuple[NotHelped, ...] = ()
    not_tried: int = 0


class PostFilterStep(_Part, frozen=True):
    """What a PostFilter plugin answered."""

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()


class RetryEvents(_Part, frozen=True):
    """After which events a pod that `plugin` rejected is tried again."""

    plugin: str
    events: tuple[str, ...]


class PodExplanation(_Part, frozen=True, kw_only=True):
    """Why a pod goes where it goes, or why nowhere.

    Attributes:
        pod: `namespace/name`.
        scheduler_name: The profile that was asked.
        priority: The pod's.
        outcome: What becomes of it.
        node: Where it goes; empty if nowhere.
        message: The message of the condition PodScheduled=False, as kubectl shows it.
        waits_for: What has to happen before it can be bound there, such as a volume being made.
        bound_to: The node it is on already; the question is then asked without it.
        nominated_node: The node it has been promised before this attempt.
        nominated_hit: That node fits, so no other was looked at.
        notes: What else a reader must know to read this rightly.
        node_count: How many nodes there are.
        feasible_count: How many can take the pod.
        held_by: The PreEnqueue plugin's answer that keeps it from being tried.
        pre_filter: What was said before any node was looked at; None if it did not come to that.
        all_filters: Whether every filter was asked about every node.
        nodes: Every node's outcome.
        ties: The best nodes, if more than one; one of them is drawn.
        scores: Of the feasible nodes, if there was a choice.
        skipped_scores: Plugins that had nothing to score for this pod.
        post_filters: What PostFilter plugins answered.
        preemption: How it was decided whom to evict; None if it did not come to that.
        retry_after: Events that make the pod be tried again, per plugin that rejected it.
        unknown: What the files do not say, though the answer depends on it.
    """

    pod: str
    scheduler_name: str
    priority: int
    outcome: PodOutcome
    node: str = ""
    message: str = ""
    waits_for: tuple[str, ...] = ()
    bound_to: str = ""
    nominated_node: str = ""
    nominated_hit: bool = False
    notes: tuple[str, ...] = ()
    node_count: int = 0
    feasible_count: int = 0
    held_by: Answer | None = None
    pre_filter: PreFilterStep | None = None
    all_filters: bool = False
    nodes: tuple[NodeVerdict, ...] = ()
    ties: tuple[str, ...] = ()
    scores: tuple[NodeScore, ...] = ()
    skipped_scores: tuple[str, ...] = ()
    post_filters: tuple[PostFilterStep, ...] = ()
    preemption: PreemptionExplanation | None = None
    retry_after: tuple[RetryEvents, ...] = ()
    unknown: tuple[Unknown, ...] = ()

    def narrowed(self, names: frozenset[str]) -> PodExplanation:
        """Return the explanation with the answers and scores of these nodes alone."""
        return msgspec.structs.replace(
            self,
            nodes=tuple(verdict for verdict in self.nodes if verdict.node in names),
            scores=tuple(score for score in self.scores if score.node in names),
        )
