"""Applies strategic merge patches: lists merge by key, and directives delete, replace and order.

    $patch: replace, delete, merge      what happens to an object, or to an entry of a list
    $retainKeys                         the fields that stay
    $deleteFromPrimitiveList/name       values that go
    $setElementOrder/name               the order of a list

Upstream: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go (v1.36)
Rejects:  400 for directives of the wrong form; 500 for a missing merge key, an unknown directive,
          or lists that cannot be merged.
Invariants: the given object and patch are not changed.
Differs:  fields are merged in the order of the patch, not in random order; messages do not show the
          patch as Go prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from kubesched.api.codec import without_nulls
from kubesched.apiserver.plain import Plain, deep_copy, json_word
from kubesched.apiserver.schema import ObjectType
from kubesched.apiserver.status import bad_request, internal, rejected_patch
from kubesched.apiserver.values import Field

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_LIST: Final = "$deleteFromPrimitiveList"
_SET_ORDER: Final = "$setElementOrder"
_Fields: TypeAlias = Mapping[str, Field]


def apply(object_type: ObjectType, current: Plain, patch: Any) -> Plain:
    """Return an object with a decoded patch applied; raises StatusError if it does not apply."""
    if not isinstance(patch, dict | None):
        raise bad_request(
            f"json: cannot unmarshal {json_word(patch)} into Go value of type "
            "map[string]interface {}"
        )
    # `_merge_map` changes both its arguments.
    rest = deep_copy(patch or {})
    is_directed = any(name.startswith("$") for name in rest)
    copied = {
        name: deep_copy(value) if is_directed or name in rest else value
        for name, value in current.items()
    }
    return _merge_map(copied, rest, object_type.fields)


def _fields_below(field: Field | None) -> _Fields:
    """Return the fields of an object in a field; none are known of the values of maps."""
    return {} if field is None or field.inner is None else field.inner.fields


# Objects.


def _merge_map(original: Plain, patch: Plain, fields: _Fields) -> Plain:
    """Merge a patch into an object; both are changed."""
    if _DIRECTIVE in patch:
        directive = patch.pop(_DIRECTIVE)
        if directive not in ("delete", "replace"):
            raise internal(f"unknown patch type: {directive}")
        return patch if directive == "replace" else {}
    _retain_keys(original, patch)
    for name in [name for name in patch if name.startswith(_SET_ORDER)]:
        _merge_ordered(original, patch, name, fields)
    for name, value in patch.items():
        if name.startswith(_DELETE_LIST):
            shortened, gone = _list_name(name, _DELETE_LIST), _list(value)
            current = _list(original.get(shortened, []))
            original[shortened] = [one for one in current if one not in gone]
        else:
            _merge_field(original, name, value, fields)
    return original


def _retain_keys(original: Plain, patch: Plain) -> None:
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    unlisted = [
        name
        for name, value in patch.items()
        if value is not None and not name.startswith((_DELETE_LIST, _SET_ORDER))
    ]
    if not isinstance(retained, list) or any(name not in retained for name in unlisted):
        raise bad_request("invalid patch format of retainKeys")
    for name in [name for name in original if name not in retained]:
        del original[name]


def _list_name(name: str, prefix: str) -> str:
    before, slash, after = name.partition("/")
    if slash and before == prefix:
        return after
    kind = "primitive list" if prefix == _DELETE_LIST else "setElementOrder list"
    raise bad_request(f"invalid patch format of {kind}")


def _merge_field(original: Plain, name: str, value: Any, fields: _Fields) -> None:
    if value is None:
        original.pop(name, None)
        return
    current: Any = original.get(name)
    if type(current) is not type(value) or not isinstance(value, dict | list):
        # The value is new or changes its type: nulls in it have nothing to delete.
        _put(original, name, without_nulls(value))
        return
    field = fields.get(name)
    key = field.merge_key if field else None
    if isinstance(value, dict):
        is_replaced = field is not None and field.is_replaced
        original[name] = value if is_replaced else _merge_map(current, value, _fields_below(field))
    elif key is not None:
        original[name] = _merge_list(current, value, _fields_below(field), key)
    else:
        original[name] = value


def _put(original: Plain, name: str, value: Any) -> None:
    kept, is_kept = _without_directives(value)
    if is_kept:
        original[name] = kept
    else:
        original.pop(name, None)


def _without_directives(value: Any) -> tuple[Any, bool]:
    """Return a value without directives, and whether it is kept."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return None, False
        for name, child in list(value.items()):
            _put(value, name, child)
    elif isinstance(value, list):
        cleaned = map(_without_directives, value)
        return [child for child, is_kept in cleaned if is_kept], True
    return value, True


