"""Validation: what is wrong with an object, field by field.

The rules of the schema's tables are interpreted by `rules`; what scheduling reads has more of them
in `pods`, `pod_updates` and `kinds`. Decision 14 has their scope.

Upstream: pkg/apis/*/validation, staging/src/k8s.io/apiserver/pkg/registry/rest (v1.36)
Differs:  kinds whose fields are not known are only checked for their metadata.
"""

from __future__ import annotations

from typing import Final

from kubesched.api.field_errors import FieldError
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import ObjectType
from kubesched.apiserver.status import FieldErrors
from kubesched.apiserver.validation import kinds, pods
from kubesched.apiserver.validation.metadata import check_metadata, check_metadata_update
from kubesched.apiserver.validation.rules import TypeChecks, check_changes, check_rules

_CHECKS: Final = TypeChecks(
    {**pods.CHECKS, **kinds.CHECKS}, {**pods.LATE_CHECKS, **kinds.LATE_CHECKS}
)
# Fields that an update does not check.
_SKIPPED: Final = {"Node": (), "PriorityClass": ("preemptionPolicy",)}


def errors_of_new(resource: Resource, obj: Plain) -> list[FieldError]:
    """Return the field errors of a new object, prepared by its strategy and with its name."""
    errors = FieldErrors()
    # Kinds with only the rules of all objects are checked for these last.
    is_first = not ("plain" in resource.flags and resource.name_form == "path_segment")
    if is_first:
        check_metadata(resource, obj["metadata"], (resource.name_form,), errors)
    # The statuses of pods are set by the server.
    skipped = ("metadata", "status") if resource.built_in_kind == "Pod" else ("metadata",)
    check_rules(resource.type, obj, _CHECKS, errors, skipped=skipped)
    if (check := kinds.NEW_CHECKS.get(resource.built_in_kind)) is not None:
        check(obj, errors)
    if not is_first and not errors:
        check_metadata(resource, obj["metadata"], (resource.name_form,), errors)
    return errors


def errors_of_update(
    resource: Resource, new: Plain, old: Plain, subresource: str
) -> list[FieldError]:
    """Return the field errors of a changed object, prepared by its strategy."""
    errors = FieldErrors()
    is_held = "plain" not in resource.flags and subresource != "status"
    forms = ("path_segment", resource.name_form) if is_held else ("path_segment",)
    check_metadata(resource, new["metadata"], dict.fromkeys(forms), errors)
    check_metadata_update(new["metadata"], old["metadata"], errors)
    object_type, fields = resource.type, resource.type.fields.values()
    status = resource.type.fields.get("status")
    if subresource != "status" or resource.built_in_kind == "Node":
        # Immutable objects have been checked when they were created.
        fixed = [
            one.name for one in fields if one.is_immutable and isinstance(one.type, ObjectType)
        ]
        skipped = ("metadata", *_SKIPPED.get(resource.built_in_kind, ("status",)))
        check_rules(object_type, new, _CHECKS, errors, skipped=(*skipped, *fixed))
        check_changes(object_type, new, old, errors)
    elif status is not None and isinstance(status.type, ObjectType):
        check_rules(status.type, new.get("status") or {}, _CHECKS, errors, "status")
    if (check := kinds.UPDATE_CHECKS.get((resource.built_in_kind, subresource))) is not None:
        check(new, old, errors)
    return errors
