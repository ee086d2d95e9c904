"""Apply a strategic merge patch: lists merge by key, and directives say what merging cannot.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go,
          staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36)
Rejects:  400 for directives of the wrong form; 422 for a result that is no object of the kind;
          500 for a missing merge key, an unknown directive, or lists that cannot be merged.
Invariants: the object and the patch handed in are not changed.
Differs:  a patch is worked through in its own order, where upstream's order is random.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubesched.apiserver.conversion import first_fault
from kubesched.apiserver.go_values import go_text
from kubesched.apiserver.merge_lists import (
    deduplicated,
    element_kind,
    find_entry,
    in_order,
    partitioned,
)
from kubesched.apiserver.patch_error import (
    PatchError,
    bad_patch,
    failed_patch,
    unfit_patch,
)
from kubesched.apiserver.plain import Plain, deep_copy
from kubesched.apiserver.schema import (
    NO_MERGING,
    Field,
    ListType,
    Merging,
    ObjectType,
    ValueType,
    type_of_object,
)

__all__ = ["apply"]

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_LIST: Final = "$deleteFromPrimitiveList"
_SET_ORDER: Final = "$setElementOrder"
_JSON_WORDS: Final = {list: "array", str: "string", bool: "bool"}


def apply(kind: str, current: Plain, patch: Any) -> Plain:
    """Return what a patch makes of an object.

    Args:
        kind: The object's kind; its version stands in the object.
        current: The object.
        patch: The decoded patch.

    Raises:
        PatchError: It is no patch, or cannot be applied.
    """
    if not isinstance(patch, dict | None):
        word = _JSON_WORDS.get(type(patch), "number")
        raise bad_patch(
            f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
        )
    api_version = str(current.get("apiVersion", ""))
    object_type = type_of_object(api_version, kind)
    # The merge takes the patch apart; messages show what is left of it, as upstream.
    rest = deep_copy(patch or {})
    touched = tuple(rest)
    merged = _merge_map(_copy_for(rest, current), rest, _Target(object_type))
    changed = {name: merged[name] for name in touched if name in merged}
    if fault := first_fault(api_version, kind, changed):
        raise unfit_patch(go_text(rest), fault)
    return merged


def _copy_for(patch: Plain, current: Plain) -> Plain:
    """Copy what the patch speaks of; the rest is only handed on."""
    is_directed = any(name.startswith("$") for name in patch)
    return {
        name: deep_copy(value) if is_directed or name in patch else value
        for name, value in current.items()
    }


class _Target(msgspec.Struct, frozen=True):
    """What the object is that is merged into.

    Attributes:
        type: Its own; None where that is not known, as in maps.
    """

    type: ObjectType | None = None

    def field(self, name: str) -> Field | None:
        """Return what is known of a field, None if nothing.

        Raises:
            PatchError: The object has no such field.
        """
        if self.type is None:
            return None
        field = self.type.fields.get(name)
        if field is None:
            raise failed_patch(
                f"unable to find api field in struct {self.type.short_name} "
                f'for the json field "{name}"'
            )
        return field

    def below(self, field: Field | None) -> _Target:
        """Return what an object or an entry in a field is."""
        value_type: ValueType | None = field.type if field else None
        if isinstance(value_type, ListType):
            value_type = value_type.element
        return _Target(value_type if isinstance(value_type, ObjectType) else None)


def _merging(field: Field | None) -> Merging:
    return field.merging if field else NO_MERGING


def _merge_map(original: Plain, patch: Plain, target: _Target) -> Plain:
    """Merge a patch into an object; both are used up."""
    if _DIRECTIVE in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for name in [name for name in patch if name.startswith(_SET_ORDER)]:
        _merge_ordered(original, patch, name, target)
    for name, value in patch.items():
        if name.startswith(_DELETE_LIST):
            _delete_from_list(original, _list_name(name, _DELETE_LIST), value)
        else:
            _merge_field(original, name, value, target)
    return original


def _directed(patch: Plain) -> Plain:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        del patch[_DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Plain) -> PatchError:
    return failed_patch(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def _retain_keys(original: Plain, patch: Plain) -> None:
    """Leave only the fields in the object that the patch says to retain."""
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    unlisted = [
        name
        for name, value in patch.items()
        if value is not None and not name.startswith((_DELETE_LIST, _SET_ORDER))
    ]
    if not isinstance(retained, list) or any(name not in retained for name in unlisted):
        raise bad_patch("invalid patch format of retainKeys")
    for name in [name for name in original if name not in retained]:
        del original[name]


def _list_name(name: str, prefix: str) -> str:
    """Return the field that a directive's name speaks of."""
    before, slash, after = name.partition("/")
    if slash and before == prefix:
        return after
    kind = "primitive list" if prefix == _DELETE_LIST else "setElementOrder list"
    raise bad_patch(f"invalid patch format of {kind}")


def _delete_from_list(original: Plain, name: str, unwanted: Any) -> None:
    if unwanted is None:
        original.pop(name, None)
        return
    current = original.get(name)
    if not isinstance(current, list) or not isinstance(unwanted, list):
        return
    if (current or unwanted) and element_kind(current, unwanted) is not dict:
        original[name] = [value for value in current if value not in unwanted]