# Lists. Entries are objects with a merge key, or scalars, for which the key is "".


def _merge_list(original: list[Any], patch: list[Any], fields: _Fields, key: str) -> list[Any]:
    if not original and not patch:
        return original
    if _element_kind(original, patch) is not dict:
        merged = list(dict.fromkeys([*original, *patch]))
    else:
        original, patch = _apply_list_directives(original, patch, key)
        merged = _merge_entries(original, patch, fields, key)
    return _in_order(merged, patch, original, key)


def _element_kind(*lists: list[Any]) -> type:
    kinds = {type(entry) for entries in lists for entry in entries}
    if list in kinds:
        raise rejected_patch()
    if len(kinds) > 1:
        raise internal("list element types are not identical")
    return kinds.pop()


def _key_of(entry: Any, key: str) -> Any:
    if not key:
        return entry
    if not isinstance(entry, dict) or key not in entry:
        raise internal(f"map does not contain declared merge key: {key}")
    return entry[key]


def _apply_list_directives(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """Apply the entries of the patch that are directives; return the two lists left to merge."""
    entries = [entry for entry in patch if _DIRECTIVE not in entry]
    is_replaced = False
    for entry in (entry for entry in patch if _DIRECTIVE in entry):
        match entry[_DIRECTIVE]:
            case "delete":
                gone = _key_of(entry, key)
                original = [one for one in original if key not in one or one[key] != gone]
            case "replace":
                is_replaced = True
            case "merge":
                raise internal("merging lists cannot yet be specified in the patch")
            case unknown:
                raise internal(f"unknown patch type: {unknown}")
    return (entries, []) if is_replaced else (original, entries)


def _merge_entries(original: list[Any], patch: list[Any], fields: _Fields, key: str) -> list[Any]:
    merged = list(original)
    for entry in patch:
        own = _key_of(entry, key)
        at = next((at for at, one in enumerate(merged) if one.get(key) == own), None)
        if at is None:
            merged.append(entry)
        else:
            merged[at] = _merge_map(merged[at], entry, fields)
    return merged


def _merge_ordered(original: Plain, patch: Plain, directive: str, fields: _Fields) -> None:
    """Merge a list in the order that a directive sets; remove list and directive from the patch."""
    order, name = _list(patch.pop(directive)), _list_name(directive, _SET_ORDER)
    current, field = [*_list(original.get(name, []))], fields.get(name)
    key = (field.merge_key or "") if field else ""
    if name in patch:
        _check_order(_list(patch[name]), order, key)
        _merge_field(original, name, patch.pop(name), fields)
    original[name] = _in_order(original.get(name, []), order, current, key)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise internal("expected a []interface {}")
    return value


def _check_order(wanted: list[Any], order: list[Any], key: str) -> None:
    """Check that the entries of a patch are in the order of its own $setElementOrder."""
    if key and not all(isinstance(one, dict) for one in wanted):
        raise internal("expected a map[string]interface {}")
    entries = [one for one in wanted if not (key and _DIRECTIVE in one)]
    for one in order:
        if entries and _key_of(entries[0], key) == _key_of(one, key):
            del entries[0]
    if entries:
        raise internal(f"The order in patch list doesn't match {_SET_ORDER} list")


def _in_order(entries: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Return entries in the order that a patch sets.

    Entries that the patch does not name keep the order of the live list; each is put before the
    first named entry that it precedes there.
    """
    named, known = ([_key_of(one, key) for one in ones] for ones in (order, live))

    def position(entry: Any, among: list[Any]) -> int:
        own = _key_of(entry, key)
        return among.index(own) if own in among else -1

    wanted = [one for one in entries if position(one, named) >= 0]
    others = [one for one in entries if position(one, named) < 0]
    wanted.sort(key=lambda one: position(one, named))
    merged: list[Any] = []
    while wanted and others:
        is_before = 0 <= position(others[0], known) < position(wanted[0], known)
        merged.append((others if is_before else wanted).pop(0))
    return [*merged, *wanted, *others]
