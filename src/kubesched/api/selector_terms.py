"""Node selectors of the API: terms of requirements on labels and fields.

Upstream: staging/src/k8s.io/api/core/v1/types.go (v1.36)
Differs:  nothing.
"""

from kubesched.api.meta import Int32, KubeStruct


class NodeSelectorRequirement(KubeStruct):
    """One expression on a node: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(KubeStruct):
    """Expressions that must all match; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubeStruct):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubeStruct):
    """A preferred term with its weight, 1 to 100."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class TopologySelectorLabelRequirement(KubeStruct):
    """A node label that must have one of the values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubeStruct):
    """Node labels of a storage topology, which must all match."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
