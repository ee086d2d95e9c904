"""Amounts of resources by name: added up, and raised to one another.

Upstream: staging/src/k8s.io/component-helpers/resource/helpers.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesched.api.quantity import Amount, parse_quantity
from kubesched.apiserver.plain import Plain

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