def _merge_field(original: Plain, name: str, value: Any, target: _Target) -> None:
    if value is None:
        original.pop(name, None)
        return
    current = original.get(name)
    if type(current) is not type(value) or not isinstance(value, dict | list):
        # Nulls in a value that is new, or of another type, say nothing.
        _put(original, name, _without_nulls(value))
        return
    field = target.field(name)
    merging, below = _merging(field), target.below(field)
    if isinstance(value, dict):
        is_replaced = merging.is_replaced
        original[name] = value if is_replaced else _merge_map(original[name], value, below)
    elif merging.is_merged:
        original[name] = _merge_list(original[name], value, below, merging.merge_key)
    else:
        original[name] = value


def _put(original: Plain, name: str, value: Any) -> None:
    kept, is_kept = _without_directives(value)
    if is_kept:
        original[name] = kept
    else:
        original.pop(name, None)


def _without_nulls(value: Any) -> Any:
    """Drop the null fields of all objects in a value, in place."""
    if isinstance(value, dict):
        for name in [name for name, child in value.items() if child is None]:
            del value[name]
        for child in value.values():
            _without_nulls(child)
    elif isinstance(value, list):
        for child in value:
            _without_nulls(child)
    return value


def _without_directives(value: Any) -> tuple[Any, bool]:
    """Return a value without objects that are directives, and whether it stays itself."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None, False
        for name, child in list(value.items()):
            _put(value, name, child)
    elif isinstance(value, list):
        cleaned = map(_without_directives, value)
        return [child for child, is_kept in cleaned if is_kept], True
    return value, True


def _merge_list(original: list[Any], patch: list[Any], below: _Target, key: str) -> list[Any]:
    if not original and not patch:
        return original
    if element_kind(original, patch) is not dict:
        merged = deduplicated([*original, *patch])
    else:
        if not key:
            kind = "struct" if below.type else "map"
            raise failed_patch(f"cannot merge lists without merge key for {kind}")
        original, patch = _apply_list_directives(original, patch, key)
        merged = _merge_entries(original, patch, below, key)
    wanted, others = partitioned(merged, patch, key)
    return in_order(wanted, others, patch, original, key)


def _apply_list_directives(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """Return both lists after the entries of the patch that are directives."""
    entries = [entry for entry in patch if _DIRECTIVE not in entry]
    is_replaced = False
    for entry in (entry for entry in patch if _DIRECTIVE in entry):
        match entry[_DIRECTIVE]:
            case "delete":
                if key not in entry:
                    raise _missing_key(entry, key)
                gone = entry[key]
                original = [one for one in original if key not in one or one[key] != gone]
            case "replace":
                is_replaced = True
            case "merge":
                raise failed_patch("merging lists cannot yet be specified in the patch")
            case unknown:
                raise _unknown_directive(unknown, entry)
    return (entries, []) if is_replaced else (original, entries)


def _missing_key(entry: Plain, key: str) -> PatchError:
    return failed_patch(f"map: {go_text(entry)} does not contain declared merge key: {key}")


def _merge_entries(original: list[Any], patch: list[Any], below: _Target, key: str) -> list[Any]:
    merged = list(original)
    for entry in patch:
        if key not in entry:
            raise _missing_key(entry, key)
        at = find_entry(merged, key, entry[key])
        if at is None:
            merged.append(entry)
        else:
            merged[at] = _merge_map(merged[at], entry, below)
    return merged


def _merge_ordered(original: Plain, patch: Plain, directive: str, target: _Target) -> None:
    """Merge a list for which the patch says the order, and take both out of the patch."""
    order = _list(patch.pop(directive))
    name = _list_name(directive, _SET_ORDER)
    current, wanted = _list(original.get(name, [])), _list(patch.get(name, []))
    field = target.field(name)
    merging = _merging(field)
    key = merging.merge_key
    _check_order(wanted, order, key)
    if name not in original and name not in patch:
        return
    merged = current
    if name not in original:
        merged, _ = _without_directives(wanted)
    elif name in patch:
        merged = (
            _merge_list(list(current), wanted, target.below(field), key)
            if merging.is_merged
            else wanted
        )
    listed, others = partitioned(merged, order, key)
    element_kind(current, wanted)
    original[name] = in_order(listed, others, order, current, key)
    patch.pop(name, None)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise failed_patch(f"expected a []interface {{}}, but received a {_go_type(value)}")
    return value


def _go_type(value: Any) -> str:
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, dict):
        return "map[string]interface {}"
    names = {bool: "bool", int: "int64", float: "float64"}
    return names.get(type(value), "string")


def _check_order(wanted: list[Any], order: list[Any], key: str) -> None:
    """See that the entries of a patch stand in the order that the patch itself sets."""
    if not wanted or not order:
        return
    entries = [one for one in wanted if not (key and _DIRECTIVE in _map_of(one))]
    at = 0
    for one in order:
        if at < len(entries) and _same_entry(entries[at], one, key):
            at += 1
    if at < len(entries):
        raise failed_patch(
            f"The order in patch list:\n{go_text(wanted)}\n doesn't match {_SET_ORDER} list:\n"
            f"{go_text(order)}\n"
        )


def _same_entry(one: Any, other: Any, key: str) -> bool:
    if not key:
        return bool(one == other)
    for entry in (one, other):
        if key not in _map_of(entry):
            raise _missing_key(entry, key)
    return bool(one[key] == other[key])


def _map_of(entry: Any) -> Plain:
    """Return an entry of a list of maps, if it is one."""
    if not isinstance(entry, dict):
        raise failed_patch(
            f"expected a map[string]interface {{}}, but received a {_go_type(entry)}"
        )
    return entry
