"""Trains a small placement policy, and compares it with kube-scheduler's default scores.

    pip install kubesched[rl]
    python examples/rl/train.py --generations 20

The policy is linear: a node's score is a weighted sum of its free shares, its size and how full the
pod would leave it. The weights are found by the cross-entropy method, which needs only NumPy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubesched.rl import SchedulingEnv, packing

FEATURES = 6
POPULATION = 16
ELITE = 4
Policy = Callable[[dict[str, Any], dict[str, Any]], int]


def nodes(number: int) -> list[dict[str, Any]]:
    """Return nodes of three shapes."""
    shapes = [("4", "32Gi"), ("8", "16Gi"), ("16", "64Gi")]
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{at}"},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
        }
        for at in range(number)
        for cpu, memory in [shapes[at % len(shapes)]]
    ]


def pods(random: Random, number: int) -> Iterable[dict[str, Any]]:
    """Yield pods, some of which need much cpu and others much memory."""
    for at in range(number):
        cpu, memory = random.choice([(500, 4), (2000, 2), (1000, 8), (250, 1)])
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Gi"}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{at}", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
        }


def features(observation: dict[str, Any]) -> NDArray[np.float64]:
    """Return a row per node: free cpu and memory, size of both, and what the pod would leave."""
    free, size, pod = observation["free"], observation["size"], observation["pod"]
    left = free - pod / np.maximum(size, 1e-6)
    return np.hstack((free[:, :2], size[:, :2], left[:, :2])).astype(np.float64)


def linear(weights: NDArray[np.float64]) -> Policy:
    """Return the policy that takes the feasible node with the highest weighted sum."""

    def choose(observation: dict[str, Any], _info: dict[str, Any]) -> int:
        scores = features(observation) @ weights
        return int(np.where(observation["mask"], scores, -np.inf).argmax())

    return choose


def default_scores(_observation: dict[str, Any], info: dict[str, Any]) -> int:
    """Choose what kube-scheduler's default scores choose."""
    return int(info["scheduler_action"])


def mean_reward(env: SchedulingEnv, policy: Policy, seeds: Iterable[int]) -> float:
    """Return the mean sum of rewards over episodes."""
    totals = []
    for seed in seeds:
        observation, info = env.reset(seed=seed)
        total, over = 0.0, not info["pod"]
        while not over:
            observation, reward, over, _, info = env.step(policy(observation, info))
            total += reward
        totals.append(total)
    return float(np.mean(totals))


def train(env: SchedulingEnv, generations: int, seed: int = 1) -> NDArray[np.float64]:
    """Return the weights after some generations."""
    random = np.random.default_rng(seed)
    mean, spread = np.zeros(FEATURES), np.ones(FEATURES)
    for generation in range(generations):
        tried = random.normal(mean, spread, (POPULATION, FEATURES))
        rewards = [mean_reward(env, linear(weights), [generation]) for weights in tried]
        best = tried[np.argsort(rewards)[-ELITE:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
    return mean


def main() -> None:
    """Train, then compare on episodes that were not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--pods", type=int, default=120)
    arguments = parser.parse_args()
    env = SchedulingEnv(
        nodes(arguments.nodes), lambda random: pods(random, arguments.pods), reward=packing
    )
    weights = train(env, arguments.generations)
    unseen = range(1000, 1010)
    print(f"default scores  {mean_reward(env, default_scores, unseen):8.2f}")  # noqa: T201
    print(f"trained policy  {mean_reward(env, linear(weights), unseen):8.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
