"""Memory keeps plugin answers per pod signature and updates the rows that changed.

Pods come from templates, and binding one pod changes one row. What this room remembers, from what
many pods share to what few do:

    what                               for pods of one    until                  by
    answers that read Node objects     shared signature   a node changes         `NodeAnswers`
    answers for rows, from the second  signature          their row changes,     `SignatureAnswers`
      pod on                                              then for that row
    answers Skip that last, from the   template           another object or an   `Memory`
      second pod on                                       affinity term changes
    rejections of rows by pods that    signature and      the row or its         `NominatedRows`
      are nominated there              priority           nominations change
    the reasons of a rejection         template           a row's status changes `Rejecting`
    a rejection                        template           anything changes       `RejectionMemory`

A cycle starts with the answers that `recall` returns, updated for the rows that have changed since,
and runs only the other plugins on all rows. Pods that were rejected in the same way are then not
even tried: `scheduler.repeated_rejections`.

Invariants: pods of equal signature get the same answers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, TypeVar

from kubesched.scheduler.answers import Answers, NodeAnswers
from kubesched.scheduler.plan import NODE_SCOPES, ROW_SCOPES, Plan, Skip
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.signature_answers import SignatureAnswers
from kubesched.scheduler.signatures import Signature, Signatures
from kubesched.snapshot.affinity_terms import OwnedTerms
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

_BYTES_MAX: Final = 43 * 1024 * 1024
"""Memory limit for the answers per signature."""
_NODE_BYTES_MAX: Final = 17 * 1024 * 1024
"""Memory limit for the answers of scope node. When pods differ, most are not used again."""
_BYTES_PER_SIGNATURE: Final = 6 * 1024
"""A plan and empty answers."""
_BYTES_PER_ROW: Final = 16
"""A total, the first rejection, and whether there is one."""
_SIGNATURES_MIN: Final = 8
_TEMPLATES_MAX: Final = 2048

_Stamp = tuple[Objects, int, OwnedTerms, int]
"""What lasting answers Skip depend on: objects and affinity terms, with their versions."""

K = TypeVar("K")
V = TypeVar("V")


class Memory:
    """The remembered answers of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._signatures = Signatures(profile)
        # Signatures that appeared once; most never appear again.
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._answers: OrderedDict[int, SignatureAnswers] = OrderedDict()
        self._node_answers: OrderedDict[int, NodeAnswers] = OrderedDict()
        # Signature.alike -> Signature.shared of the latest answers.
        self._latest_alike: OrderedDict[int, int] = OrderedDict()
        self._versions: tuple[int, ...] = ()
        self._stamp: _Stamp | None = None
        self._skips: OrderedDict[PodTemplate, frozenset[Skip]] = OrderedDict()

    def recall(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Answers | None, bool]:
        """Return remembered answers for the pod, and whether a pod of equal signature left them.

        The answers are None if its signature allows none. Raises PluginFailure if a plugin fails.
        """
        timer = self._profile.timer
        began = timer.now()
        known, is_hinted = None, False
        try:
            known, is_hinted = self._recall(pod, snapshot)
            # As upstream, a nominated pod gets no hint.
            is_hinted &= not pod.pod.status.nominated_node_name
        finally:
            timer.got_node_hint(timer.now() - began, is_hinted=is_hinted)
        return (known if known is not None and known.usable else None), is_hinted

    def plan_for(self, pod: PodInfo, known: Answers) -> Plan:
        """Return the plan of `known`, without plugins whose kept Skip holds for the pod."""
        skips = self._skips.get(pod.template)
        return known.plan if skips is None else known.plan.without(skips)

    def keep_skips(self, pod: PodInfo, skips: Iterable[Skip]) -> None:
        """Keep answers Skip for pods of the template, for as long as they last.

        The first pod of a template keeps none: where pods differ, no other comes.
        """
        if self._signatures.is_new_template:
            return
        template = pod.template
        kept = self._skips.get(template, frozenset())
        _keep(self._skips, template, kept.union(skips), _TEMPLATES_MAX)

    def _recall(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Answers | None, bool]:
        objects, terms = snapshot.objects, snapshot.nodes.groups.owned_terms
        stamp = objects, objects.changes, terms, terms.version
        if stamp != self._stamp:
            self._stamp = stamp
            self._skips.clear()
            self._forget_if_signs_changed(objects)
        signature = self._signatures.of(pod)
        answers = self._answers.get(signature.whole)
        if answers is None:
            rows = len(snapshot.nodes)
            is_kept = signature.shared in self._node_answers
            if not is_kept and self._profile.samples and self._is_new(signature.shared, rows):
                # A sample takes less time than answers for all rows that no other pod uses.
                return None, False
            node_answers = self._answers_of_nodes(signature, pod, snapshot)
            if node_answers.names_nodes or self._is_new(signature.whole, rows):
                return node_answers, False
            answers = self._new_answers(signature, node_answers, pod, snapshot)
        else:
            self._answers.move_to_end(signature.whole)
        if not answers.plan.usable:
            # A plan holds for all pods of its signature, so these answers are never used.
            return answers, False
        asked_all = answers.refresh(pod, snapshot.nodes)
        return answers, not asked_all

    def _is_new(self, signature: int, rows: int) -> bool:
        """Whether a signature, or a shared one, appears for the first time in a while."""
        if signature in self._seen:
            return False
        # After more other signatures than this, its answers would have been dropped.
        _keep(self._seen, signature, None, _limit(rows, _BYTES_MAX))
        return True

    def _new_answers(
        self, signature: Signature, node_answers: NodeAnswers, pod: PodInfo, snapshot: Snapshot
    ) -> SignatureAnswers:
        scopes = NODE_SCOPES | ROW_SCOPES
        plan = Plan.keeping(scopes, self._profile, pod, snapshot, node_answers.plan)
        answers = SignatureAnswers(self._profile, plan, node_answers)
        _keep(self._answers, signature.whole, answers, _limit(len(snapshot.nodes), _BYTES_MAX))
        return answers

    def _answers_of_nodes(
        self, signature: Signature, pod: PodInfo, snapshot: Snapshot
    ) -> NodeAnswers:
        answers = self._node_answers.get(signature.shared)
        if answers is None:
            latest = self._node_answers.get(self._latest_alike.get(signature.alike, -1))
            answers = None if latest is None else latest.alike(pod, snapshot.nodes)
            if answers is None:
                plan = Plan.keeping(NODE_SCOPES, self._profile, pod, snapshot)
                answers = NodeAnswers(self._profile, plan)
            limit = _limit(len(snapshot.nodes), _NODE_BYTES_MAX)
            _keep(self._node_answers, signature.shared, answers, limit)
            _keep(self._latest_alike, signature.alike, signature.shared, limit)
        else:
            self._node_answers.move_to_end(signature.shared)
        if answers.plan.usable:
            answers.refresh(pod, snapshot.nodes)
        return answers

    def _forget_if_signs_changed(self, objects: Objects) -> None:
        """Forget everything if an object has changed that signs read."""
        versions = tuple(map(objects.version, self._profile.signed_kinds))
        if versions != self._versions:
            self._versions = versions
            self._signatures.forget()
            self._seen.clear()
            self._answers.clear()
            self._node_answers.clear()
            self._latest_alike.clear()


def _limit(rows: int, bytes_max: int) -> int:
    return max(_SIGNATURES_MIN, bytes_max // (_BYTES_PER_SIGNATURE + _BYTES_PER_ROW * rows))


def _keep(memory: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    memory[key] = value
    while len(memory) > limit:
        memory.popitem(last=False)
