"""A configuration under which every node is evaluated."""

from __future__ import annotations

from kubesched.config.args import exhaustive
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import load_configuration


def test_percentages_become_one_hundred() -> None:
    """In all profiles; other arguments do not change."""
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 5,
        "profiles": [
            {
                "schedulerName": "a",
                "percentageOfNodesToScore": 7,
                "pluginConfig": [
                    {"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 3}}
                ],
            },
            {"schedulerName": "b"},
        ],
    }
    found = exhaustive(load_configuration(raw, FeatureGates()))
    assert found.percentage_of_nodes_to_score == 100
    for profile in found.profiles:
        assert profile.percentage_of_nodes_to_score == 100
        args = {entry.name: entry.args or {} for entry in profile.plugin_config}
        assert args["DefaultPreemption"]["minCandidateNodesPercentage"] == 100
    args = {entry.name: entry.args or {} for entry in found.profiles[0].plugin_config}
    assert args["DefaultPreemption"]["minCandidateNodesAbsolute"] == 3
