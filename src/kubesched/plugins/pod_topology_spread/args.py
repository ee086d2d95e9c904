"""The arguments of PodTopologySpread.

Upstream: pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesched.api.core import TopologySpreadConstraint
from kubesched.api.field_errors import (
    ConfigError,
    FieldError,
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kubesched.config.args import PluginArgs, decode_args
from kubesched.config.validation import validate_label_name

SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")


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


def decode_spread_args(raw: dict[str, object] | None, path: str) -> PodTopologySpreadArgs:
    """Decode and validate the arguments.

    Raises:
        ConfigError: With every field error found.
    """
    args = decode_args(PodTopologySpreadArgs, raw, path)
    errors = (*_type_errors(args, path), *_constraints_errors(args, path))
    if errors:
        raise ConfigError(errors)
    return args


def _type_errors(args: PodTopologySpreadArgs, path: str) -> Iterator[FieldError]:
    place = child(path, "defaultingType")
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        supported = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
        yield not_supported(place, args.defaulting_type, supported)
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        yield invalid(place, args.defaulting_type, "when .defaultConstraints are not empty")


def _constraints_errors(args: PodTopologySpreadArgs, path: str) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
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
