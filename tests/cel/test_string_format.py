"""`string.format`: facts about version 2 of the library."""

import pytest

from kubesched.cel.values import CelError
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('"%s is %d".format(["a", 3]) == "a is 3"', True),
        ('"%.2f".format([1.555]) == "1.56"', False),
        ('"%x %X %o %b".format([255, 255, 8, 5]) == "ff FF 10 101"', True),
        ('"%e".format([1234.5]) == "1.234500e+03"', False),
        ('"%s".format([[1, "a", true, null]]) == "[1, a, true, null]"', False),
        ('"%s".format([{"a": 1}]) == "{a: 1}"', False),
        ('"%%".format([]) == "%"', True),
        ('"%x".format(["hello"]) == "68656c6c6f"', True),
        ('"%s".format([1.0]) == "1"', True),
        ('"%s".format([1])', "1"),
        ('"%s".format([true])', "true"),
        ('"%s".format([null])', "null"),
        ('"%s".format([int])', "int"),
        ('"%s".format([type(1)])', "int"),
        ('"%s".format([[type(1)]])', "[int]"),
        (
            (
                '"%s".format([[1, 2u, 3.0, "a\\"\\u00e9\\u0001\\u200b\U0001f600", '
                'b"a\\"", true, null, {"b": 1, "a": [2]}]])'
            ),
            (
                '[1, 2, 3.000000, "a\\"\xe9\\x01\\u200b\U0001f600", b"a\\"", true, '
                'null, {"a":[2], "b":1}]'
            ),
        ),
        (
            '"%s".format([dyn([1, 2u, 3.0, "a", b"ab", true, null])])',
            '[1, 2, 3.000000, "a", b"ab", true, null]',
        ),
        ('"%s".format([dyn({1: 2, 2u: 3, "a": 4, true: 5})])', '{"a":4, 1:2, 2:3, true:5}'),
        (
            '"%s".format([[[1.0/0.0, double("NaN"), 1e30, 1e-9]]])',
            '[["+Inf", "NaN", 1000000000000000019884624838656.000000, 0.000000]]',
        ),
        ('"%s".format([1e30])', "1e+30"),
        ('"%s".format([{"k": {"z": 1, "b": 2}}])', '{"k":{"b":2, "z":1}}'),
        ('"%d".format([1u])', "1"),
        ('"%.3d".format([1])', "1"),
        ('"%.3s".format([1])', "1"),
        ('"%f".format([1.5])', "1.500000"),
        ('"%f".format([12345678.5])', "12,345,678.500000"),
        ('"%f".format([-12345678.5])', "-12,345,678.500000"),
        ('"%.0f".format([2.5])', "2"),
        ('"%.0f".format([1234567.0])', "1,234,567"),
        ('"%.20f".format([0.1])', "0.10000000000000000555"),
        ('"%f".format([1e30])', "1,000,000,000,000,000,019,884,624,838,656.000000"),
        ('"%f".format([1.0/0.0])', "\u221e"),
        ('"%f".format([-1.0/0.0])', "-\u221e"),
        ('"%f".format([double("NaN")])', "NaN"),
        ('"%f".format(["NaN"])', "NaN"),
        ('"%f".format(["Infinity"])', "\u221e"),
        ('"%f".format(["-Infinity"])', "-\u221e"),
        ('"%f".format([-0.0])', "0.000000"),
        ('"%f".format([0.0])', "0.000000"),
        ('"%.2f".format([999999.999])', "1,000,000.00"),
        ('"%.2f".format([1234.0])', "1,234.00"),
        ('"%e".format([1234.5])', "1.234500\xd710\u2070\xb3"),
        ('"%.2e".format([1234.5])', "1.234500\xd710\u2070\xb3"),
        ('"%.0e".format([1234.5])', "1.234500\xd710\u2070\xb3"),
        ('"%e".format([0.0])', "0.000000\xd710\u2070\u2070"),
        ('"%e".format([-0.0])', "0.000000\xd710\u2070\u2070"),
        ('"%e".format([1e100])', "1.000000\xd710\xb9\u2070\u2070"),
        ('"%e".format([1e-100])', "1.000000\xd710\u207b\xb9\u2070\u2070"),
        ('"%e".format([-1.5e-9])', "-1.500000\xd710\u207b\u2070\u2079"),
        ('"%e".format([1.0])', "1.000000\xd710\u2070\u2070"),
        ('"%e".format([12345678901234567890.0])', "1.234568\xd710\xb9\u2079"),
        (
            '"%.99f".format([1.0])',
            (
                "1.00000000000000000000000000000000000000000000000000000000000000000000"
                "0000000000000000000000000000000"
            ),
        ),
        ('"%b".format([5])', "101"),
        ('"%b".format([-5])', "-101"),
        ('"%b".format([true])', "1"),
        ('"%o".format([-9])', "-11"),
        ('"%x".format([-255])', "-ff"),
        ('"%X".format(["\xffhelloK"])', "C3BF68656C6C6F4B"),
        (r'"%x".format([b"\xff\x00"])', "ff00"),
        ('"%x".format([2u])', "2"),
        ('"%x".format([""])', ""),
        ('dyn("%s").format([1, 2])', "1"),
        ('dyn("%%%s%%").format([1])', "%1%"),
        ('dyn("\xe9%s\xe9").format(["\xfc"])', "\xe9\xfc\xe9"),
        ('dyn("").format([])', ""),
        ('"%f".format([-1e-9])', "-0.000000"),
        ('"%e".format([-1e-320])', "-9.999889\xd710\u207b\xb3\xb2\xb9"),
        ('"%.0f".format([0.5])', "0"),
        ('"%.0f".format([1.5])', "2"),
        ('"%.1f".format([0.25])', "0.2"),
        ('"%.1f".format([1e-5])', "0.0"),
        ('"%.2f".format([-0.001])', "-0.00"),
        ('"%e".format([1e-5])', "1.000000\xd710\u207b\u2070\u2075"),
        ('"%e".format([9.9999999])', "1.000000\xd710\u2070\xb9"),
        ('"%e".format([5e-324])', "4.940656\xd710\u207b\xb3\xb2\u2074"),
        ('"%f".format([1.7976931348623157e308]).size()', 418),
        ('"%f".format([1e15])', "1,000,000,000,000,000.000000"),
        ('"%f".format([123456789012345680.0])', "123,456,789,012,345,680.000000"),
        ('"%f".format([0.1])', "0.100000"),
        ('"%.3f".format([1000.0])', "1,000.000"),
        ('"%.30f".format([1.1])', "1.100000000000000088817841970013"),
        (
            '"%.70f".format([1e-70])',
            "0.0000000000000000000000000000000000000000000000000000000000000000000001",
        ),
        (
            '"%.100f".format([1.1])',
            (
                "1.10000000000000008881784197001252323389053344726562500000000000000000"
                "00000000000000000000000000000000"
            ),
        ),
        ('"%.2f".format([2.675])', "2.67"),
        ('"%.3f".format([2.0005])', "2.001"),
        ('"%.1f".format([0.45])', "0.5"),
        ('"%e".format([1234567.5])', "1.234568\xd710\u2070\u2076"),
        ('"%e".format([1.0000005])', "1.000001\xd710\u2070\u2070"),
        ('"%e".format([1.00000050000000001])', "1.000001\xd710\u2070\u2070"),
        ('"%e".format([2.5e-7])', "2.500000\xd710\u207b\u2070\u2077"),
        ('"%.2f".format([0.125])', "0.12"),
        ('"%.2f".format([0.375])', "0.38"),
        ('"%.1f".format([0.05])', "0.1"),
        ('"%.1f".format([0.15])', "0.1"),
        ('"%e".format([1.0000015])', "1.000001\xd710\u2070\u2070"),
        ('"%e".format([1.0000025])', "1.000002\xd710\u2070\u2070"),
        ('"%e".format([1.0000045])', "1.000004\xd710\u2070\u2070"),
        ('"%e".format([1.2345665])', "1.234566\xd710\u2070\u2070"),
        ('"%e".format([1.2345675])', "1.234568\xd710\u2070\u2070"),
        ('"%e".format([1.00000050])', "1.000001\xd710\u2070\u2070"),
        ('"%e".format([0.10000005])', "1.000000\xd710\u207b\u2070\xb9"),
        ('"%e".format([10000.005])', "1.000000\xd710\u2070\u2074"),
        ('"%e".format([10000.0049999])', "1.000000\xd710\u2070\u2074"),
        ('"%e".format([1000000.5])', "1.000000\xd710\u2070\u2076"),
        ('"%e".format([3.0000005])', "3.000001\xd710\u2070\u2070"),
        ('"%e".format([1.0000005000000001])', "1.000001\xd710\u2070\u2070"),
        ('"%e".format([1.00000049999999])', "1.000000\xd710\u2070\u2070"),
        ('"%e".format([1.0000004999999999])', "1.000000\xd710\u2070\u2070"),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """A clause is filled in as upstream does it."""
    assert expected == evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('"%s".format([dyn(ip("1.1.1.1"))])', "%s does not accept net.IP"),
        ('"%s".format([[quantity("1")]])', "%s does not accept kubernetes.Quantity"),
        ('"%d".format([dyn(1.0)])', "%d does not accept double"),
        ('"%d".format([true])', "%d does not accept bool"),
        ('"%f".format([dyn(1)])', "%f does not accept int"),
        ('"%x".format([dyn(1.0)])', "%x does not accept double"),
        ('dyn("%q").format([1])', "could not parse formatting clause: '%q' is none"),
        ('dyn("%").format([1])', "could not parse formatting clause: '%' is none"),
        ('dyn("%s %s").format([1])', "index 1 out of range"),
        ('dyn("x").format(dyn(1))', "no such overload: format(string, int)"),
    ],
)
def test_errors(expression: str, message: str) -> None:
    """A clause that does not fit its value is refused."""
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert message == str(raised.value).removeprefix("error during formatting: ")
