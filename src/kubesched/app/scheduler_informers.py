"""The informers of a scheduler: the kinds to watch, and a warning while they cannot be read.

Failures are reported in one line for all kinds: a token that the server refuses concerns every
one of them. Single failures are logged from verbosity 2 on.

Upstream: pkg/scheduler/scheduler.go, eventhandlers.go, and the factories of the plugins;
          staging/src/k8s.io/client-go/tools/cache/reflector.go, DefaultWatchErrorHandler (v1.36)
Differs:  upstream logs every failure of every kind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from random import Random
from typing import Final

from kubesched.api.apps import ReplicaSet, StatefulSet
from kubesched.api.core import Namespace, Node, Pod, ReplicationController, Service
from kubesched.api.meta import KubeObject, ResourceEventHandler
from kubesched.api.policy import PodDisruptionBudget
from kubesched.api.resource import DeviceTaintRule
from kubesched.api.scheduling import PodGroup
from kubesched.api.scheme import KINDS, Kind, custom_kinds, custom_name_of, kind_of
from kubesched.api.storage import CSIDriver, StorageClass
from kubesched.api.volume import PersistentVolume
from kubesched.client.informers import Informers
from kubesched.client.requests import UNFINISHED_PODS, Rest
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.plugin import Plugin
from kubesched.scheduler.loop import Scheduler

_Classes = tuple[type[KubeObject], ...]

_ALWAYS: Final[_Classes] = (Node, Namespace)
_OWNERS: Final[_Classes] = (Service, ReplicationController, ReplicaSet, StatefulSet)
_READ_WITHOUT_EVENTS: Final[Mapping[str, _Classes]] = {
    "PodTopologySpread": _OWNERS,
    "SelectorSpread": _OWNERS,
    "NodeVolumeLimits": (PersistentVolume, StorageClass, CSIDriver),
    "DefaultPreemption": (PodDisruptionBudget,),
}
"""What a plugin reads besides the kinds whose events it registers for."""
_BY_RESOURCE: Final = {
    f"{kind.group}/{kind.kind}" if kind.group else kind.kind: kind
    for kind in KINDS
    if kind.plural != "events"
}


def scheduler_informers(
    rest: Rest,
    handlers: ResourceEventHandler,
    scheduler: Scheduler,
    gates: FeatureGates,
    random: Random,
) -> Informers:
    """Return informers of all kinds that a scheduler's plugins need; they do not run yet."""
    plugins = [
        plugin for profile in scheduler.profiles.values() for plugin in profile.plugins.values()
    ]
    informers = Informers(rest, handlers, random)
    for kind in watched_kinds(plugins, gates):
        informers.add(kind, UNFINISHED_PODS if kind.type is Pod else "")
    return informers


def watched_kinds(plugins: Iterable[Plugin], gates: FeatureGates) -> tuple[Kind, ...]:
    """Return the kinds that the plugins of all profiles need, pods last.

    So the dependencies of pods are listed first.
    """
    found = {type_: kind_of(type_) for type_ in _ALWAYS}
    by_resource = _BY_RESOURCE | custom_kinds()
    for plugin in plugins:
        read = _READ_WITHOUT_EVENTS.get(plugin.name, ())
        read += tuple(filter(custom_name_of, plugin.signed_kinds))
        found.update((type_, kind_of(type_)) for type_ in read)
        for registration in plugin.events_to_register() or ():
            kind = by_resource.get(registration.event.resource)
            if kind is not None and kind.type is not Pod:
                found[kind.type] = kind
    if gates.enabled("GenericWorkload"):
        found[PodGroup] = kind_of(PodGroup)
    else:
        found.pop(PodGroup, None)
    if gates.enabled("DRADeviceTaintRules"):
        found[DeviceTaintRule] = kind_of(DeviceTaintRule)
    return (*found.values(), kind_of(Pod))


_LOOK_SECONDS: Final = 2.0
_PAUSE_SECONDS_MIN: Final = 10.0
_PAUSE_SECONDS_MAX: Final = 300.0

log = logging.getLogger(__name__)


async def report_failures(
    informers: Informers, server: str, report: Callable[[str], object] = log.warning
) -> None:
    """Report problems of informers that last for two seconds, with growing pauses, until cancelled.

    By default they are logged, and their end is.
    """
    now = asyncio.get_running_loop().time
    pause_seconds, quiet_until, was_failing = _PAUSE_SECONDS_MIN, 0.0, False
    while True:
        problem = _problem(informers, server)
        if problem and was_failing and now() >= quiet_until:
            report(problem)
            quiet_until = now() + pause_seconds
            pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)
        elif quiet_until and not problem and not was_failing:
            log.info("The API server at %s serves all kinds", server)
            pause_seconds, quiet_until = _PAUSE_SECONDS_MIN, 0.0
        was_failing = bool(problem)
        await asyncio.sleep(_LOOK_SECONDS)


def _problem(informers: Informers, server: str) -> str:
    """Return the problem and its remedy, "" without a problem."""
    found = {name: informer.failure for name, informer in informers.by_name.items()}
    errors = {name: each.message for name, each in found.items() if each.message}
    unauthorized, forbidden, missing = (
        [name for name in errors if found[name].code == code]
        for code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
    )
    unsynced = [name for name, informer in informers.by_name.items() if not informer.has_synced]
    if unauthorized:
        return (
            f"The API server at {server} refuses the credentials: {errors[unauthorized[0]]}; "
            "renew the token or client certificate of the kubeconfig or service account"
        )
    if forbidden:
        return (
            f"The API server at {server} forbids reading {len(forbidden)} of {len(found)} kinds, "
            f"such as {forbidden[0]}: {errors[forbidden[0]]}; bind the user to the cluster roles "
            "system:kube-scheduler and system:volume-scheduler, and to one for the "
            "plugins' custom resources"
        )
    if missing:
        remedy = (
            "turn off the plugins and feature gates that read them, or create their "
            "CustomResourceDefinitions"
            if len(missing) < len(found)
            else "check its address in the kubeconfig"
        )
        return (
            f"The API server at {server} does not serve {len(missing)} of {len(found)} kinds, "
            f"such as {missing[0]}: {errors[missing[0]]}; {remedy}"
        )
    example = next((f", such as {name}: {error}" for name, error in errors.items()), "")
    if unsynced:
        return (
            f"Waiting for the API server at {server}: {len(unsynced)} of {len(found)} kinds are "
            f"not synced{example}"
        )
    if errors:
        return (
            f"Reading from the API server at {server} fails for {len(errors)} of {len(found)} "
            f"kinds{example}"
        )
    return ""
