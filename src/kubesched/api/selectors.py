"""Matching of label selectors, and of node selectors against single nodes.

Upstream: apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector),
          component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go (v1.36)
Differs:  of several invalid matchLabels, the first by key is reported, not a random one.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kubesched.api.core import Node, PodSpec
from kubesched.api.field_errors import FieldError, invalid, not_supported
from kubesched.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kubesched.api.requirements import (
    DOES_NOT_EXIST,
    EQUALS,
    EVERYTHING,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_IN,
    NOTHING,
    CompiledSelector,
    Requirement,
    SelectorError,
    checked_requirement,
    requirement_errors,
    selector_of,
)

_FIELD_OPERATORS: Final = (IN, NOT_IN)
_LABEL_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, GREATER_THAN, LESS_THAN)
_NAME_FIELD: Final = "metadata.name"


def compile_label_selector(selector: LabelSelector | None) -> CompiledSelector:
    """Compile a label selector: None matches nothing, an empty one everything.

    Raises SelectorError if the selector is invalid.
    """
    if selector is None:
        return NOTHING
    labels = tuple(sorted(selector.match_labels.items()))
    return _compile(labels, selector.match_expressions)


@lru_cache(maxsize=16_384)
def _compile(
    labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]
) -> CompiledSelector:
    requirements = [checked_requirement(key, EQUALS, (value,)) for key, value in labels]
    for expression in expressions:
        operator = expression.operator
        if operator not in _LABEL_OPERATORS:
            shown = msgspec.json.encode(operator).decode()
            raise SelectorError(f"{shown} is not a valid pod selector operator")
        requirements.append(checked_requirement(expression.key, operator, expression.values))
    return selector_of(requirements)


def label_selector_error(selector: LabelSelector | None) -> str | None:
    """Return upstream's message about an invalid selector, None if it is valid."""
    try:
        compile_label_selector(selector)
    except SelectorError as error:
        return str(error)
    return None


def matches_label_selector(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches; None and invalid selectors match nothing."""
    try:
        return compile_label_selector(selector).matches(labels)
    except SelectorError:
        return False


def selector_from_set(labels: Mapping[str, str] | None) -> CompiledSelector:
    """Return a selector that requires these labels, without validating them."""
    if not labels:
        return EVERYTHING
    return selector_of(Requirement(key, EQUALS, (value,)) for key, value in labels.items())


def matches_set(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether `labels` contain all of `wanted`."""
    return all(labels.get(key) == value for key, value in wanted.items())


def node_selector_term_errors(term: NodeSelectorTerm, path: str = "") -> tuple[str, ...]:
    """Return upstream's messages about an invalid term; empty if it is valid."""
    prefix = f"{path}." if path else ""
    errors: list[FieldError] = []
    for index, expression in enumerate(term.match_expressions):
        errors += _expression_errors(expression, f"{prefix}matchExpressions[{index}]")
    for index, expression in enumerate(term.match_fields):
        errors += _field_errors(expression, f"{prefix}matchFields[{index}]")
    return tuple(map(str, errors))


def _expression_errors(expression: NodeSelectorRequirement, path: str) -> tuple[FieldError, ...]:
    if expression.operator not in _NODE_OPERATORS:
        return (not_supported(f"{path}.operator", expression.operator, _NODE_OPERATORS),)
    return requirement_errors(expression.key, expression.operator, expression.values, path)


def _field_errors(expression: NodeSelectorRequirement, path: str) -> tuple[FieldError, ...]:
    if expression.operator not in _FIELD_OPERATORS:
        return (not_supported(f"{path}.operator", expression.operator, _FIELD_OPERATORS),)
    if len(expression.values) != 1:
        return (invalid(f"{path}.values", expression.values or None, "must have one element"),)
    return ()


@lru_cache(maxsize=16_384)
def can_match(term: NodeSelectorTerm) -> bool:
    """Whether a term can be parsed and is not empty; others match no node."""
    is_empty = not term.match_expressions and not term.match_fields
    return not is_empty and not node_selector_term_errors(term)


def matches_node_selector_term(
    term: NodeSelectorTerm, labels: Mapping[str, str], name: str
) -> bool:
    """Whether a term matches a node with these labels and this name.

    A term that is empty or cannot be parsed matches no node.
    """
    if not can_match(term):
        return False
    return all(
        Requirement(one.key, one.operator, one.values).matches(labels)
        for one in term.match_expressions
    ) and all(_matches_field(one, name) for one in term.match_fields)


def _matches_field(requirement: NodeSelectorRequirement, name: str) -> bool:
    # As upstream, field requirements are ignored for a node without a name.
    if not name:
        return True
    field = name if requirement.key == _NAME_FIELD else ""
    return (field == requirement.values[0]) == (requirement.operator == IN)


def matches_node_selector(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Whether one of the terms matches; a selector without terms matches no node."""
    return any(
        matches_node_selector_term(term, labels, name) for term in selector.node_selector_terms
    )


def node_selector_errors(
    selector: NodeSelector, path: str = "nodeSelectorTerms"
) -> tuple[str, ...]:
    """Return upstream's messages about all invalid terms."""
    return tuple(
        error
        for index, term in enumerate(selector.node_selector_terms)
        for error in node_selector_term_errors(term, f"{path}[{index}]")
    )


def preferred_term_errors(terms: tuple[PreferredSchedulingTerm, ...]) -> tuple[str, ...]:
    """Return upstream's messages about invalid preferred terms; ignores those with weight 0."""
    return tuple(
        error
        for index, term in enumerate(terms)
        if term.weight
        for error in node_selector_term_errors(term.preference, f"[{index}]")
    )


def required_node_selector(spec: PodSpec) -> NodeSelector | None:
    """Return a pod's required node affinity, None if it has none."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def matches_required_node_affinity(spec: PodSpec, node: Node) -> bool:
    """Whether a pod's nodeSelector and required node affinity both match the node.

    A term that cannot be parsed does not match.
    """
    metadata, required = node.metadata, required_node_selector(spec)
    return matches_set(spec.node_selector or {}, metadata.labels) and (
        required is None or matches_node_selector(required, metadata.labels, metadata.name)
    )
