"""TopologyPlacementGenerator: place a pod group in one domain of a topology.

Upstream: pkg/scheduler/framework/plugins/topologyaware (v1.36)
Reads:    PodGroup spec.schedulingConstraints; the group's scheduled pods; nodes' labels
Rejects:  nothing; fails if the scheduled pods are in no domain or in several.
Differs:  domains are tried in order of their first nodes; upstream's order is arbitrary.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kubesched.api.scheduling import PodGroup
from kubesched.framework.pod_groups import (
    GeneratedPlacements,
    Placement,
    PlacementGeneratePlugin,
    state_not_found,
)
from kubesched.framework.status import failure
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.pod_info import PodInfo
from kubesched.snapshot.snapshot import Snapshot


class _DomainError(ValueError):
    """The group has no single domain."""


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """Divide nodes by the value of a label."""

    name: ClassVar = "TopologyPlacementGenerator"

    def generate_placements(
        self, namespace: str, name: str, parent: Placement, snapshot: Snapshot
    ) -> GeneratedPlacements:
        """Return one placement per domain, or only that of the group's scheduled pods."""
        group = snapshot.objects.get(PodGroup, name, namespace)
        if group is None:
            cause = f'podgroup.scheduling.k8s.io "{name}" not found'
            return GeneratedPlacements(status=failure(cause))
        key = _topology_key(group)
        if key is None:
            return GeneratedPlacements((parent,))
        state = self.handle.pod_group_states.get(namespace, name)
        if state is None:
            return GeneratedPlacements(status=failure(state_not_found(namespace, name)))
        scheduled = (*state.assigned_pods, *state.assumed_pods)
        try:
            domain = _domain_of(scheduled, key, snapshot.nodes)
        except _DomainError as error:
            cause = f"cannot determine domain for already scheduled pods: {error}"
            return GeneratedPlacements(status=failure(cause))
        return GeneratedPlacements(_divide(parent, key, domain, snapshot.nodes))


def _topology_key(group: PodGroup) -> str | None:
    """Return the group's topology label (the API allows one), or None."""
    constraints = group.spec.scheduling_constraints
    if constraints is None or not constraints.topology:
        return None
    return constraints.topology[0].key


def _domain_of(scheduled: Iterable[PodInfo], key: str, nodes: NodeColumns) -> str | None:
    """Return the domain of the pods, or None if there are no pods.

    Raises _DomainError if a pod's node is missing or has no domain, or the pods are in several
    domains.
    """
    found: str | None = None
    for pod in scheduled:
        row = nodes.row_of.get(pod.node_name)
        if row is None:
            raise _DomainError(
                f"getting node for pod {pod.key}: "
                f'nodeinfo not found for node name "{pod.node_name}"'
            )
        domain = nodes.nodes[row].metadata.labels.get(key)
        if domain is None:
            raise _DomainError(f"no topology domain found for pod {pod.key}")
        # As upstream, an empty value counts as no domain found so far.
        if found not in (None, "", domain):
            raise _DomainError(f"more than 1 domain found for pod group: {found}, {domain}")
        found = domain
    return found


def _divide(
    parent: Placement, key: str, required: str | None, nodes: NodeColumns
) -> tuple[Placement, ...]:
    rows_of: dict[str, list[int]] = {}
    for row in parent.rows:
        domain = nodes.nodes[row].metadata.labels.get(key)
        if domain is not None and required in (None, domain):
            rows_of.setdefault(domain, []).append(row)
    return tuple(Placement(domain, tuple(rows)) for domain, rows in rows_of.items())
