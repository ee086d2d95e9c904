"""Patches of every kind, from the request to the changed object.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36)
Rejects:  patches that do not apply, and those that change the name.
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kubesched.api.json_syntax import text_fault
from kubesched.apiserver import (
    defaults,
    json_patch,
    merge_patch,
    server_side_apply,
    strategic_merge,
)
from kubesched.apiserver.decoding import BodyError, is_longer, parsed, patch_problems
from kubesched.apiserver.go_values import go_text
from kubesched.apiserver.operation import APPLY_TYPE, Operation
from kubesched.apiserver.patch_error import PatchError, unfit_patch
from kubesched.apiserver.patched_text import merged_text, operated_text
from kubesched.apiserver.plain import Plain
from kubesched.apiserver.registry import check_namespace
from kubesched.apiserver.resources import Resource
from kubesched.apiserver.schema import DecodeError, ObjectType, decoded, type_of
from kubesched.apiserver.status import StatusError, bad_request, unsupported_patch_type
from kubesched.apiserver.times import Clock

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_OPERATION: Final = frozenset(("op", "path", "from", "value"))
_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_TYPE)


class Patch:
    """One patch, read once and applied to an object.

    Attributes:
        is_apply: Whether it creates what does not exist and says who manages its fields.
    """

    def __init__(self, operation: Operation, resource: Resource, clock: Clock) -> None:
        """Read a patch.

        Args:
            operation: The request.
            resource: What is patched; for a subresource of a kind of its own, that kind.
            clock: For the times of managed fields.

        Raises:
            StatusError: It cannot be read.
        """
        self._operation = operation
        self._resource = resource
        self._clock = clock
        self._type = operation.request.content_type
        check_type(self._type)
        self.is_apply = self._type == APPLY_TYPE
        self._value = self._read(operation.request.body)

    def _read(self, body: bytes) -> Any:
        if self.is_apply:
            try:
                return parsed(body, "application/yaml")
            except BodyError as error:
                raise bad_request(f"error decoding YAML: {error}") from None
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            fault = text_fault(body) or "unexpected end of JSON input"
            raise bad_request(f"error decoding patch: {fault}") from None

    def apply(self, current: Plain | None) -> Plain:
        """Return the changed object.

        Args:
            current: The object; None if there is none, which only an apply survives.

        Raises:
            StatusError: The patch does not apply.
        """
        try:
            if self.is_apply:
                return defaults.with_defaults(self._resource, self._applied(current))
            assert current is not None, "only an apply creates"
            return self._changed(current)
        except PatchError as error:
            raise status_error(error) from None

    def _changed(self, current: Plain) -> Plain:
        if self._type == STRATEGIC_PATCH:
            changed = strategic_merge.apply(self._resource.kind, current, self._value)
            return self._typed(changed, lambda: go_text(self._value))
        if self._type == MERGE_PATCH:
            changed = merge_patch.apply(current, self._value)
            text_of: Callable[[Resource, Plain, Any], str] = merged_text
        else:
            changed = json_patch.apply(current, self._value)
            text_of = operated_text
        if not isinstance(changed, dict):
            raise bad_request("the patch leaves no object")
        return self._typed(changed, lambda: text_of(self._resource, changed, self._value))

    def _typed(self, changed: Plain, shown: Callable[[], str]) -> Plain:
        """Return an object as the server writes it, if its values fit their fields."""
        resource = self._resource
        object_type = type_of(resource.group, resource.version, resource.kind)
        if object_type is None:
            return changed
        try:
            read, unknown = decoded(object_type, changed)
        except DecodeError as error:
            raise unfit_patch(shown(), str(error)) from None
        if unknown or self._has_odd_fields():
            self._check_fields(object_type, changed, shown)
        defaults.fill_in(object_type, read)
        return read

    def _has_odd_fields(self) -> bool:
        """Whether the patch may say something twice, or something that no patch says."""
        is_odd = self._type == JSON_PATCH and any(
            not _OPERATION.issuperset(one) for one in self._value or () if isinstance(one, dict)
        )
        return is_odd or is_longer(self._operation, self._value)

    def _check_fields(
        self, object_type: ObjectType, changed: Plain, shown: Callable[[], str]
    ) -> None:
        operation = self._operation
        if operation.validation == "Ignore":
            return
        problems = patch_problems(
            object_type,
            changed,
            operation.request.body,
            is_merged=self._type == STRATEGIC_PATCH,
        )
        if problems and operation.validation == "Strict":
            raise unfit_patch(shown(), f"strict decoding error: {', '.join(problems)}")
        operation.warnings.extend(problems)

    def _applied(self, current: Plain | None) -> Plain:
        operation = self._operation
        return server_side_apply.apply(
            self._resource,
            current,
            self._value,
            operation.request.parameter("fieldManager"),
            operation.request.flag("force"),
            self._clock.timestamp(),
            operation.subresource,
        )


def check_type(media_type: str) -> None:
    """Check that a body is a patch.

    Raises:
        StatusError: It is something else.
    """
    if media_type not in _TYPES:
        raise unsupported_patch_type()


def status_error(error: PatchError) -> StatusError:
    """Return the answer to a patch that does not apply."""
    return StatusError(error.status_code, error.reason, error.message, error.details)


def check_name(operation: Operation, obj: Plain) -> None:
    """Check that an object is the one that the path names.

    Raises:
        StatusError: It is another one.
    """
    metadata = obj.get("metadata", {})
    name = metadata.get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({operation.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != operation.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({operation.name})"
        )
    namespace = metadata.get("namespace", "")
    if operation.namespace and namespace and namespace != operation.namespace:
        raise bad_request(
            f"the namespace of the object ({namespace}) does not match the namespace on the "
            f"request ({operation.namespace})"
        )


def same_object(operation: Operation, obj: Plain) -> Plain:
    """Return a patched object, which is still the one that the path names.

    Raises:
        StatusError: It is another one.
    """
    check_namespace(operation, obj)
    check_name(operation, obj)
    return obj
