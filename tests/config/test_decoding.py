"""Strict decoding finds all faults and still makes what it can of the rest."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.decoding import decode_struct
from kubesched.config.faults import Fault
from kubesched.config.types import Configuration, ExtenderTLSConfig, Plugin, PluginSet


def test_nulls_in_lists_are_zero_values() -> None:
    """A null element of structs lacks its name; fields around it are read."""
    faults: list[Fault] = []
    raw = {"enabled": [{"name": "A", "weight": 2}, None], "disabled": None}
    decoded = decode_struct(PluginSet, raw, "score", faults)
    assert decoded == PluginSet(enabled=(Plugin("A", 2), Plugin("")))
    assert [str(fault) for fault in faults] == ["score.enabled[1].name: Required value"]


def test_bytes_are_base64() -> None:
    """PEM data comes as base64; other text is a fault."""
    faults: list[Fault] = []
    raw = {"certData": "aGk=", "keyData": "%"}
    assert decode_struct(ExtenderTLSConfig, raw, "tls", faults).cert_data == b"hi"
    assert [fault.path for fault in faults] == ["tls.keyData"]


@pytest.mark.parametrize("raw", [None, 3, "x", [], [{}], True])
def test_not_a_mapping(raw: object) -> None:
    """Anything but a mapping is one fault, and the result is the default."""
    faults: list[Fault] = []
    assert Configuration() == decode_struct(Configuration, raw, "", faults)
    assert len(faults) == 1


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
    """Whatever the values, decoding ends in a value and faults with paths below known fields."""
    faults: list[Fault] = []
    decoded = decode_struct(Configuration, raw, "", faults)
    assert isinstance(decoded, Configuration)
    assert {fault.path.partition(".")[0].partition("[")[0] for fault in faults} <= raw.keys()
