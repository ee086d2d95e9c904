"""Memory keeps the answers that plugins gave per pod signature, and renews rows that changed.

Pods come from templates, and binding one pod changes one row. So the answers of plugins that look
at one row at a time are kept per signature; a cycle renews them for the rows that changed since and
asks only the other plugins anew.

Invariants: pods of equal signature get the same answers.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, TypeVar

from kubesched.framework.plugin import Plugin
from kubesched.framework.status import Code
from kubesched.scheduler.phase_timer import SIGN
from kubesched.scheduler.profile import SIGN as SIGN_WORDING
from kubesched.scheduler.profile import PluginFailure, Profile
from kubesched.scheduler.remembered import Remembered
from kubesched.snapshot.objects import Objects
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.snapshot import Snapshot

_CELLS_MAX: Final = 1 << 22
_SIGNATURES_MIN: Final = 8
_TEMPLATES_MAX: Final = 16_384

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


class Memory:
    """The remembered answers of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # Signatures are long tuples: they are hashed once per template, and numbered.
        self._templates: OrderedDict[tuple[PodTemplate, str], int] = OrderedDict()
        self._numbers: dict[Hashable, int] = {}
        self._answers: OrderedDict[int, Remembered] = OrderedDict()
        self._kinds = tuple(
            dict.fromkeys(kind for p in profile.plugins.values() for kind in p.signed_kinds)
        )
        self._versions: tuple[int, ...] = ()
        self._objects: Objects | None = None
        self._changes = -1
        self._unsigned: set[str] = set()

    def recall(self, pod: PodInfo, snapshot: Snapshot) -> Remembered | None:
        """Return the up-to-date answers for pods like this one; None if they cannot be kept."""
        objects = snapshot.objects
        if objects.changes != self._changes or objects is not self._objects:
            self._objects, self._changes = objects, objects.changes
            self._look_at(objects)
        key = (pod.template, pod.pod.spec.node_name)
        signature = self._templates.get(key)
        if signature is None:
            signature = self._number_of(self._sign(pod))
            _keep(self._templates, key, signature, _TEMPLATES_MAX)
        answers = self._answers.get(signature)
        if answers is None:
            answers = Remembered(self._profile, pod, snapshot)
            limit = max(_SIGNATURES_MIN, _CELLS_MAX // max(1, len(snapshot.nodes)))
            _keep(self._answers, signature, answers, limit)
        else:
            self._answers.move_to_end(signature)
        if not answers.usable:
            return None
        answers.refresh(pod, snapshot.nodes)
        return answers if answers.usable else None

    def _look_at(self, objects: Objects) -> None:
        versions = tuple(map(objects.version, self._kinds))
        if versions != self._versions:
            self._versions = versions
            self._forget()

    def _forget(self) -> None:
        self._templates.clear()
        self._numbers.clear()
        self._answers.clear()

    def _number_of(self, signature: Hashable) -> int:
        if len(self._numbers) >= 2 * _TEMPLATES_MAX:
            self._forget()
        return self._numbers.setdefault(signature, len(self._numbers))

    def _sign(self, pod: PodInfo) -> Hashable:
        timer = self._profile.timer
        if timer is None:
            return self._ask_for_signs(pod)
        started = timer.begin_unsampled()
        try:
            return self._ask_for_signs(pod)
        finally:
            # A success whatever the plugins say, as upstream has it.
            timer.end_unsampled(SIGN, Code.SUCCESS, started)

    def _ask_for_signs(self, pod: PodInfo) -> Hashable:
        ask, plugins = self._profile.ask, self._profile.plugins.values()
        try:
            return tuple(ask(SIGN_WORDING, plugin, _hashed_sign, plugin, pod) for plugin in plugins)
        except PluginFailure as failure:
            self._complain(failure, pod)
            raise

    def _complain(self, failure: PluginFailure, pod: PodInfo) -> None:
        """Say once of a plugin that it cannot sign: pods are placed all the same, only slower."""
        plugin = failure.status.plugin
        if plugin not in self._unsigned:
            self._unsigned.add(plugin)
            log.error("Nothing is remembered for pods like %s: %s", pod.key, failure)
            assert isinstance(failure.__cause__, Exception), "it is what the plugin raised"
            self._profile.report(self._profile.plugins[plugin], SIGN, pod.key, failure.__cause__)


def _hashed_sign(plugin: Plugin, pod: PodInfo) -> Hashable:
    """Return a sign that is known to have a hash."""
    sign = plugin.sign(pod)
    hash(sign)
    return sign


def _keep(memory: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    memory[key] = value
    while len(memory) > limit:
        memory.popitem(last=False)
