"""The arguments of NodeResourcesFit: ignored resources and the scoring strategy.

Upstream: kube-scheduler/config/v1/types_pluginargs.go, pkg/scheduler/apis/config/v1/defaults.go,
          pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Rejects:  resources that are not label names, unknown strategies, weights outside 1..100, and a
          shape that is missing, malformed, or given for another strategy.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubesched.api.field_errors import (
    FieldError,
    child,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.config.args import PluginArgs, ResourceSpec, UtilizationShapePoint
from kubesched.config.types import ConfigStruct
from kubesched.config.validation import (
    validate_function_shape,
    validate_label_name,
    validate_resources,
)

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
_TYPES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class RequestedToCapacityRatioParam(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """A scoring function of utilization.

    Attributes:
        shape: Its points, by rising utilization.
    """

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigStruct, frozen=True, forbid_unknown_fields=True):
    """How feasible nodes are scored, and by which resources.

    Attributes:
        type: `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.
        resources: The resources to score by.
        requested_to_capacity_ratio: The scoring function of RequestedToCapacityRatio.
    """

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(PluginArgs, frozen=True, kw_only=True):
    """The arguments.

    Attributes:
        ignored_resources: Extended resources that are not checked.
        ignored_resource_groups: Prefixes of extended resources, before the slash, that are not
            checked.
        scoring_strategy: How feasible nodes are scored.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED, DEFAULT_RESOURCES)

    def errors(self, path: str) -> Iterable[FieldError]:
        """Yield the errors; the defaults have been filled in (`config.args.complete_args`)."""
        for at, name in enumerate(self.ignored_resources):
            yield from validate_label_name(name, child(path, "ignoredResources", at))
        for at, group in enumerate(self.ignored_resource_groups):
            place = child(path, "ignoredResourceGroups", at)
            if "/" in group:
                yield invalid(place, group, "resource group name can't contain '/'")
            yield from validate_label_name(group, place)
        yield from _strategy_errors(self.scoring_strategy, child(path, "scoringStrategy"))


def _strategy_errors(strategy: ScoringStrategy, path: str) -> Iterable[FieldError]:
    if strategy.type not in _TYPES:
        yield not_supported(child(path, "type"), strategy.type, _TYPES)
    yield from validate_resources(strategy.resources, child(path, "resources"))
    place = child(path, "requestedToCapacityRatio")
    param = strategy.requested_to_capacity_ratio
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if param is not None:
            yield forbidden(place, "must be nil when type is not RequestedToCapacityRatio")
    elif param is None:
        yield required(place, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from validate_function_shape(param.shape, child(place, "shape"))
