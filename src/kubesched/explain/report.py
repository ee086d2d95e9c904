"""The explanation of a pod as data.

Upstream: pkg/scheduler/schedule_one.go, framework/preemption (v1.36): the decisions explained
Invariants: `nodes` are sorted by name; `scores` by rank.
Differs:  upstream keeps a count per reason; here each node keeps its own reasons.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from kubesched.explain.document import Document, DocumentPart
from kubesched.framework.plugin import Decides


class PodOutcome(StrEnum):
    """The outcome for the pod."""

    SCHEDULABLE = "Schedulable"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    ERROR = "Error"
    UNKNOWN = "Unknown"


class Unknown(DocumentPart, frozen=True):
    """A kind that the decision depends on and the files have no object of.

    Attributes:
        kind: The kind's name.
        decides: What its objects may change in the decision.
        why: How the pod depends on them.
        command: The command that prints all objects of the kind.
    """

    kind: str
    decides: Decides
    why: str
    command: str


class Answer(DocumentPart, frozen=True):
    """A plugin's status.

    Attributes:
        plugin: The plugin's name; empty if the status is not from a single plugin.
        code: The status code's name.
        reasons: Upstream's messages, sorted.
        detail: The amounts, taints or labels that decided on this node; empty if there is nothing
            to add.
    """

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()
    detail: str = ""

    @property
    def message(self) -> str:
        """The reasons as one text."""
        return ", ".join(self.reasons)


class NodeVerdict(DocumentPart, frozen=True):
    """One node's outcome.

    Attributes:
        node: Its name.
        feasible: Whether the pod fits.
        tried: Whether filters ran on it.
        rejections: The first rejection, or all of them if all filters ran.
        unknown: Whether the files lack objects that decide this; then there are no rejections.
    """

    node: str
    feasible: bool
    tried: bool = True
    rejections: tuple[Answer, ...] = ()
    unknown: bool = False


class PreFilterStep(DocumentPart, frozen=True):
    """The result of the PreFilter plugins.

    Attributes:
        code: The name of the combined status code.
        plugin: The plugin that rejected the pod; empty if none did.
        reasons: The messages of the rejection.
        detail: The claims or classes that decided; empty if there is nothing to add.
        skipped: Plugins whose filter has nothing to do for this pod.
        restricted_to: The nodes that PreFilter plugins allow; None for all nodes.
        restricted_by: The plugins that restricted them.
    """

    code: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    detail: str = ""
    skipped: tuple[str, ...] = ()
    restricted_to: tuple[str, ...] | None = None
    restricted_by: tuple[str, ...] = ()


class PluginScore(DocumentPart, frozen=True):
    """One plugin's score for one node.

    Attributes:
        plugin: The plugin's name.
        raw: As the plugin returned it.
        normalized: From 0 to 100.
        weight: The plugin's weight.
        weighted: What is added to the node's total.
    """

    plugin: str
    raw: int
    normalized: int
    weight: int
    weighted: int


class NodeScore(DocumentPart, frozen=True):
    """The scores of a feasible node.

    Attributes:
        node: Its name.
        rank: 1 for the highest total; nodes with equal totals have the same rank.
        total: The sum of the weighted scores.
        scores: Per plugin, in the profile's order.
    """

    node: str
    rank: int
    total: int
    scores: tuple[PluginScore, ...] = ()


class Victim(DocumentPart, frozen=True):
    """A pod that would be evicted.

    Attributes:
        pod: `namespace/name`.
        priority: Its priority.
    """

    pod: str
    priority: int


class PreemptionCandidate(DocumentPart, frozen=True):
    """A node where the pod fits after evicting the victims, most important first.

    Attributes:
        node: Its name.
        victims: The pods to evict.
        pdb_violations: Number of victims that a budget protects; None if budgets are unknown.
    """

    node: str
    victims: tuple[Victim, ...]
    pdb_violations: int | None = 0


class NotHelped(DocumentPart, frozen=True):
    """A node where preemption was tried without success.

    Attributes:
        node: Its name.
        answer: Why evicting pods does not help there.
    """

    node: str
    answer: Answer


class PreemptionExplanation(DocumentPart, frozen=True):
    """How preemption chose its victims.

    Attributes:
        eligible: Whether the pod may preempt at all.
        reason: Why it may not.
        candidates: The nodes where evicting pods would help.
        chosen: The chosen candidate's node; empty if there is none.
        decided_by: The criterion that decided between candidates.
        ties: The candidates that are equal in all criteria, including the chosen one.
        not_helped: The nodes that were tried without success.
        not_tried: Number of nodes that were rejected for a reason that evictions cannot resolve.
    """

    eligible: bool
    reason: str = ""
    candidates: tuple[PreemptionCandidate, ...] = ()
    chosen: str = ""
    decided_by: str = ""
    ties: tuple[str, ...] = ()
    not_helped: tuple[NotHelped, ...] = ()
    not_tried: int = 0


class PostFilterStep(DocumentPart, frozen=True):
    """The result of a PostFilter plugin.

    Attributes:
        plugin: The plugin's name.
        code: The status code's name.
        reasons: Its messages.
    """

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()


class RetryEvents(DocumentPart, frozen=True):
    """The events that requeue a pod.

    Attributes:
        plugin: The plugin that rejected the pod.
        events: The events that may change its answer, such as `Node added`.
    """

    plugin: str
    events: tuple[str, ...]


class PodExplanation(Document, frozen=True, kw_only=True):
    """Why a pod is placed on its node, or why it is not placed.

    Attributes:
        pod: `namespace/name`.
        scheduler_name: The profile that decided.
        priority: The pod's priority.
        outcome: The outcome for the pod.
        node: The chosen node; empty if there is none.
        message: The message of the condition PodScheduled=False, as kubectl shows it.
        waits_for: Steps before it can be bound, such as provisioning a volume.
        bound_to: The node it runs on already; the decision is then made without the pod there.
        nominated_node: The node it was nominated to before this attempt.
        nominated_hit: Whether the nominated node fits, so that no other was tried.
        notes: Remarks that matter for reading the explanation.
        node_count: Number of nodes.
        feasible_count: Number of feasible nodes.
        held_by: The status of the PreEnqueue plugin that holds it back.
        pre_filter: The PreFilter result; None if PreFilter did not run.
        all_filters: Whether every filter ran on every node.
        nodes: Every node's outcome.
        ties: The best nodes, if more than one; one of them is chosen at random.
        scores: The scores of the feasible nodes, if there was a choice.
        skipped_scores: Score plugins that had nothing to score for this pod.
        post_filters: The results of the PostFilter plugins.
        preemption: How preemption chose its victims; None if it did not run.
        retry_after: Events that requeue the pod, per plugin that rejected it.
        unknown: The kinds that the decision depends on and the files lack.
        with_gang: What becomes of the pod if it is placed with its gang; empty for a pod without a
            gang, or that does not fit alone. All other fields are about the pod alone.
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
    with_gang: str = ""

    def narrowed(self, names: frozenset[str]) -> PodExplanation:
        """Return the explanation restricted to these nodes' outcomes and scores."""
        return replace(
            self,
            nodes=tuple(verdict for verdict in self.nodes if verdict.node in names),
            scores=tuple(score for score in self.scores if score.node in names),
        )
