"""How the decisions of another scheduler, or recorded ones, compare with kubesched's, as data."""

from __future__ import annotations

from enum import StrEnum

from kubesched.explain.document import Document, DocumentPart


class ShadowVerdict(StrEnum):
    """How a decision of the other scheduler compares with kubesched's."""

    AGREED = "Agreed"
    TIE = "Tie"
    CHANGED = "Changed"
    SAMPLED = "Sampled"
    DIFFERENT = "Different"


class ScoreDifference(DocumentPart, frozen=True):
    """The weighted scores of one plugin for the two nodes.

    Attributes:
        plugin: The plugin.
        theirs: Its score for the node of the other scheduler.
        ours: Its score for kubesched's node.
    """

    plugin: str
    theirs: int
    ours: int


class Disagreement(DocumentPart, frozen=True, kw_only=True):
    """A decision of the other scheduler that is not kubesched's, and why.

    Attributes:
        pod: `namespace/name`.
        uid: The pod's uid.
        verdict: Tie: both nodes have the same score. Changed: kubesched decides the same in the
            cluster as it was shortly before or after. Sampled: the node scores lower than another
            one, which the other scheduler need not have looked at. Different: none of these.
        sentence: Why, in one sentence.
        their_node: The node that the pod was bound to; empty if it was left pending.
        their_message: Why the other scheduler left it pending.
        our_node: The node that kubesched chooses; empty if none.
        our_message: Why kubesched would leave it pending.
        seen_version: The resource version of the pod with the other scheduler's decision.
        decided_version: The last resource version in the cluster that kubesched decided on.
        scores: The plugins whose scores for the two nodes differ.
    """

    pod: str
    uid: str
    verdict: ShadowVerdict
    sentence: str
    their_node: str = ""
    their_message: str = ""
    our_node: str = ""
    our_message: str = ""
    seen_version: str = ""
    decided_version: str = ""
    scores: tuple[ScoreDifference, ...] = ()


class ShadowReport(Document, frozen=True, kw_only=True):
    """How the decisions of another scheduler compare with kubesched's.

    Attributes:
        scheduler_name: The scheduler of the pods that were judged.
        seconds: How long it was watched.
        nodes: Number of nodes at the end.
        judged: Number of its decisions that were judged: bindings, and pods left pending.
        bound: The number of bindings among them.
        agreed: Same node, or left pending for the same reasons.
        agreed_late: Those of them where kubesched had chosen another node when the pod appeared,
            before the cluster changed.
        ties: Another node with the same score.
        changed: Agreement only in the cluster as it was shortly before or after.
        sampled: A node with a lower score, in a cluster so large that schedulers look at some nodes
            only.
        different: The rest.
        pending: Pods that wait for a node at the end.
        skipped: Pods that were not judged because they belong to a pod group.
        notes: Remarks that matter for reading the report.
        disagreements: The first 1,000 of each verdict but Agreed.
    """

    scheduler_name: str
    seconds: float
    nodes: int
    judged: int
    bound: int
    agreed: int
    agreed_late: int
    ties: int
    changed: int
    sampled: int
    different: int
    pending: int
    skipped: int
    notes: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()


class ReplayReport(Document, frozen=True, kw_only=True):
    """How recorded decisions compare with those that kubesched would make now.

    Attributes:
        partial: Whether the replay was interrupted.
        recorded_by: `run` or `simulate`, whose recordings have each decision where it was made, or
            `shadow`, which observed another scheduler.
        scheduler_names: The schedulers that decided.
        seconds: How much time of the recording was replayed.
        nodes: Number of nodes at the end.
        judged: Number of decisions that were compared: nodes chosen, and pods left pending.
        same: Same node, or left pending for the same reasons.
        ties: Another node with the same score.
        changed: In a recording of `shadow`, the same only in the cluster as it was shortly before
            or after.
        sampled: A choice that depends on which of more than 100 nodes were looked at.
        different: The rest.
        no_longer_placed: Those of them that had a node and would have none now.
        now_placed: Those of them that had no node and would have one now.
        skipped: Decisions or pods that were not judged because they belong to a pod group.
        notes: Remarks that matter for reading the report.
        disagreements: The first 1,000 of each verdict but Agreed; "their" is what was recorded,
            "our" what kubesched would do now.
    """

    partial: bool
    recorded_by: str
    scheduler_names: tuple[str, ...]
    seconds: float
    nodes: int
    judged: int
    same: int
    ties: int
    changed: int
    sampled: int
    different: int
    no_longer_placed: int
    now_placed: int
    skipped: int
    notes: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
