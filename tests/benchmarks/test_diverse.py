"""Shapes of pods that differ, and decisions about them with and without memory."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from benchmarks.diverse import SHAPES, measure, nodes, pods
from benchmarks.objects import decoded
from benchmarks.throughput import new_cluster

from kubesched.api.core import Pod
from kubesched.scheduler.decision import Placed
from kubesched.snapshot.pod_info import PodInfo
from tests.scheduler.toys import comparable

NODES, PODS = 40, 120


def _pods(shape: str, seed: int, count: int) -> list[Pod]:
    made = [decoded(item) for item in islice(pods(shape, Random(seed)), count)]
    return [pod for pod in made if isinstance(pod, Pod)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_decisions_with_memory_equal_those_without(shape: str, seed: int) -> None:
    """While pods are added and deleted at random."""
    random = Random(seed)
    clusters = [new_cluster(remembers=remembers) for remembers in (True, False)]
    for cluster in clusters:
        cluster.load(nodes(NODES))
    bound: list[str] = []
    for pod in _pods(shape, seed, PODS):
        decisions = [cluster.schedule_one(PodInfo(pod)) for cluster in clusters]
        assert comparable(decisions[0]) == comparable(decisions[1])
        decision = decisions[0]
        if isinstance(decision, Placed):
            for cluster in clusters:
                cluster.bind(PodInfo(pod), decision.node_name)
            bound.append(decision.pod.uid)
        if bound and random.random() < 0.3:
            gone = bound.pop(random.randrange(len(bound)))
            for cluster in clusters:
                cluster.cache.remove_pod(gone)
    clusters[0].cache.check()


def test_every_pod_of_a_shape_is_decided() -> None:
    """A small run counts its pods and places most of them."""
    found = measure("B", 50, 100, seed=0)
    assert (50, 100) == (found.nodes, found.pods)
    assert 50 < found.placed <= 100


def test_shapes_have_the_documented_templates() -> None:
    """Pods of A are all different; those of C20 have at most twenty templates."""
    assert 200 == len({PodInfo(pod).template for pod in _pods("A", 0, 200)})
    assert 20 >= len({PodInfo(pod).template for pod in _pods("C20", 0, 200)})
