"""Rules for several parts of a configuration: names, labels, resources, scoring functions.

Upstream: pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Differs:  nothing.
"""

from collections.abc import Sequence

from kubesched.api.label_format import label_key_errors
from kubesched.api.resource_names import is_extended_resource_name
from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.field_errors import FieldError, child, invalid, required

_SHAPE_SCORE_MAX = 10


def validate_label_name(name: str, path: str) -> tuple[FieldError, ...]:
    """Check a label key."""
    return tuple(invalid(path, name, words) for words in label_key_errors(name))


def validate_extended_resource_name(name: str, path: str) -> tuple[FieldError, ...]:
    """Check the name of an extended resource."""
    errors = validate_label_name(name, path)
    if errors or is_extended_resource_name(name):
        return errors
    return (invalid(path, name, "is an invalid extended resource name"),)


def validate_resources(resources: Sequence[ResourceSpec], path: str) -> tuple[FieldError, ...]:
    """Check weighted resources: weights are from 1 to 100."""
    return tuple(
        invalid(
            child(path, i, "weight"),
            resource.weight,
            f"resource weight of {resource.name} not in valid range (0, 100]",
        )
        for i, resource in enumerate(resources)
        if not 0 < resource.weight <= 100
    )


def validate_function_shape(
    shape: Sequence[UtilizationShapePoint], path: str
) -> tuple[FieldError, ...]:
    """Check a scoring function: utilization strictly increases in 0..100, scores are 0..10."""
    if not shape:
        return (required(path, "at least one point must be specified"),)
    errors: list[FieldError] = []
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            place = child(path, i, "utilization")
            words = "values must be sorted in increasing order"
            errors.append(invalid(place, shape[i].utilization, words))
            break
    for i, point in enumerate(shape):
        errors += _range_errors(child(path, i, "utilization"), point.utilization, 100)
        errors += _range_errors(child(path, i, "score"), point.score, _SHAPE_SCORE_MAX)
    return tuple(errors)


def _range_errors(path: str, value: int, most: int) -> tuple[FieldError, ...]:
    if 0 <= value <= most:
        return ()
    return (invalid(path, value, f"not in valid range [0, {most}]"),)
