"""Amounts of resources: what a pod's containers need together, and the class that makes of it.

Upstream: staging/src/k8s.io/component-helpers/resource/helpers.go,
          pkg/apis/core/helper/qos/qos.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kubesched.api.core import Pod
from kubesched.api.pod_requests import pod_limit_amounts, pod_request_amounts
from kubesched.api.quantity import Amount, parse_quantity
from kubesched.apiserver.plain import Plain

SHARED_RESOURCES: Final = ("cpu", "memory")


def qos_class(spec: Plain) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort`."""
    resources: Sequence[Plain]
    if spec.get("resources") is not None:
        resources = [spec["resources"]]
        # A pod with no limits of its own at all is judged by its requests alone.
        limited = [one for one in resources if one.get("limits")]
    else:
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        resources = limited = [container["resources"] for container in containers]
    requests = _totals([one.get("requests") or {} for one in resources])
    limits = _totals([one.get("limits") or {} for one in resources])
    if not requests and not limits:
        return "BestEffort"
    is_guaranteed = (
        all(len(_positive(one.get("limits") or {})) == len(SHARED_RESOURCES) for one in limited)
        and requests.keys() == limits.keys()
        and all(amount.compare(limits[name]) == 0 for name, amount in requests.items())
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(quantities: Mapping[str, str]) -> dict[str, Amount]:
    amounts = {
        name: parse_quantity(quantities[name]) for name in SHARED_RESOURCES if name in quantities
    }
    return {name: amount for name, amount in amounts.items() if amount.sign > 0}


def _totals(lists: Sequence[Mapping[str, str]]) -> dict[str, Amount]:
    totals: dict[str, Amount] = {}
    for quantities in lists:
        for name, amount in _positive(quantities).items():
            totals[name] = amount.add(totals[name]) if name in totals else amount
    return totals


def of_containers(spec: Plain, kind: str) -> dict[str, Amount]:
    """Return what all containers need together, or one init container beside its sidecars.

    Args:
        spec: Of a pod.
        kind: `requests` or `limits`.
    """
    containers = {
        name: [
            {"resources": one["resources"], "restartPolicy": one.get("restartPolicy", "")}
            for one in spec.get(name) or ()
        ]
        for name in ("containers", "initContainers")
    }
    pod = msgspec.convert({"spec": containers}, Pod)
    total = pod_request_amounts if kind == "requests" else pod_limit_amounts
    return total(pod, pod_level=False)
