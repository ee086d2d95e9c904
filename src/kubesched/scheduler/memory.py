"""Memory keeps plugin answers per pod signature and updates the rows that changed.

Pods come from templates, and binding one pod changes one row. So answers of plugins whose scope is
a single row are kept per signature. A cycle updates them for the rows that have changed since, and
runs only the other plugins on all rows. Pods with different signatures often still share what most
plugins read: tolerations, selectors, ports. For a signature that appears for the first time, only
what follows from that part is kept: answers that depend on Node objects alone, and Skips. A Skip
that lasts is kept for the pods of a template, from its second and its signature's third pod on.

Invariants: pods of equal signature get the same answers.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from itertools import compress
from typing import Final, NamedTuple, Self, TypeVar

import msgspec

from kubesched.framework.plugin import UNSIGNED, Plugin
from kubesched.framework.status import Code
from kubesched.scheduler.answers import Answers, NodeAnswers
from kubesched.scheduler.phase_timer import SIGN
from kubesched.scheduler.plan import NODE_SCOPES, ROW_SCOPES, Plan, Skip
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.remembered import Remembered
from kubesched.scheduler.sampling import feasible_nodes_to_find
from kubesched.snapshot.affinity_terms import OwnedTerms
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

_BYTES_MAX: Final = 40 * 1024 * 1024
"""Memory limit for the answers per signature."""
_NODE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Memory limit for the answers of scope node. When pods differ, most are not used again."""
_BYTES_PER_ROW: Final = 16
"""A total, the first rejection, and whether there is one."""
_SIGNATURES_MIN: Final = 8
_TEMPLATES_MAX: Final = 2048
_NUMBERS_MAX: Final = 32_768

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


class Signature(msgspec.Struct, frozen=True, gc=False):
    """Numbers that stand for a pod's signs: of all plugins, and of those with shared answers."""

    whole: int
    shared: int


class _Base(msgspec.Struct, frozen=True, gc=False):
    """The number that stands for the signs of a base, and the codes of the plugins' calls."""

    number: int
    codes: list[Code]


class _Signing(NamedTuple):
    """Plugins that sign, and whether each has an answer that depends on Node objects alone."""

    plugins: list[Plugin]
    look_at_nodes: list[bool]

    @classmethod
    def of(cls, plugins: list[Plugin]) -> Self:
        """Return it for some plugins."""
        scopes = ({plugin.scope, plugin.score_scope} for plugin in plugins)
        return cls(plugins, [not NODE_SCOPES.isdisjoint(each) for each in scopes])


