"""A configuration that evaluates every node, so that neither order nor chance matters.

Upstream: percentageOfNodesToScore, and minCandidateNodesPercentage of DefaultPreemption (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubesched.config.types import Configuration, PluginConfig, ProfileConfiguration

_EVERY_NODE: Final = 100
_EVERY_CANDIDATE: Final = {"minCandidateNodesPercentage": 100}


def exhaustive(configuration: Configuration) -> Configuration:
    """Return the configuration changed to filter, score and dry-run preemption on all nodes."""
    return msgspec.structs.replace(
        configuration,
        percentage_of_nodes_to_score=_EVERY_NODE,
        profiles=tuple(_exhaustive(profile) for profile in configuration.profiles),
    )


def _exhaustive(profile: ProfileConfiguration) -> ProfileConfiguration:
    return msgspec.structs.replace(
        profile,
        percentage_of_nodes_to_score=_EVERY_NODE,
        plugin_config=tuple(
            PluginConfig(entry.name, {**(entry.args or {}), **_EVERY_CANDIDATE})
            if entry.name == "DefaultPreemption"
            else entry
            for entry in profile.plugin_config
        ),
    )
