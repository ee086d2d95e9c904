"""Answers to scenarios, where the recorded decisions leave a key's presence open."""

from __future__ import annotations

from typing import Any

from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_registry
from kubesched.simulator.evaluate import Evaluator

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "1", "pods": "10"}},
}


def _pod(name: str, priority: int, **spec: object) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": priority,
            "containers": [container],
            **spec,
        },
    }


def _evaluate(plugins: object) -> dict[str, Any]:
    scenario = {
        "name": "x",
        "objects": [NODE, _pod("there", 0, nodeName="n")],
        "pod": _pod("pod", 10),
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
        },
    }
    return Evaluator(in_tree_registry(), FeatureGates({})).evaluate(scenario)


def test_a_preemption_that_ends_in_an_error_is_not_reported() -> None:
    """If the dry run only fails, the answer has the error alone."""
    answer = _evaluate({"preFilter": {"disabled": [{"name": "PodTopologySpread"}]}})
    assert "Error" == answer["postfilter_code"]
    assert "PodTopologySpread" in answer["postfilter_message"]
    assert "preemption" not in answer
    assert "Insufficient cpu" in answer["fit_error_filter"]
    assert ["n"] == _evaluate({})["preemption"]["best"]
