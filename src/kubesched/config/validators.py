"""Rules that several parts of a configuration share: names, labels, resources, scoring shapes.

Upstream: apimachinery/pkg/api/validate/content, pkg/apis/core/v1/helper,
          pkg/scheduler/apis/config/validation/validation_pluginargs.go (v1.36)
Differs:  nothing.
"""

import re
from collections.abc import Sequence

from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.faults import Fault, child, invalid, required

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_VALUE = f"({_NAME})?"
_LABEL_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, "
    "'-', '_' or '.', and must start and end with an alphanumeric character"
)
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_DNS_LABEL}(\\.{_DNS_LABEL})*"
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character"
)
_LABEL_BYTES_MAX = 63
_SUBDOMAIN_BYTES_MAX = 253
_SHAPE_SCORE_MAX = 10


def qualified_name_errors(name: str) -> tuple[str, ...]:
    """What is wrong with a label key: an optional DNS subdomain and "/", then a name."""
    parts = name.split("/")
    if len(parts) > 2:
        words = _regex_error(_NAME_WORDS, _NAME, "MyName", "my.name", "123-abc")
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {words} {optional}",)
    errors: list[str] = []
    if len(parts) == 2:
        errors += [f"prefix part {words}" for words in _prefix_errors(parts[0])]
    errors += [f"name part {words}" for words in _name_errors(parts[-1])]
    return tuple(errors)


def _prefix_errors(prefix: str) -> tuple[str, ...]:
    return dns1123_subdomain_errors(prefix) if prefix else ("must be non-empty",)


def _name_errors(name: str) -> list[str]:
    errors: list[str] = []
    if not name:
        errors.append("must be non-empty")
    elif _is_longer(name, _LABEL_BYTES_MAX):
        errors.append(_length_error(_LABEL_BYTES_MAX))
    if not re.fullmatch(_NAME, name):
        errors.append(_regex_error(_NAME_WORDS, _NAME, "MyName", "my.name", "123-abc"))
    return errors


def label_value_errors(value: str) -> tuple[str, ...]:
    """What is wrong with the value of a label."""
    errors: list[str] = []
    if _is_longer(value, _LABEL_BYTES_MAX):
        errors.append(_length_error(_LABEL_BYTES_MAX))
    if not re.fullmatch(_LABEL_VALUE, value):
        examples = ("MyValue", "my_value", "12345")
        errors.append(_regex_error(_LABEL_VALUE_WORDS, _LABEL_VALUE, *examples))
    return tuple(errors)


def dns1123_subdomain_errors(name: str) -> tuple[str, ...]:
    """What is wrong with a DNS subdomain in lower case."""
    errors: list[str] = []
    if _is_longer(name, _SUBDOMAIN_BYTES_MAX):
        errors.append(_length_error(_SUBDOMAIN_BYTES_MAX))
    if not re.fullmatch(_SUBDOMAIN, name):
        errors.append(_regex_error(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
    return tuple(errors)


def is_extended_resource_name(name: str) -> bool:
    """Tell whether a resource is neither Kubernetes' own nor a quota name, and well formed."""
    is_native = "/" not in name or "kubernetes.io/" in name
    if is_native or name.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{name}")


def validate_label_name(name: str, path: str) -> tuple[Fault, ...]:
    """Faults of a label key."""
    return tuple(invalid(path, name, words) for words in qualified_name_errors(name))


def validate_extended_resource_name(name: str, path: str) -> tuple[Fault, ...]:
    """Faults of the name of an extended resource."""
    faults = validate_label_name(name, path)
    if faults or is_extended_resource_name(name):
        return faults
    return (invalid(path, name, "is an invalid extended resource name"),)


def validate_resources(resources: Sequence[ResourceSpec], path: str) -> tuple[Fault, ...]:
    """Faults of weighted resources: weights are from 1 to 100."""
    return tuple(
        invalid(
            child(path, i, "weight"),
            resource.weight,
            f"resource weight of {resource.name} not in valid range (0, 100]",
        )
        for i, resource in enumerate(resources)
        if not 0 < resource.weight <= 100
    )


def validate_function_shape(shape: Sequence[UtilizationShapePoint], path: str) -> tuple[Fault, ...]:
    """Faults of a scoring function: utilization strictly increases within 0..100, score 0..10."""
    if not shape:
        return (required(path, "at least one point must be specified"),)
    faults: list[Fault] = []
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            place = child(path, i, "utilization")
            words = "values must be sorted in increasing order"
            faults.append(invalid(place, shape[i].utilization, words))
            break
    for i, point in enumerate(shape):
        faults += _range_faults(child(path, i, "utilization"), point.utilization, 100)
        faults += _range_faults(child(path, i, "score"), point.score, _SHAPE_SCORE_MAX)
    return tuple(faults)


def _range_faults(path: str, value: int, most: int) -> tuple[Fault, ...]:
    if 0 <= value <= most:
        return ()
    return (invalid(path, value, f"not in valid range [0, {most}]"),)


def _is_longer(text: str, bytes_max: int) -> bool:
    return len(text.encode(errors="surrogatepass")) > bytes_max


def _length_error(bytes_max: int) -> str:
    return f"must be no more than {bytes_max} bytes"


def _regex_error(words: str, pattern: str, *examples: str) -> str:
    listed = "  or ".join(f"'{example}'," for example in examples)  # two blanks, as upstream
    return f"{words} (e.g. {listed} regex used for validation is '{pattern}')"
