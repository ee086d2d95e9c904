"""The environment is a valid one, and its decisions are the scheduler's."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from kubesched import Cluster, UserError
from kubesched.framework import NodeRow, PerRowFilter, PodInfo, Status, unresolvable
from kubesched.framework.plugin_error import PluginError
from kubesched.inputs.sources import SchedulerOptions
from kubesched.rl import SchedulingEnv, balance, packing
from tests.cli.cluster import node, pod

NODES = [node("alpha", "4"), node("beta", "8"), node("gamma", "2")]


def random_pods(random: Random) -> Iterable[dict[str, Any]]:
    """Return twelve pods of random size."""
    return [pod(f"p{at}", random.choice(["500m", "1", "3"])) for at in range(12)]


def three_pods(_random: Random) -> Iterable[dict[str, Any]]:
    """Return two pods, of which one fits nowhere, and a small one."""
    return [pod("large", "6"), pod("huge", "60"), pod("small", "1")]


@pytest.mark.parametrize("nodes", [NODES, [node(f"equal-{at}", "8") for at in range(20)]])
def test_gymnasium_accepts_it(nodes: list[dict[str, Any]]) -> None:
    """Gymnasium's own checker passes: with a seed, even ties among equal nodes repeat."""
    check_env(SchedulingEnv(nodes, random_pods), skip_render_check=True)


def test_the_mask_is_what_the_filters_say() -> None:
    """Only feasible nodes are 1."""
    env = SchedulingEnv(NODES, three_pods)
    observation, info = env.reset(seed=1)
    assert info["pod"] == "shop/large"
    assert dict(zip(env.node_names, observation["mask"].tolist(), strict=True)) == {
        "alpha": 0,
        "beta": 1,
        "gamma": 0,
    }


def test_pods_that_fit_nowhere_are_skipped() -> None:
    """They count as unplaced; their reward is part of the previous step."""
    env = SchedulingEnv(NODES, three_pods, reward=lambda _cluster, _pod, row: float(row))
    _, info = env.reset(seed=1)
    row = info["scheduler_action"]
    _, reward, terminated, _, info = env.step(row)
    assert (reward, info["pod"], info["unplaced"]) == (row - 1, "shop/small", 1)
    _, _, terminated, _, info = env.step(info["scheduler_action"])
    assert terminated
    assert info["pod"] == ""


def test_an_infeasible_action_places_nothing() -> None:
    """The pod is lost, and the cluster unchanged."""
    env = SchedulingEnv(NODES, three_pods)
    env.reset(seed=1)
    _, reward, _, _, info = env.step(env.node_names.index("gamma"))
    assert reward == -2.0  # this one, and the one that fits nowhere
    assert info["unplaced"] == 2
    assert not env.cluster.cache.nodes.requested.any()


def test_following_the_scheduler_is_simulating() -> None:
    """The default choice in every step gives the placements of `simulate`."""
    pods = list(random_pods(Random(5)))
    env = SchedulingEnv(NODES, lambda _random: pods)
    _, info = env.reset(seed=1)
    places: dict[str, str] = {}
    over = not info["pod"]
    while not over:
        action = info["scheduler_action"]
        places[info["pod"]] = env.node_names[action]
        _, _, over, _, info = env.step(action)
    report = Cluster.from_objects([*NODES, *pods]).simulate()
    assert set(places) == {one.pod for one in report.placements}
    assert info["unplaced"] == report.summary.unplaced


def test_episodes_are_independent() -> None:
    """The same seed gives the same episode, whatever happened before."""
    env = SchedulingEnv(NODES, random_pods)
    first, _ = env.reset(seed=3)
    env.step(0)
    again, _ = env.reset(seed=3)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    env.cluster.cache.check()


def test_rewards() -> None:
    """Packing is the fuller share, balance how near the shares are; nothing placed is -1."""
    env = SchedulingEnv(NODES, three_pods)
    _, info = env.reset(seed=1)
    row = info["scheduler_action"]
    env.step(row)
    info_of_pod = next(iter(env.cluster.cache.nodes.pods[row].values()))
    assert packing(env.cluster, info_of_pod, row) == pytest.approx(0.75)
    assert 0.0 <= balance(env.cluster, info_of_pod, row) <= 1.0
    assert packing(env.cluster, info_of_pod, -1) == balance(env.cluster, info_of_pod, -1) == -1.0


