"""Topology spread constraints: those of a pod, the default ones in the arguments, and their rows.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/common.go;
          pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Reads:    pod.spec.topologySpreadConstraints, tolerations, node affinity; nodes.labels, taints
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubesched.api.core import TopologySpreadConstraint
from kubesched.api.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.api.requirements import CompiledSelector
from kubesched.api.selectors import (
    compile_label_selector,
    required_node_selector,
    selector_from_set,
)
from kubesched.api.tolerations import find_untolerated
from kubesched.config.args import PluginArgs
from kubesched.config.validation import validate_label_name
from kubesched.plugins.shared.siblings import siblings
from kubesched.plugins.shared.template_memo import TemplateMemo
from kubesched.snapshot.node_columns import NodeColumns
from kubesched.snapshot.node_selection import match_required_node_affinity
from kubesched.snapshot.node_table import NodeTable
from kubesched.snapshot.pod_info import PodInfo, PodTemplate
from kubesched.snapshot.pod_sums import PodSum

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"
_ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_HONOR: Final = "Honor"


class SpreadConstraint(msgspec.Struct, frozen=True):
    """A constraint with compiled selector and defaults.

    Attributes:
        topology_key: The node label whose values are the domains.
        max_skew: The maximum difference between a domain's pods and those of the emptiest domain.
        selector: Selects the pods to count.
        min_domains: With fewer domains, the emptiest counts as having 0 pods.
        honors_affinity: Whether nodes that do not match the pod's node affinity are excluded.
        honors_taints: Whether nodes with taints that the pod does not tolerate are excluded.
        pods: Counts the matching pods per row.
    """

    topology_key: str
    max_skew: int
    selector: CompiledSelector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    pods: PodSum


class SpreadConstraints(msgspec.Struct, frozen=True):
    """The constraints of one action, or the error because of which they cannot be compiled."""

    items: tuple[SpreadConstraint, ...] = ()
    error: str = ""


def own_constraints(
    template: PodTemplate, action: str, *, uses_match_label_keys: bool
) -> tuple[SpreadConstraint, ...]:
    """Return the constraints that a pod defines for an action (`whenUnsatisfiable`).

    Raises SelectorError if a selector is invalid.
    """
    parsed: list[SpreadConstraint] = []
    labels = template.labels
    for constraint in template.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != action:
            continue
        selector = compile_label_selector(constraint.label_selector)
        keys = (constraint.match_label_keys or ()) if uses_match_label_keys else ()
        equal = {key: labels[key] for key in keys if key in labels}
        if equal:
            selector = selector.with_requirements(selector_from_set(equal).requirements)
        parsed.append(_constraint(template.namespace, constraint, selector))
    return tuple(parsed)


def default_constraints(
    namespace: str, defaults: Iterable[TopologySpreadConstraint], selector: CompiledSelector
) -> tuple[SpreadConstraint, ...]:
    """Return the default constraints for a pod; `selector` selects its siblings."""
    if selector.is_empty:
        return ()
    return tuple(_constraint(namespace, constraint, selector) for constraint in defaults)


def _constraint(
    namespace: str, written: TopologySpreadConstraint, selector: CompiledSelector
) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=written.topology_key,
        max_skew=written.max_skew,
        selector=selector,
        min_domains=1 if written.min_domains is None else written.min_domains,
        honors_affinity=written.node_affinity_policy in (None, _HONOR),
        honors_taints=written.node_taints_policy == _HONOR,
        pods=siblings(namespace, selector),
    )


def have_all_keys(
    constraints: Sequence[SpreadConstraint], nodes: NodeTable
) -> NDArray[np.bool_] | None:
    """Return, as bool per row, whether it has all topology keys; None if every row does."""
    having: NDArray[np.bool_] | None = None
    for constraint in constraints:
        label = nodes.label(constraint.topology_key)
        absent = label.positions.get(None)
        if absent is not None:
            having = both(having, label.codes != absent)
    return having


class IncludedNodes(msgspec.Struct, frozen=True):
    """The nodes whose pods a constraint counts.

    Attributes:
        rows: Bool per row of the whole table; None includes all.
        is_domain: Bool per code of the topology key: whether an included node has this value.
    """

    rows: NDArray[np.bool_] | None
    is_domain: NDArray[np.bool_]


class Included(msgspec.Struct, frozen=True):
    """What all constraints of an action include.

    Attributes:
        having_all_keys: Bool per row of the whole table; None if no row is ignored.
        each: The nodes that each constraint includes, in their order.
    """

    having_all_keys: NDArray[np.bool_] | None
    each: tuple[IncludedNodes, ...]


class NodeInclusion:
    """Which nodes constraints include by their inclusion policies.

    What was derived for one pod holds for others with the same selectors until labels or taints
    of nodes change. The toleration operators Lt and Gt may be enabled.
    """

    def __init__(self, *, compares_tolerations: bool) -> None:
        self._compares_tolerations = compares_tolerations
        self._known: TemplateMemo[Included] = TemplateMemo(size_max=64)

    def of(
        self,
        constraints: Sequence[SpreadConstraint],
        pod: PodInfo,
        nodes: NodeColumns,
        *,
        requires_all_keys: bool = True,
    ) -> Included:
        """Return what constraints include.

        With `requires_all_keys`, nodes that lack the topology key of one of them are ignored.
        """
        spec = pod.spec
        key = (
            tuple([(c.topology_key, c.honors_affinity, c.honors_taints) for c in constraints]),
            requires_all_keys,
            tuple((spec.node_selector or {}).items()),
            required_node_selector(spec),
            spec.tolerations,
        )

        def derive() -> Included:
            having = have_all_keys(constraints, nodes) if requires_all_keys else None
            included: list[IncludedNodes] = []
            for constraint in constraints:
                rows = both(having, self.rows(constraint, pod, nodes))
                is_domain = nodes.label(constraint.topology_key).used(rows)
                included.append(IncludedNodes(rows, is_domain))
            return Included(having, tuple(included))

        return self._known.get(key, (nodes, nodes.labels_epoch, nodes.taints.version), derive)

    def rows(
        self, constraint: SpreadConstraint, pod: PodInfo, nodes: NodeTable
    ) -> NDArray[np.bool_] | None:
        """Return, as bool per row, whether the policies include it; None if every row is."""
        spec, compares = pod.spec, self._compares_tolerations
        matching = tolerated = None
        if constraint.honors_affinity and (spec.node_selector or required_node_selector(spec)):
            matching = match_required_node_affinity(pod, nodes)
        if constraint.honors_taints:
            tolerated = nodes.taints.map(
                lambda taints: (
                    find_untolerated(taints, spec.tolerations, comparison_operators=compares)
                    is None
                ),
                np.bool_,
            )
        return both(matching, tolerated)


def both(
    one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return the intersection of two row masks; None means all rows."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


# Arguments.


class PodTopologySpreadArgs(PluginArgs, frozen=True, kw_only=True):
    """The constraints of pods that define none.

    Attributes:
        default_constraints: Without labelSelector, which follows from the pod's services and owner;
            only with defaultingType List.
        defaulting_type: `System` for kube-scheduler's own two constraints (hosts and zones), `List`
            for those of defaultConstraints.
    """

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING

    def errors(self, path: str) -> Iterator[FieldError]:
        """Yield the errors in the type and in the default constraints."""
        place = child(path, "defaultingType")
        if self.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            supported = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
            yield not_supported(place, self.defaulting_type, supported)
        elif self.defaulting_type == SYSTEM_DEFAULTING and self.default_constraints:
            yield invalid(place, self.defaulting_type, "when .defaultConstraints are not empty")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            place = child(path, "defaultConstraints", index)
            yield from _constraint_errors(constraint, place)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                yield duplicate(place, f"{{{pair[0]}, {pair[1]}}}")
            seen.add(pair)


def _constraint_errors(constraint: TopologySpreadConstraint, path: str) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        place = child(path, "maxSkew")
        yield invalid(place, constraint.max_skew, "not in valid range (0, inf)")
    place = child(path, "topologyKey")
    if constraint.topology_key:
        yield from validate_label_name(constraint.topology_key, place)
    else:
        yield required(place, "can not be empty")
    place = child(path, "whenUnsatisfiable")
    if not constraint.when_unsatisfiable:
        yield required(place, "can not be empty")
    elif constraint.when_unsatisfiable not in _ACTIONS:
        yield not_supported(place, constraint.when_unsatisfiable, _ACTIONS)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(child(path, "labelSelector"), detail)
