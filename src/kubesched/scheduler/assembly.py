"""Builds a scheduler from cache, queue, profiles, loop and event handlers.

Upstream: pkg/scheduler/scheduler.go, New (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.cache.cache import Cache, PodLister
from kubesched.framework.plugin_error import ReportPluginError, is_in_tree, log_plugin_error
from kubesched.framework.registry import SchedulerSetup
from kubesched.framework.services import ClaimWriter, VolumeWriter, services_for
from kubesched.framework.waiting_pods import WaitingPods
from kubesched.queue.backoff_queue import QueueOptions
from kubesched.queue.gates import ProfileRules
from kubesched.queue.registrations import registrations_of
from kubesched.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.api_client import ApiClient, UnansweredWrites
from kubesched.scheduler.binding import ApiBinder
from kubesched.scheduler.eventhandlers import EventHandlers
from kubesched.scheduler.eviction import Evictions
from kubesched.scheduler.extenders import Connect, Extenders
from kubesched.scheduler.loop import Scheduler
from kubesched.scheduler.observer import Instruments, Observer
from kubesched.scheduler.profile import Profile
from kubesched.scheduler.profile_building import build_profiles
from kubesched.scheduler.status_writer import StatusWriter
from kubesched.snapshot.nominator import Nominator
from kubesched.snapshot.pod_info import PodInfo


class Writers(msgspec.Struct, frozen=True):
    """Functions with which plugins write claims and volumes; None without an API."""

    claims: ClaimWriter | None = None
    volumes: VolumeWriter | None = None


NO_WRITERS: Final = Writers()


def queue_options(setup: SchedulerSetup) -> QueueOptions:
    """Return the queue's options from the configuration and the feature gates."""
    configuration, gates = setup.configuration, setup.feature_gates
    return QueueOptions(
        initial_backoff_seconds=float(configuration.pod_initial_backoff_seconds),
        max_backoff_seconds=float(configuration.pod_max_backoff_seconds),
        pops_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
        generic_workload=gates.enabled("GenericWorkload"),
    )


def assemble(
    setup: SchedulerSetup,
    api: ApiClient,
    *,
    random: Random,
    options: QueueOptions | None = None,
    observers: Sequence[Observer] = (),
    connect: Connect | None = None,
    instruments: Instruments | None = None,
    pods: PodLister | None = None,
    writers: Writers = NO_WRITERS,
    writes_at_once: float = inf,
    report_plugin_error: ReportPluginError = log_plugin_error,
) -> tuple[Scheduler, EventHandlers]:
    """Build a scheduler and the event handlers that feed it the cluster's changes.

    Args:
        setup: The configuration, the available plugins and the feature gates.
        api: The client that decisions are written with.
        random: The run's random source.
        options: Options of the queue; by default those of the configuration.
        observers: Observers of the loop.
        connect: Creates the transport of an extender; required if extenders are configured.
        instruments: Measure all parts; by default nothing is measured.
        pods: The lister that keeps observed pods; by default a new one.
        writers: Functions with which plugins write claims and volumes.
        writes_at_once: While so many Bindings and status patches are unanswered, no further pod
            is decided. Pods that wait on Permit or in PreBind do not count.
        report_plugin_error: Called with every exception of a plugin.

    Raises:
        ConfigError: with every field error of the configuration.
    """
    configuration, gates = setup.configuration, setup.feature_gates
    extenders: Extenders | None = None
    if configuration.extenders:
        if connect is None:
            raise ConfigError([FieldError("extenders", "there is nothing to reach them with")])
        extenders = Extenders(configuration.extenders, connect)
    cache = Cache(has_pod_groups=gates.enabled("GenericWorkload"))
    pods = PodLister() if pods is None else pods
    nominator, waiting_pods = Nominator(pods.get), WaitingPods()

    def activate(requested: Sequence[PodInfo]) -> None:
        scheduler.activate(requested)

    unanswered = UnansweredWrites(writes_at_once)
    binder = ApiBinder(api, unanswered)
    all_observers = [*observers] if instruments is None else [*observers, instruments]
    instruments = instruments or Instruments()
    evictions = Evictions(
        api,
        cache,
        nominator,
        waiting_pods,
        StatusWriter(api, unanswered),
        activate,
        all_observers,
        in_background=gates.enabled("SchedulerAsyncPreemption"),
    )
    services = replace(
        services_for(gates, cache.objects),
        waiting_pods=waiting_pods,
        pod_group_states=cache.pod_groups,
        is_preempting=evictions.is_running,
        bind=binder.bind,
        claim_writer=writers.claims,
        volume_writer=writers.volumes,
        activate=activate,
        report_plugin_error=report_plugin_error,
    )
    profiles = build_profiles(setup, random, services, instruments.plugin_observer)
    for profile in profiles.values():
        profile.timer = instruments.phase_timer(profile)
    options = options or queue_options(setup)
    first = next(iter(profiles.values()))
    sorter = first.queue_sort_plugin
    queue = SchedulingQueue(
        sorter.sort_key if is_in_tree(type(sorter)) else first.sort_key,
        {name: _rules_of(profile, cache, setup) for name, profile in profiles.items()},
        options,
        nominator=nominator,
        ask=instruments.ask_hint,
    )
    scheduler = Scheduler(
        profiles, cache, queue, pods, api, binder, waiting_pods, evictions, all_observers, extenders
    )
    queue.hints.report_plugin_error = report_plugin_error
    instruments.attach(scheduler)
    return scheduler, EventHandlers(scheduler, instruments)


def _rules_of(profile: Profile, cache: Cache, setup: SchedulerSetup) -> ProfileRules:
    plugins, snapshot = profile.pre_enqueue_plugins, cache.snapshot()
    return ProfileRules(
        pre_enqueue={
            plugin.name: partial(profile.ask_pre_enqueue, plugin, snapshot=snapshot)
            for plugin in plugins
        },
        still_gates={
            plugin.name: partial(profile.ask_still_gates, plugin, snapshot=snapshot)
            for plugin in plugins
        },
        registrations=registrations_of(
            profile.plugins.values(),
            has_extenders=bool(setup.configuration.extenders),
            has_pod_groups=setup.feature_gates.enabled("GenericWorkload"),
        ),
        timer=profile.timer,
    )
