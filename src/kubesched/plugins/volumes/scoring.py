"""Scores a node by the utilization of the pod's volumes or storage pools.

Upstream: pkg/scheduler/framework/plugins/volumebinding/scorer.go, helper/shape_score.go (v1.36)
Reads:    persistentvolume.spec.capacity, csistoragecapacity.capacity; requests of claims
Differs:  a pool that reports only its largest volume counts as having no capacity, and a claim
          that names its class only in an annotation counts as class ""; upstream crashes on both.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.quantity import value
from kubesched.config.args import UtilizationShapePoint
from kubesched.framework.normalize import NODE_SCORE_MAX
from kubesched.plugins.volumes.decisions import PodVolumes
from kubesched.plugins.volumes.matching import STORAGE

_UTILIZATION_MAX = 100
_SHAPE_SCORE_MAX = 10
_INT64 = 1 << 63


def score_pod_volumes(volumes: PodVolumes, shape: Sequence[UtilizationShapePoint]) -> int:
    """Return the mean score of the storage classes, 0 to 100; 0 if there are none."""
    classes = _of_bindings(volumes) if volumes.static_bindings else _of_provisions(volumes)
    if not classes:
        return 0
    total = sum(_score(requested, capacity, shape) for requested, capacity in classes.values())
    # Halves are rounded up.
    return (2 * total + len(classes)) // (2 * len(classes))


def broken_linear(at: int, shape: Sequence[UtilizationShapePoint]) -> int:
    """Return the value at `at` of the lines through the points, with scores scaled to 0..100.

    Quotients are truncated toward zero, as in Go, so falling lines are rounded up.
    """
    points = [(p.utilization, p.score * (NODE_SCORE_MAX // _SHAPE_SCORE_MAX)) for p in shape]
    for i, (utilization, score) in enumerate(points):
        if at <= utilization:
            if i == 0:
                return score
            before, from_score = points[i - 1]
            rise = (score - from_score) * (at - before)
            return from_score + _divide(rise, utilization - before)
    return points[-1][1]


def _score(requested: int, capacity: int, shape: Sequence[UtilizationShapePoint]) -> int:
    if capacity == 0 or requested > capacity:
        return broken_linear(_UTILIZATION_MAX, shape)
    return broken_linear(_divide(_wrap(requested * _UTILIZATION_MAX), capacity), shape)


def _of_bindings(volumes: PodVolumes) -> dict[str, tuple[int, int]]:
    """Return class -> sums of requests and capacities, in bytes."""
    classes: dict[str, tuple[int, int]] = {}
    for binding in volumes.static_bindings:
        spec = binding.volume.spec
        requested, capacity = classes.get(spec.storage_class_name, (0, 0))
        requested += value(binding.claim.spec.resources.requests.get(STORAGE, 0))
        capacity += value(spec.capacity.get(STORAGE, 0))
        classes[spec.storage_class_name] = (_wrap(requested), _wrap(capacity))
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
        classes[name] = (_wrap(classes.get(name, (0, 0))[0] + requested), capacity)
    return classes


def _divide(number: int, divisor: int) -> int:
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def _wrap(total: int) -> int:
    """Overflow like upstream's int64."""
    return (total + _INT64) % (2 * _INT64) - _INT64
