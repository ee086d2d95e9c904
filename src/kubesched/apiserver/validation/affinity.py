"""Affinity of pods to nodes and to each other.

Upstream: pkg/apis/core/validation/validation.go (validateAffinity and around, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, each, forbidden, invalid, required
from kubesched.apiserver.names import dns_label
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.validation.internal_form import internal_form
from kubesched.apiserver.validation.labels import label_name_faults, selector_faults
from kubesched.apiserver.validation.node_selectors import node_selector_faults, term_faults

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"


def affinity_faults(affinity: Plain, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with the affinity of a pod."""
    node_affinity = affinity.get("nodeAffinity")
    if node_affinity is not None:
        yield from _node_affinity_faults(node_affinity, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name)
        if terms is not None:
            yield from _pod_affinity_faults(terms, f"{path}.{name}")


def _node_affinity_faults(affinity: Plain, path: str) -> Iterator[FieldFault]:
    required_terms = affinity.get(_REQUIRED)
    if required_terms is not None:
        yield from node_selector_faults(required_terms, f"{path}.{_REQUIRED}")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        own_path = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_faults(term["weight"], own_path)
        # Values that no label can have are allowed in preferences.
        yield from term_faults(term["preference"], f"{own_path}.preference", checks_values=False)


def _weight_faults(weight: int, path: str) -> Iterator[FieldFault]:
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _pod_affinity_faults(affinity: Plain, path: str) -> Iterator[FieldFault]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _term_faults(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        own_path = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_faults(weighted["weight"], own_path)
        yield from _term_faults(weighted["podAffinityTerm"], f"{own_path}.podAffinityTerm")


def _term_faults(term: Plain, path: str) -> Iterator[FieldFault]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_faults(term.get(name), f"{path}.{name}")
    for namespace in term.get("namespaces") or ():
        yield from each(f"{path}.namespace", namespace, dns_label(namespace))
    yield from label_key_list_faults(
        path,
        term.get("matchLabelKeys") or (),
        term.get("mismatchLabelKeys") or (),
        term.get("labelSelector"),
    )
    key = term["topologyKey"]
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_name_faults(key, f"{path}.topologyKey")


def label_key_list_faults(
    path: str, matched: Sequence[str], mismatched: Sequence[str], selector: Plain | None
) -> Iterator[FieldFault]:
    """Yield what is wrong with the labels whose values are taken from the pod itself."""
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            yield forbidden(f"{path}.{name}", _NO_SELECTOR)
        elif keys:
            for index, key in enumerate(keys):
                yield from label_name_faults(key, f"{path}.{name}[{index}]")
    if selector is not None:
        yield from _selected_key_faults(path, matched, selector)
    for index, key in enumerate(matched):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def _selected_key_faults(
    path: str, matched: Sequence[str], selector: Plain
) -> Iterator[FieldFault]:
    """Yield keys that the selector asks for too: one expression is what the server adds itself."""
    indices = {key: index for index, key in enumerate(matched)}
    seen = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression["key"]
        if key in indices and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            yield invalid(f"{path}[{indices[key]}]", key, detail)
        seen.add(key)


def narrowed_node_affinity_faults(
    new: Plain | None, old: Plain | None, path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a gated pod's node affinity: it may only narrow."""
    required_terms = (old or {}).get(_REQUIRED)
    if required_terms is None:
        return
    path = f"{path}.{_REQUIRED}.nodeSelectorTerms"
    old_terms = required_terms.get("nodeSelectorTerms") or []
    new_terms = ((new or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if old_terms and len(old_terms) != len(new_terms):
        shown = [internal_form("core/NodeSelectorTerm", term) for term in new_terms]
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(path, shown or None, detail)
        return
    for index, (term, before) in enumerate(zip(new_terms, old_terms, strict=True)):
        if not _only_adds(term, before):
            shown_term = internal_form("core/NodeSelectorTerm", term)
            detail = "only additions are allowed (no mutations or deletions)"
            yield invalid(f"{path}[{index}]", shown_term, detail)


def _only_adds(new: Plain, old: Plain) -> bool:
    lists = ("matchExpressions", "matchFields")
    if not any(old.get(name) for name in lists):
        return not any(new.get(name) for name in lists)
    return all(
        (new.get(name) or [])[: len(old.get(name) or [])] == (old.get(name) or []) for name in lists
    )


def narrowed_selector_faults(
    new: Mapping[str, str], old: Mapping[str, str], path: str
) -> Iterator[FieldFault]:
    """Yield what is wrong with a change of a gated pod's node selector: it may only narrow."""
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid(path, dict(new) or None, detail)
