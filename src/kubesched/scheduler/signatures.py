"""Signatures are numbers; those of two pods are equal if all plugins read the same of both.

Most plugins read only what a pod's template or a part of it has, its base, and are asked once for
all pods that share it. A plugin from outside may read more, and is asked about each pod.

Invariants: pods of equal signature get the same answers.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable
from itertools import compress, count
from typing import Final, NamedTuple, Self

import msgspec

from kubesched.framework.phase_timer import SIGN
from kubesched.framework.plugin import UNSIGNED, Plugin
from kubesched.framework.status import Code
from kubesched.scheduler.plan import NODE_SCOPES, NOT_KEPT, only_adds
from kubesched.scheduler.plugin_failure import PluginFailure
from kubesched.scheduler.profile import Profile
from kubesched.snapshot.pod_info import PodInfo, PodTemplate

_TEMPLATES_MAX: Final = 2048
_NUMBERS_MAX: Final = 32_768
_IS_KEPT: Final = "kept"

log = logging.getLogger(__name__)


class Signature(msgspec.Struct, frozen=True, gc=False):
    """Numbers that stand for a pod's signs.

    Attributes:
        whole: Of all plugins.
        shared: Of those with shared answers.
        alike: Of those, without plugins that sign the base and only add a score.
    """

    whole: int
    shared: int
    alike: int


class _Base(msgspec.Struct, frozen=True, gc=False):
    """The signature of a base, and the codes of the plugins' calls."""

    signature: Signature
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


class Signatures:
    """The signatures of the pods of one profile.

    Attributes:
        is_new_template: Whether no pod of the latest pod's template was signed before.
    """

    def __init__(self, profile: Profile) -> None:
        self.is_new_template = False
        self._profile = profile
        # Signs are long tuples, so each is hashed once per template and numbered.
        self._templates: OrderedDict[tuple[PodTemplate, str], Signature] = OrderedDict()
        self._bases: dict[tuple[bytes, str], _Base] = {}
        self._numbers: dict[Hashable, int] = {}
        self._next = count()
        self._unsigned: set[str] = set()
        # A plugin that signs no pod returns the same for all of them.
        self._signing_base = [
            p for p in profile.plugins.values() if p.signs_base or type(p).sign is Plugin.sign
        ]
        self._only_adds = [only_adds(type(plugin)) for plugin in self._signing_base]
        others = [p for p in profile.plugins.values() if p not in self._signing_base]
        self._signing_template = _Signing.of([p for p in others if profile.signs_by_template(p)])
        self._signing_pod = _Signing.of([p for p in others if not profile.signs_by_template(p)])

    def forget(self) -> None:
        """Forget all; no number is used again."""
        self._templates.clear()
        self._bases.clear()
        self._numbers.clear()

    def of(self, pod: PodInfo) -> Signature:
        """Return the signature of a pod; raises PluginFailure if a plugin fails."""
        key = (pod.template, pod.pod.spec.node_name)
        known = self._templates.get(key)
        self.is_new_template = known is None
        if known is not None and not self._signing_pod.plugins:
            return known
        if len(self._numbers) >= _NUMBERS_MAX:
            self.forget()
            known = None
        try:
            with self._profile.timer.phases[SIGN]:
                if known is None:
                    known = self._templates[key] = self._sign_template(pod)
                    if len(self._templates) > _TEMPLATES_MAX:
                        self._templates.popitem(last=False)
                return self._with_signs(known, self._signing_pod, pod)
        except PluginFailure as failure:
            self._log_unsigned(failure, pod)
            raise

    def _sign_template(self, pod: PodInfo) -> Signature:
        key = (pod.template.base, pod.pod.spec.node_name)
        base = self._bases.get(key)
        if base is None:
            signs, codes = self._ask_for_signs(self._signing_base, pod)
            number = self._number_of(("base", signs))
            alike = tuple(
                _IS_KEPT if adds and sign not in NOT_KEPT else sign
                for adds, sign in zip(self._only_adds, signs, strict=True)
            )
            signature = Signature(number, number, self._number_of(("alike", alike)))
            base = self._bases[key] = _Base(signature, codes)
        else:
            self._profile.timer.signed_again(self._signing_base, base.codes)
        return self._with_signs(base.signature, self._signing_template, pod)

    def _with_signs(self, known: Signature, signing: _Signing, pod: PodInfo) -> Signature:
        """Return a signature to which the plugins' signs of a pod are added."""
        if not signing.plugins:
            return known
        signs, _ = self._ask_for_signs(signing.plugins, pod)
        of_nodes = tuple(compress(signs, signing.look_at_nodes))
        return Signature(
            self._number_of(("whole", known.whole, signs)),
            self._number_of(("shared", known.shared, of_nodes)),
            self._number_of(("alike", known.alike, of_nodes)),
        )

    def _number_of(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, next(self._next))

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
