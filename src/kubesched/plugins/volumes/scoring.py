"""Scores a node by the utilization of the pod's volumes or storage pools.

Upstream: pkg/scheduler/framework/plugins/volumebinding/scorer.go (v1.36)
Reads:    persistentvolume.spec.capacity, csistoragecapacity.capacity; requests of claims
Differs:  a pool that reports only its largest volume counts as having no capacity, and a claim
          that names its class only in an annotation counts as class ""; upstream crashes on both.
"""

from __future__ import annotations

from kubesched.api.integers import quotient, wrap
from kubesched.api.quantity import value
from kubesched.plugins.shared.score_curve import PERCENT, ScoreCurve
from kubesched.plugins.volumes.claims import STORAGE
from kubesched.plugins.volumes.decisions import PodVolumes


def score_pod_volumes(volumes: PodVolumes, curve: ScoreCurve) -> int:
    """Return the mean score of the storage classes, 0 to 100; 0 if there are none."""
    classes = _of_bindings(volumes) if volumes.static_bindings else _of_provisions(volumes)
    if not classes:
        return 0
    total = sum(_score(requested, capacity, curve) for requested, capacity in classes.values())
    # Halves are rounded up.
    return (2 * total + len(classes)) // (2 * len(classes))


def _score(requested: int, capacity: int, curve: ScoreCurve) -> int:
    if capacity == 0 or requested > capacity:
        return curve.at(PERCENT)
    return curve.at(quotient(wrap(requested * PERCENT), capacity))


def _of_bindings(volumes: PodVolumes) -> dict[str, tuple[int, int]]:
    """Return class -> sums of requests and capacities, in bytes."""
    classes: dict[str, tuple[int, int]] = {}
    for binding in volumes.static_bindings:
        spec = binding.volume.spec
        requested, capacity = classes.get(spec.storage_class_name, (0, 0))
        requested += value(binding.claim.spec.resources.requests.get(STORAGE, 0))
        capacity += value(spec.capacity.get(STORAGE, 0))
        classes[spec.storage_class_name] = (wrap(requested), wrap(capacity))
    return classes


def _of_provisions(volumes: PodVolumes) -> dict[str, tuple[int, int]]:
    """Return class -> sum of requests, and the free capacity of its pool, in bytes."""
    classes: dict[str, tuple[int, int]] = {}
    for one in volumes.dynamic_provisions:
        if one.pool is None:
            continue
        name = one.claim.spec.storage_class_name or ""
        requested = value(one.claim.spec.resources.requests.get(STORAGE, 0))
        # The same pool serves all claims of a class, so its capacity counts once.
        capacity = 0 if one.pool.capacity is None else value(one.pool.capacity)
        classes[name] = (wrap(classes.get(name, (0, 0))[0] + requested), capacity)
    return classes
