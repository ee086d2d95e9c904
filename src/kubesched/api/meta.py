"""Parts of all Kubernetes objects: metadata, owners, label selectors, conditions, times.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go (v1.36)
Differs:  managedFields and selfLink are not read.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Final, Protocol, dataclass_transform

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


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
    """Name, namespace, labels and life cycle. Times are RFC 3339 text, see `parse_time`."""

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


class KubeObject(Protocol):
    """The fields of every kind; the classes have no common base class with them."""

    @property
    def api_version(self) -> str:
        """Group and version, "" if the object has none."""
        ...

    @property
    def kind(self) -> str:
        """The kind's name, "" if the object has none."""
        ...

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, labels and so on."""
        ...


class LabelSelectorRequirement(KubeStruct):
    """One expression of a label selector: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(KubeStruct):
    """Labels that must be equal and expressions that must match; an empty one selects all."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


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


_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 1_000_000_000


@lru_cache(maxsize=65_536)
def parse_time(text: str) -> int:
    """Return an RFC 3339 time in nanoseconds since the epoch, truncated.

    Raises:
        ValueError: The text is not an RFC 3339 time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no RFC 3339 time")
    date, clock, fraction, sign, hours, minutes = match.groups()
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}+00:00") - _EPOCH
    except ValueError as error:
        raise ValueError(f"{text!r} is no RFC 3339 time: {error}") from None
    offset_seconds = 0
    if sign:
        # The limits of Go's parser.
        if int(hours) > 24 or int(minutes) > 60:
            raise ValueError(f"{text!r} is no RFC 3339 time: time zone offset out of range")
        offset_seconds = (int(hours) * 60 + int(minutes)) * (-60 if sign == "-" else 60)
    seconds = whole.days * 86_400 + whole.seconds - offset_seconds
    return seconds * _NANOSECONDS + int(f"{fraction or '0':0<9}"[:9])
