"""Parts of Kubernetes objects: metadata, owners, selectors, conditions; handlers of objects.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go; api/core/v1/types.go,
          NodeSelector (v1.36)
Differs:  managedFields and selfLink are not read.
"""

from typing import Protocol, dataclass_transform

import msgspec

from kubesched.api.integers import Int32, Int64


# Type checkers do not know that subclasses inherit these settings.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class KubeStruct(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """A frozen value with Kubernetes' JSON names; an absent field has its default.

    `gc=False` is safe because API objects are trees: no field may refer back to its parent.
    """


class OwnerReference(KubeStruct):
    """The object that owns another; at most one of them is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeStruct):
    """Name, namespace, labels and life cycle. Times are RFC 3339 text, see `api.times`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, or the name of an object without namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KubeObject(KubeStruct):
    """An object of any kind; the kind and its version are "" where an object is built without."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(KubeStruct):
    """One expression of a label selector: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(KubeStruct):
    """Labels that must be equal and expressions that must match; an empty one selects all."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(LabelSelectorRequirement):
    """One expression on a node: In, NotIn, Exists, DoesNotExist, Gt or Lt."""


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


class Condition(KubeStruct):
    """One observation of an object's state."""

    type: str = ""
    status: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that is the object's controller, None if there is none."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None


def annotated_number(meta: ObjectMeta, annotation: str) -> float | None:
    """Return the number in an annotation, None if it is missing, negative or no finite number."""
    text = meta.annotations.get(annotation)
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


class ResourceEventHandler(Protocol):
    """Handles the objects of a cluster as they come, change and go."""

    def added(self, item: KubeObject, /) -> None:
        """Handle a new object."""

    def updated(self, old: KubeObject, new: KubeObject, /) -> None:
        """Handle a changed object."""

    def deleted(self, item: KubeObject, /, *, is_final_state_known: bool = True) -> None:
        """Handle a deletion; if the final state is not known, `item` is the last seen."""
