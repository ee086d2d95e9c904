"""PodResources lists requests and limits of pods, for /metrics/resources.

Upstream: pkg/scheduler/metrics/resources/resources.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from kubesched.api.core import Pod
from kubesched.api.pod_requests import Amounts, pod_limit_amounts, pod_request_amounts
from kubesched.api.quantity import Amount
from kubesched.api.resource_names import is_huge_page_resource_name
from kubesched.app.metrics.family import FAMILIES, Labels

_FINISHED: Final = ("Succeeded", "Failed")
_UNITS: Final = {
    "cpu": "cores",
    "memory": "bytes",
    "storage": "bytes",
    "ephemeral-storage": "bytes",
}
_ATTACHABLE_VOLUMES: Final = "attachable-volumes-"


class PodResources:
    """Requests and limits of unfinished pods."""

    def __init__(self, pods: Callable[[], Iterable[Pod]]) -> None:
        """Take a function that returns the observed pods."""
        self._pods = pods

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        pods = [pod for pod in self._pods() if not _is_finished(pod)]
        requests = (each for pod in pods for each in _series(pod, pod_request_amounts(pod)))
        yield FAMILIES["kube_pod_resource_request"].metric(sorted(requests))
        limits = (each for pod in pods for each in _series(pod, pod_limit_amounts(pod)))
        yield FAMILIES["kube_pod_resource_limit"].metric(sorted(limits))


def _is_finished(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase in _FINISHED


def _series(pod: Pod, amounts: Amounts) -> Iterator[tuple[Labels, float]]:
    spec, metadata = pod.spec, pod.metadata
    priority = "" if spec.priority is None else str(spec.priority)
    for resource, amount in amounts.items():
        if amount.sign:
            labels = (
                metadata.namespace,
                metadata.name,
                spec.node_name or "",
                spec.scheduler_name or "",
                priority,
                resource,
                _unit(resource),
            )
            yield labels, _approximate(amount)


def _unit(resource: str) -> str:
    if is_huge_page_resource_name(resource):
        return "bytes"
    if resource.startswith(_ATTACHABLE_VOLUMES):
        return "integer"
    return _UNITS.get(resource, "")


def _approximate(amount: Amount) -> float:
    scale: int = 10 ** abs(amount.exponent)
    if amount.exponent >= 0:
        return float(amount.unscaled * scale)
    return amount.unscaled / scale
