"""Device selectors: facts about kube-scheduler's, and hostile expressions."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubesched.api.resource import Device, DeviceAttribute, DeviceCapacity
from kubesched.cel.device_selectors import DeviceSelectorError, compile_selector, device_variables
from kubesched.cel.values import CelError

DRIVER = "dra.example.com"
_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"
DEVICE = Device(
    name="d0",
    attributes={
        "bool": DeviceAttribute(bool_value=True),
        "int": DeviceAttribute(int_value=1),
        "string": DeviceAttribute(string_value="fish"),
        "version": DeviceAttribute(version_value="1.0.0"),
        "other.com/services": DeviceAttribute(string_value="some_example_value"),
    },
    capacity={"quantity": DeviceCapacity(value="1Mi")},
)


def matches(expression: str, device: Device = DEVICE, driver: str = DRIVER) -> bool:
    """Whether the expression is true of the device."""
    return compile_selector(expression)(device_variables(driver, device))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", True),
        ("false", False),
        ('device.driver == "dra.example.com"', True),
        ('"no-such-domain" in device.attributes', False),
        ('"other.com" in device.attributes', True),
        ('device.attributes["dra.example.com"].bool', True),
        ('device.attributes["dra.example.com"]["bool"]', True),
        ('device.attributes["dra.example.com"].int > 0', True),
        ('device.attributes["dra.example.com"].string == "fish"', True),
        ('device.attributes["dra.example.com"].string in ["bird", "fish"]', True),
        ('device.attributes["dra.example.com"].version.isGreaterThan(semver("0.0.1"))', True),
        ('cel.bind(dra, device.attributes["dra.example.com"], dra.bool && dra.int == 1)', True),
        ('device.attributes["other.com"].services.split("example").size() >= 2', True),
        ('device.attributes["other.com"].services.matches("[^a]?some")', True),
        ('device.attributes.exists_one(x, x == "other.com")', True),
        ('device.attributes["dra.example.com"].exists_one(x, x == "int")', True),
        ('device.capacity["dra.example.com"].quantity.isGreaterThan(quantity("1Ki"))', True),
        ('device.capacity["dra.example.com"].quantity.compareTo(quantity("1Mi")) == 0', True),
        ('has(device.attributes["dra.example.com"].nope)', False),
        ('has(device.attributes["nope.com"].nope)', False),
        ('device.attributes["dra.example.com"].?nope.orValue(true)', True),
        ('device.attributes[?"nope.com"].hasValue()', True),
        ('!("a" in device.capacity["x.com"]) || device.capacity["x.com"].a.isInteger()', True),
        ("device.allowMultipleAllocations == false", True),
        ('device.attributes["dra.example.com"].string.includes("fish")', True),
    ],
)  # fmt: skip
def test_matches(expression: str, expected: bool) -> None:
    """The variable `device` is as kube-scheduler has it."""
    assert expected == matches(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('device.attributes["nope"].nope.isGreaterThan(quantity("0"))', "no such key: nope"),
        ('device.attributes["dra.example.com"].string',
         ("CEL result of type string could not be converted to bool:"
         " unsupported native conversion from string to 'bool'")),
        ('device.attributes["dra.example.com"].int',
         ("CEL result of type int could not be converted to bool:"
         " unsupported type conversion from 'int' to bool")),
        ("lists.range(2000).all(x, lists.range(2000).all(y, true))", _TOO_COSTLY),
        ("lists.range(1000001).size() > 0 || true", _TOO_COSTLY),
        ("lists.range(5000).distinct().size() == 0", _TOO_COSTLY),
        ("lists.range(5000).sort().size() == 0", _TOO_COSTLY),
        ("sets.contains(lists.range(5000), lists.range(5000))", _TOO_COSTLY),
        ("sets.intersects(lists.range(5000), lists.range(5000))", _TOO_COSTLY),
        ("cel.bind(l, lists.range(900000), [l, l]).flatten().size() == 0", _TOO_COSTLY),
        ("cel.bind(l, lists.range(200000).map(x, '1'), [l, l, l, l, l]).flatten().join(',') == ''",
         _TOO_COSTLY),
        ("lists.range(5000).map(x, lists.range(5000)).size() == 0", _TOO_COSTLY),
    ],
)  # fmt: skip
def test_runtime_errors(expression: str, message: str) -> None:
    """The message has the reason."""
    with pytest.raises(CelError) as raised:
        matches(expression)
    assert message == str(raised.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
        ("device.no",
         "compilation failed: ERROR: <input>:1:7: undefined field 'no'\n | device.no\n | ......^"),
        ("device.driver == 5",
         ("compilation failed: ERROR: <input>:1:15: found no matching overload for '_==_' applied"
         " to '(string, int)'\n | device.driver == 5\n | ..............^")),
        ('device.attributes["a"].x.exists(y, y)',
         ("compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a"
         " comprehension (must be list, map, or dynamic)\n"
         ' | device.attributes["a"].x.exists(y, y)\n | ......................^')),
    ],
)  # fmt: skip
def test_compile_errors(expression: str, message: str) -> None:
    """The messages are upstream's."""
    with pytest.raises(DeviceSelectorError) as raised:
        compile_selector(expression)
    assert message == str(raised.value)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        pytest.param(
            DeviceAttribute(string_values=("a",)),
            "attribute x: unsupported attribute value",
            id="list",
        ),
        pytest.param(
            DeviceAttribute(version_value="1.2"),
            "attribute x: parse semantic version: No Major.Minor.Patch elements found",
            id="version",
        ),
    ],
)
def test_invalid_attributes(attribute: DeviceAttribute, message: str) -> None:
    """A malformed attribute is an error in every expression."""
    with pytest.raises(CelError) as raised:
        matches("true", Device(attributes={"x": attribute}))
    assert message == str(raised.value)


def test_a_long_chain_is_not_a_deep_one() -> None:
    """Hundreds of alternatives are no problem."""
    chain = " || ".join(f'device.driver == "driver-{at}"' for at in range(300))
    assert not matches(chain)


pieces = st.sampled_from(
    [
        *("device", ".attributes", '["dra.example.com"]', ".int", "(", ")", "[", "]", "{", "}"),
        *(" + ", " && ", " || ", " == ", " < ", " in ", "!", "-", "?", ":", ".", ",", "'", '"'),
        *("1", "1.5", "2u", "true", "null", "'a'", "x", ".exists(x, x)", ".map(x, x)"),
        *(".size()", "has(", "cel.bind(x, ", "quantity('1')", "semver('1.2.3')", ".?int", "[?1]"),
        *(".matches('(')", ".orValue(1)", "\\", "`a`", "\n"),
    ]
)


@given(st.one_of(st.lists(pieces, max_size=8).map("".join), st.text(max_size=20)))
@example("1+" * 3000 + "1")
@example("[" * 3000)
@example("!" * 5000 + "true")
@example("-" * 4000 + "1 == 1")
@example("device" + ".a" * 3000)
@example("9" * 5000)
@example("int('" + "9" * 5000 + "') == 1")
@example("semver('" + "9" * 5000 + ".1.1').major() == 1")
@example("quantity('" + "9" * 5000 + "').isInteger()")
@example("lists.range(9223372036854775807).size() == 1")
@example("cel.bind(a, 'aaaaaaaaaa'," * 40 + "a + a" + ")" * 40 + " == ''")
@example("'a'.matches('(a*)*b')")
@example("!-device")
@example("{{}: 1}.size() == 1")
def test_any_expression(expression: str) -> None:
    """The result is a bool or one of the two errors."""
    with suppress(DeviceSelectorError, CelError):
        assert matches(expression) in {True, False}
