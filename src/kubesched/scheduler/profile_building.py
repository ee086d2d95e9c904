"""Builds all profiles of a configuration, by scheduler name.

Upstream: pkg/scheduler/profile/profile.go, NewMap (v1.36)
Differs:  all field errors of a configuration are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import msgspec

from kubesched.api.field_errors import ConfigError, FieldError
from kubesched.api.go_text import go_quote
from kubesched.config.args import ignore_extender_resources
from kubesched.config.types import ProfileConfiguration
from kubesched.framework.registry import SchedulerSetup
from kubesched.framework.services import PluginObserver, Services, services_for
from kubesched.scheduler.profile import Profile


def build_profiles(
    setup: SchedulerSetup,
    random: Random,
    services: Services | None = None,
    observer_of: Callable[[str], PluginObserver] | None = None,
) -> dict[str, Profile]:
    """Build all profiles of a configuration, by scheduler name.

    NodeResourcesFit ignores resources that extenders manage with `ignoredByScheduler`. The services
    are by default those without a queue and an API. `observer_of` returns the observer of the
    plugins of the profile with a scheduler name. Raises ConfigError with the field errors of all
    profiles.
    """
    configuration = ignore_extender_resources(setup.configuration)
    services = services or services_for(setup.feature_gates)
    services = msgspec.structs.replace(services, now=setup.now)
    profiles: dict[str, Profile] = {}
    errors: list[FieldError] = []
    for at, profile in enumerate(configuration.profiles):
        own = services
        if observer_of is not None:
            own = msgspec.structs.replace(own, observer=observer_of(profile.scheduler_name))
        try:
            profiles[profile.scheduler_name] = Profile(
                profile,
                setup.registry,
                setup.feature_gates,
                random=random,
                percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score,
                path=f"profiles[{at}]",
                services=own,
            )
        except ConfigError as error:
            errors.extend(error.errors)
    errors = errors or list(_queue_sort_errors(configuration.profiles, profiles))
    if errors:
        raise ConfigError(errors)
    return profiles


def _queue_sort_errors(
    configurations: Sequence[ProfileConfiguration], profiles: Mapping[str, Profile]
) -> Iterator[FieldError]:
    """Yield an error per profile whose QueueSort plugin or its args differ from the first's."""
    first: tuple[str, object] | None = None
    for at, configuration in enumerate(configurations):
        name = profiles[configuration.scheduler_name].queue_sort_plugin.name
        args = next((each.args for each in configuration.plugin_config if each.name == name), None)
        first = first or (name, args)
        profile = f"profile {go_quote(configuration.scheduler_name)}"
        if name != first[0]:
            message = f"different queue sort plugins for {profile}: {go_quote(name)}"
            yield FieldError(f"profiles[{at}]", f"{message}, first: {go_quote(first[0])}")
        elif args != first[1]:
            yield FieldError(f"profiles[{at}]", f"different queue sort plugin args for {profile}")
