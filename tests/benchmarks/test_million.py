"""The benchmark of a million nodes, with few nodes."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from benchmarks.million import EQUAL, KINDS, measure, pods
from benchmarks.objects import decoded

from kubesched.api.core import Pod
from kubesched.snapshot.pod_info import PodInfo


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_is_bound(kind: str) -> None:
    """All pods pass queue, cycle and binding, and their watch events arrive."""
    found = measure(kind, 20, 50)
    assert (20, 50, 50) == (found.nodes, found.pods, found.bound)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_pods(kind: str) -> None:
    """One template or many; no anti-affinity; different names."""
    made = [decoded(pod) for pod in islice(pods(kind, Random(0)), 300)]
    infos = [PodInfo(pod) for pod in made if isinstance(pod, Pod)]
    assert 300 == len({info.key for info in infos})
    assert (1 == len({info.template for info in infos})) == (kind == EQUAL)
    assert not any(info.template.affinity for info in infos)