def test_no_nodes() -> None:
    """The error names the argument."""
    with pytest.raises(UserError, match="nodes has no Node"):
        SchedulingEnv([], random_pods)


@pytest.mark.parametrize("action", [-1, 3, 0.5, None])
def test_an_action_that_is_no_row(action: Any) -> None:
    """A negative one would count from the end; 0.5 would be 0."""
    env = SchedulingEnv(NODES, three_pods)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="it must be an integer from 0 to 2, a row of node_names"):
        env.step(action)


def test_a_step_without_a_pod() -> None:
    """Gymnasium's error is raised before the first episode and after the last pod."""
    env = SchedulingEnv(NODES, lambda _random: [])
    with pytest.raises(ResetNeeded, match="no pod is left to place: call reset"):
        env.step(0)


@pytest.mark.parametrize(("pods", "expected"), [([], 0.0), ([pod("huge", "60")], -1.0)])
def test_an_episode_of_no_pod_that_fits(pods: list[dict[str, Any]], expected: float) -> None:
    """Its first step ends it, so that vectorised environments go on."""
    env = SchedulingEnv(NODES, lambda _random: pods)
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    _, reward, terminated, _, _ = env.step(0)
    assert (expected, True) == (reward, terminated)
    with pytest.raises(ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("found", [None, "much"])
def test_a_reward_that_is_no_number(found: Any) -> None:
    """The error names the pod; the next episode can begin."""
    env = SchedulingEnv(NODES, three_pods, reward=lambda *_: found)
    env.reset(seed=1)
    with pytest.raises(TypeError, match=f"shop/large must be a number, not {found!r}"):
        env.step(0)
    assert env.reset(seed=1)[1]["pod"] == "shop/large"


def test_devices_are_taken_until_the_episode_ends() -> None:
    """Two of three pods get the devices of two nodes, in each episode, as in `simulate`."""
    group = {"apiVersion": "resource.k8s.io/v1"}
    cluster = [
        *NODES[:2],
        {**group, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        *[
            {
                **group,
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            }
            for name in ("alpha", "beta")
        ],
        *[
            {
                **group,
                "kind": "ResourceClaim",
                "metadata": {"name": f"claim-{at}", "namespace": "shop"},
                "spec": {
                    "devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}
                },
            }
            for at in range(3)
        ],
    ]
    pods = [
        pod(f"p{at}", "1", resourceClaims=[{"name": "g", "resourceClaimName": f"claim-{at}"}])
        for at in range(3)
    ]
    env = SchedulingEnv(cluster, lambda _random: pods)
    for _ in range(2):
        _, info = env.reset(seed=1)
        while info["pod"]:
            *_, info = env.step(info["scheduler_action"])
        assert info["unplaced"] == 1
    assert Cluster.from_objects([*cluster, *pods]).simulate().summary.unplaced == 1


def test_a_new_episode_forgets_the_pod_that_was_offered() -> None:
    """Pods of episodes that were cut short do not pile up in the cluster."""
    names = iter(range(10))
    env = SchedulingEnv(NODES, lambda _random: [pod(f"p{next(names)}", "1")])
    for _ in range(3):
        env.reset(seed=1)
    assert len(env.cluster.pending) == 1


class Broken(PerRowFilter[None]):
    """Raises."""

    name: ClassVar = "Broken"

    def filter_node(self, state: None, pod: PodInfo, node: NodeRow) -> Status:
        """Read a label that is not there."""
        return unresolvable(node.labels["rack"])


def test_a_plugin_that_raises_ends_the_episode() -> None:
    """Its pods are not pods that fit nowhere."""
    env = SchedulingEnv(NODES, three_pods, options=SchedulerOptions(plugins=(Broken,)))
    with pytest.raises(PluginError, match="Broken raised in Filter for pod shop/large: KeyError"):
        env.reset(seed=1)


def test_pods_of_another_scheduler() -> None:
    """They are an error, unless the options name a profile for all pods."""

    def pods(_random: Random) -> Iterable[dict[str, Any]]:
        return [pod("theirs", "1", schedulerName="other")]

    with pytest.raises(UserError, match=r"pod shop/theirs: spec\.schedulerName is other"):
        SchedulingEnv(NODES, pods).reset(seed=1)
    options = SchedulerOptions(profile="default-scheduler")
    assert "shop/theirs" == SchedulingEnv(NODES, pods, options=options).reset(seed=1)[1]["pod"]
