"""Strict decoding finds all field errors and still makes what it can of the rest."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.field_errors import FieldError
from kubesched.config.decoding import decode_struct
from kubesched.config.types import Configuration, ExtenderTLSConfig, PluginEntry, PluginSet


def test_nulls_in_lists_are_zero_values() -> None:
    """A null element of structs lacks its name; fields around it are read."""
    errors: list[FieldError] = []
    raw = {"enabled": [{"name": "A", "weight": 2}, None], "disabled": None}
    decoded = decode_struct(PluginSet, raw, "score", errors)
    assert decoded == PluginSet(enabled=(PluginEntry("A", 2), PluginEntry("")))
    assert [str(field_error) for field_error in errors] == ["score.enabled[1].name: Required value"]


def test_bytes_are_base64() -> None:
    """PEM data comes as base64; other text is a field error."""
    errors: list[FieldError] = []
    raw = {"certData": "aGk=", "keyData": "%"}
    assert decode_struct(ExtenderTLSConfig, raw, "tls", errors).cert_data == b"hi"
    assert [field_error.path for field_error in errors] == ["tls.keyData"]


@pytest.mark.parametrize("raw", [None, 3, "x", [], [{}], True])
def test_not_a_mapping(raw: object) -> None:
    """Anything but a mapping is one field error, and the result is the default."""
    errors: list[FieldError] = []
    assert Configuration() == decode_struct(Configuration, raw, "", errors)
    assert len(errors) == 1


_NAMES = [field.encode_name for field in msgspec.structs.fields(Configuration)]
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "a", "1s", "*"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "enabled", "plugins", "args", "score", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*_NAMES, "other"]), _VALUES, max_size=6))
def test_never_raises(raw: dict[str, Any]) -> None:
    """Decoding never raises; field errors have paths below known fields."""
    errors: list[FieldError] = []
    decoded = decode_struct(Configuration, raw, "", errors)
    assert isinstance(decoded, Configuration)
    assert {
        field_error.path.partition(".")[0].partition("[")[0] for field_error in errors
    } <= raw.keys()
