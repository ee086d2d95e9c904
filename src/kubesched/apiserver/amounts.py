"""Amounts of resources: what a pod's containers need together, and the class that makes of it.

Upstream: staging/src/k8s.io/component-helpers/resource/helpers.go,
          pkg/apis/core/helper/qos/qos.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubesched.api.quantity import Amount, parse_quantity
from kubesched.apiserver.plain import Plain

_RESOURCES: Final = ("cpu", "memory")


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
        all(len(_positive(one.get("limits") or {})) == len(_RESOURCES) for one in limited)
        and requests.keys() == limits.keys()
        and all(amount.compare(limits[name]) == 0 for name, amount in requests.items())
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(quantities: Mapping[str, str]) -> dict[str, Amount]:
    amounts = {name: parse_quantity(quantities[name]) for name in _RESOURCES if name in quantities}
    return {name: amount for name, amount in amounts.items() if amount.sign > 0}


def _totals(lists: Sequence[Mapping[str, str]]) -> dict[str, Amount]:
    totals: dict[str, Amount] = {}
    for quantities in lists:
        for name, amount in _positive(quantities).items():
            totals[name] = amount.add(totals[name]) if name in totals else amount
    return totals


# Amounts by name: added up, and raised to one another.

_SHARED_RESOURCES: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"


def is_pod_level(name: str) -> bool:
    """Whether a pod may ask for it besides its containers."""
    return name in _SHARED_RESOURCES or is_huge_page(name)


def is_shared(name: str) -> bool:
    """Whether it is cpu or memory."""
    return name in _SHARED_RESOURCES


def is_huge_page(name: str) -> bool:
    """Whether it is a size of huge pages."""
    return name.startswith(_HUGE_PAGES)


class Amounts(dict[str, Amount]):
    """Amounts by the name of the resource."""

    def add(self, quantities: Mapping[str, str] | None) -> None:
        """Add quantities to it."""
        for name, quantity in (quantities or {}).items():
            amount = parse_quantity(quantity)
            self[name] = self[name].add(amount) if name in self else amount

    def raise_to(self, others: Mapping[str, Amount]) -> None:
        """Take the larger of both for each resource."""
        for name, amount in others.items():
            if name not in self or amount.compare(self[name]) > 0:
                self[name] = amount


def of_containers(spec: Plain, kind: str) -> Amounts:
    """Return what all containers need together, or one init container beside its sidecars.

    Args:
        spec: Of a pod.
        kind: `requests` or `limits`.
    """
    total = Amounts()
    for container in spec.get("containers") or ():
        total.add(container["resources"].get(kind))
    sidecars, peak = Amounts(), Amounts()
    for container in spec.get("initContainers") or ():
        needed = Amounts()
        if container.get("restartPolicy") == "Always":
            total.add(container["resources"].get(kind))
            sidecars.add(container["resources"].get(kind))
        else:
            needed.add(container["resources"].get(kind))
        for name, amount in sidecars.items():
            needed[name] = needed[name].add(amount) if name in needed else amount
        peak.raise_to(needed)
    total.raise_to(peak)
    return total