class Memory:
    """The remembered answers of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # Signatures are long tuples, so each is hashed once per template and numbered.
        self._templates: OrderedDict[tuple[PodTemplate, str], Signature] = OrderedDict()
        self._bases: dict[tuple[bytes, str], _Base] = {}
        self._numbers: dict[Hashable, int] = {}
        # Signatures that appeared once; most never appear again.
        self._came: OrderedDict[int, None] = OrderedDict()
        self._answers: OrderedDict[int, Remembered] = OrderedDict()
        self._node_answers: OrderedDict[int, NodeAnswers] = OrderedDict()
        # A plugin that signs no pod returns the same for all of them.
        self._signing_base = [
            p for p in profile.plugins.values() if p.signs_base or type(p).sign is Plugin.sign
        ]
        others = [p for p in profile.plugins.values() if p not in self._signing_base]
        self._signing_template = _Signing.of([p for p in others if profile.signs_by_template(p)])
        self._signing_pod = _Signing.of([p for p in others if not profile.signs_by_template(p)])
        self._kinds = profile.signed_kinds
        self._versions: tuple[int, ...] = ()
        self._objects: Objects | None = None
        self._changes = -1
        self._unsigned: set[str] = set()
        self._latest: Remembered | None = None
        self._skips: OrderedDict[PodTemplate, frozenset[Skip]] = OrderedDict()
        self._is_new_template = False
        self._terms: OwnedTerms | None = None
        self._terms_version = -1

    def recall(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Answers | None, bool]:
        """Return remembered answers for the pod, and whether a pod of equal signature left them.

        The answers are None if its signature allows none.

        Raises:
            PluginFailure: if a plugin fails.
        """
        timer = self._profile.timer
        began = timer.now()
        known, is_hinted = None, False
        try:
            if self._looks_at_all(snapshot):
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
        if self._is_new_template:
            return
        template = pod.template
        kept = self._skips.get(template, frozenset())
        _keep(self._skips, template, kept.union(skips), _TEMPLATES_MAX)

    def _looks_at_all(self, snapshot: Snapshot) -> bool:
        """Whether the search evaluates all nodes, so that their order does not matter."""
        rows, percentage = len(snapshot.nodes), self._profile.percentage_of_nodes_to_score
        return not percentage or feasible_nodes_to_find(rows, percentage) == rows

    def _recall(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Answers, bool]:
        objects = snapshot.objects
        if objects.changes != self._changes or objects is not self._objects:
            self._objects, self._changes = objects, objects.changes
            self._look_at(objects)
            self._skips.clear()
        terms = snapshot.nodes.groups.owned_terms
        if terms.version != self._terms_version or terms is not self._terms:
            self._terms, self._terms_version = terms, terms.version
            self._skips.clear()
        signature = self._templates.get((pod.template, pod.pod.spec.node_name))
        self._is_new_template = signature is None
        if signature is None or self._signing_pod.plugins:
            signature = self._signature_of(pod, signature)
        answers = self._answers.get(signature.whole)
        if answers is None:
            node_answers = self._answers_of_nodes(signature, pod, snapshot)
            if node_answers.names_nodes:
                return node_answers, False
            if signature.whole not in self._came:
                # After more other signatures than this, its answers would have been dropped.
                _keep(self._came, signature.whole, None, _limit(len(snapshot.nodes), _BYTES_MAX))
                return node_answers, False
            answers = self._new_answers(signature, node_answers, pod, snapshot)
        else:
            self._answers.move_to_end(signature.whole)
        if not answers.plan.usable:
            # A plan holds for all pods of its signature, so these answers are never used.
            return answers, False
        if answers is not self._latest:
            if self._latest is not None:
                self._latest.forget_rows()
            self._latest = answers
        asked_all = answers.refresh(pod, snapshot.nodes)
        return answers, not asked_all

    def _new_answers(
        self, signature: Signature, node_answers: NodeAnswers, pod: PodInfo, snapshot: Snapshot
    ) -> Remembered:
        scopes = NODE_SCOPES | ROW_SCOPES
        plan = Plan.keeping(scopes, self._profile, pod, snapshot, node_answers.plan)
        answers = Remembered(self._profile, plan, node_answers)
        _keep(self._answers, signature.whole, answers, _limit(len(snapshot.nodes), _BYTES_MAX))
        return answers

    def _answers_of_nodes(
        self, signature: Signature, pod: PodInfo, snapshot: Snapshot
    ) -> NodeAnswers:
        answers = self._node_answers.get(signature.shared)
        if answers is None:
            plan = Plan.keeping(NODE_SCOPES, self._profile, pod, snapshot)
            answers = NodeAnswers(self._profile, plan)
            limit = _limit(len(snapshot.nodes), _NODE_BYTES_MAX)
            _keep(self._node_answers, signature.shared, answers, limit)
        else:
            self._node_answers.move_to_end(signature.shared)
        if answers.plan.usable:
            answers.refresh(pod, snapshot.nodes)
        return answers

    def _look_at(self, objects: Objects) -> None:
        versions = tuple(map(objects.version, self._kinds))
        if versions != self._versions:
            self._versions = versions
            self._forget()

    def _forget(self) -> None:
        self._templates.clear()
        self._bases.clear()
        self._numbers.clear()
        self._came.clear()
        self._answers.clear()
        self._node_answers.clear()

    def _signature_of(self, pod: PodInfo, known: Signature | None) -> Signature:
        """Return the signature of a pod; `known` is that of its template."""
        if len(self._numbers) >= _NUMBERS_MAX:
            self._forget()
            known = None
        timer = self._profile.timer
        started = timer.now()
        try:
            if known is None:
                known = self._sign_template(pod)
                key = (pod.template, pod.pod.spec.node_name)
                _keep(self._templates, key, known, _TEMPLATES_MAX)
            return self._with_signs(known, self._signing_pod, pod)
        except PluginFailure as failure:
            self._log_unsigned(failure, pod)
            raise
        finally:
            # As upstream: the Sign phase counts as a success whatever the plugins return.
            timer.passed(SIGN, Code.SUCCESS, started)

    def _sign_template(self, pod: PodInfo) -> Signature:
        key = (pod.template.base, pod.pod.spec.node_name)
        base = self._bases.get(key)
        if base is None:
            signs, codes = self._ask_for_signs(self._signing_base, pod)
            base = self._bases[key] = _Base(self._number_of(("base", signs)), codes)
        else:
            self._profile.timer.signed_again(self._signing_base, base.codes)
        of_base = Signature(base.number, base.number)
        return self._with_signs(of_base, self._signing_template, pod)

    def _with_signs(self, known: Signature, signing: _Signing, pod: PodInfo) -> Signature:
        """Return a signature to which the plugins' signs of a pod are added."""
        if not signing.plugins:
            return known
        signs, _ = self._ask_for_signs(signing.plugins, pod)
        of_nodes = tuple(compress(signs, signing.look_at_nodes))
        return Signature(
            self._number_of(("whole", known.whole, signs)),
            self._number_of(("shared", known.shared, of_nodes)),
        )

    def _number_of(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _ask_for_signs(
        self, plugins: list[Plugin], pod: PodInfo
    ) -> tuple[tuple[Hashable, ...], list[Code]]:
        """Return the plugins' signs of a pod, and how each call counts."""
        ask_sign, timer = self._profile.ask_sign, self._profile.timer
        signs: list[Hashable] = []
        codes: list[Code] = []
        began = timer.now()
        for plugin in plugins:
            code = Code.ERROR
            try:
                sign = ask_sign(plugin, pod)
                code = Code.UNSCHEDULABLE if sign is UNSIGNED else Code.SUCCESS
            finally:
                began = timer.signed(plugin, code, began)
            signs.append(sign)
            codes.append(code)
        return tuple(signs), codes

    def _log_unsigned(self, failure: PluginFailure, pod: PodInfo) -> None:
        """Log once per plugin that it cannot sign; pods are then scheduled without memory."""
        plugin = failure.status.plugin
        if plugin not in self._unsigned:
            self._unsigned.add(plugin)
            log.error("Answers are not remembered for pods like %s: %s", pod.key, failure)
            assert isinstance(failure.__cause__, Exception), "it is what the plugin raised"
            self._profile.report(self._profile.plugins[plugin], SIGN, pod.key, failure.__cause__)


def _limit(rows: int, bytes_max: int) -> int:
    return max(_SIGNATURES_MIN, bytes_max // (_BYTES_PER_ROW * max(1, rows)))


def _keep(memory: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    memory[key] = value
    while len(memory) > limit:
        memory.popitem(last=False)
