"""Puts cache, queue, profiles, loop and event handlers together.

Upstream: pkg/scheduler/scheduler.go, New (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from kubesched.api.core import Pod
from kubesched.cache.cache import Cache
from kubesched.cache.pod_groups import PodGroupStates
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.field_errors import ConfigError, FieldError
from kubesched.config.types import Configuration
from kubesched.framework.plugin import PreEnqueuePlugin
from kubesched.framework.registry import Registry
from kubesched.queue.gates import PreEnqueue
from kubesched.queue.hinting import ask_hint
from kubesched.queue.queue_events import ClusterChange
from kubesched.queue.queue_options import ProfileRules, QueueOptions
from kubesched.queue.registrations import Registration, registrations_of
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.api_client import ApiClient
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.extenders import Connect, Extenders
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Observer
from kubesched.scheduler.pod_lister import PodLister
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.profile_building import build_profiles


class Instruments(Protocol):
    """Measure a scheduler, for metrics."""

    @property
    def observer(self) -> Observer:
        """Is told what the loop does."""
        ...

    def ask_hint(self, registration: Registration, change: ClusterChange, pod: Pod) -> bool:
        """Ask a queueing hint, as `kubesched.queue.hinting.ask_hint` does."""
        ...

    def fit(self, scheduler: Scheduler, handlers: EventHandlers) -> None:
        """Put timers and observers where they belong."""
        ...


def queue_options(configuration: Configuration, gates: FeatureGates) -> QueueOptions:
    """Return the queue's options as the configuration and the feature gates have them."""
    return QueueOptions(
        initial_backoff_seconds=float(configuration.pod_initial_backoff_seconds),
        max_backoff_seconds=float(configuration.pod_max_backoff_seconds),
        pops_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
        generic_workload=gates.enabled("GenericWorkload"),
    )


def assemble(
    configuration: Configuration,
    registry: Registry,
    gates: FeatureGates,
    api: ApiClient,
    *,
    random: Random,
    options: QueueOptions | None = None,
    observers: Sequence[Observer] = (),
    connect: Connect | None = None,
    instruments: Instruments | None = None,
) -> tuple[Scheduler, EventHandlers]:
    """Build a scheduler and what brings it the cluster's changes.

    `connect` gives each extender of the configuration its transport; without it there must be
    none. `instruments`, if there are any, are fitted everywhere.

    Raises:
        ConfigError: with every field error of the configuration.
    """
    extenders: Extenders | None = None
    if configuration.extenders:
        if connect is None:
            raise ConfigError([FieldError("extenders", "there is nothing to reach them with")])
        extenders = Extenders.of(configuration.extenders, connect)
    cache = Cache(PodGroupStates() if gates.enabled("GenericWorkload") else None)
    profiles = build_profiles(configuration, registry, gates, random)
    options = options or queue_options(configuration, gates)
    pods = PodLister()
    for profile in profiles.values():
        profile.objects = cache.objects
    queue = SchedulingQueue(
        next(iter(profiles.values())).queue_sort_plugin.sort_key,
        {
            name: _rules_of(profile, cache, configuration, gates)
            for name, profile in profiles.items()
        },
        options,
        find_pod=pods.get,
        ask=ask_hint if instruments is None else instruments.ask_hint,
    )
    if instruments is not None:
        observers = (*observers, instruments.observer)
    scheduler = Scheduler(profiles, cache, queue, pods, api, observers, extenders)
    handlers = EventHandlers(scheduler)
    if instruments is not None:
        instruments.fit(scheduler, handlers)
    return scheduler, handlers


def _rules_of(
    profile: Profile,
    cache: Cache,
    configuration: Configuration,
    gates: FeatureGates,
) -> ProfileRules:
    def asks(plugin: PreEnqueuePlugin) -> PreEnqueue:
        return lambda info: profile.ask_pre_enqueue(plugin, info, cache.snapshot())

    return ProfileRules(
        pre_enqueue={plugin.name: asks(plugin) for plugin in profile.pre_enqueue_plugins},
        registrations=registrations_of(
            profile.plugins.values(),
            has_extenders=bool(configuration.extenders),
            has_pod_groups=gates.enabled("GenericWorkload"),
        ),
    )
