"""Profile building makes all profiles of a configuration, by scheduler name.

Upstream: pkg/scheduler/profile/profile.go, NewMap (v1.36)
Differs:  all faults of a configuration are reported at once.
"""

from __future__ import annotations

from random import Random

from kubesched.config.faults import ConfigError, Fault
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.plugin_args import ignore_extender_resources
from kubesched.config.types import Configuration
from kubesched.framework.registry import Registry
from kubesched.scheduler.profile import Profile, new_claim_tracker


def build_profiles(
    configuration: Configuration, registry: Registry, feature_gates: FeatureGates, random: Random
) -> dict[str, Profile]:
    """Build all profiles of a configuration, by scheduler name.

    What extenders manage with ignoredByScheduler is ignored by NodeResourcesFit.

    Raises:
        ConfigError: with the faults of all of them.
    """
    configuration = ignore_extender_resources(configuration)
    claim_tracker = new_claim_tracker(feature_gates)
    profiles: dict[str, Profile] = {}
    faults: list[Fault] = []
    for at, profile in enumerate(configuration.profiles):
        try:
            profiles[profile.scheduler_name] = Profile(
                profile,
                registry,
                feature_gates,
                random=random,
                percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score,
                path=f"profiles[{at}]",
                claim_tracker=claim_tracker,
            )
        except ConfigError as error:
            faults.extend(error.faults)
    if faults:
        raise ConfigError(faults)
    return profiles
