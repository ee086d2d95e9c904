"""Selectors of nodes, as pods and volumes have them.

Upstream: pkg/apis/core/validation/validation.go (ValidateNodeSelector and around, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubesched.apiserver.field_fault import FieldFault, each, invalid, required
from kubesched.apiserver.names import dns_subdomain
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.labels import (
    label_name_faults,
    label_value_faults,
    operator_faults,
)


def node_selector_faults(
    selector: Plain, path: str, *, checks_values: bool = True
) -> Iterator[FieldFault]:
    """Yield what is wrong with a selector of nodes.

    Args:
        selector: Its terms.
        path: Of the selector.
        checks_values: Whether values have to be possible values of labels.
    """
    terms: Sequence[Plain] = selector.get("nodeSelectorTerms") or ()
    path = f"{path}.nodeSelectorTerms"
    if not terms:
        yield required(path, "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from term_faults(term, f"{path}[{index}]", checks_values=checks_values)


def term_faults(term: Plain, path: str, *, checks_values: bool) -> Iterator[FieldFault]:
    """Yield what is wrong with one term."""
    for index, one in enumerate(term.get("matchExpressions") or ()):
        yield from _label_faults(one, f"{path}.matchExpressions[{index}]", checks_values)
    for index, one in enumerate(term.get("matchFields") or ()):
        yield from _field_faults(one, f"{path}.matchFields[{index}]")


def _label_faults(one: Plain, path: str, checks_values: bool) -> Iterator[FieldFault]:
    operator, values = one["operator"], one.get("values") or []
    yield from operator_faults(operator, len(values), path)
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(f"{path}.values", detail)
    elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from label_name_faults(one["key"], f"{path}.key")
    if checks_values:
        yield from label_value_faults(values, f"{path}.values")


def _field_faults(one: Plain, path: str) -> Iterator[FieldFault]:
    operator, values = one["operator"], one.get("values") or []
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if one["key"] != "metadata.name":
        yield invalid(f"{path}.key", one["key"], "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from each(f"{path}.values[{index}]", value, dns_subdomain(value))
