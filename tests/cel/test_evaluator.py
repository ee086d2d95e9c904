"""Values of expressions: tables for CEL and Kubernetes' functions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.checker import TypeCheckError, check
from kubesched.cel.evaluator import BUDGET, Budget, plan
from kubesched.cel.parser import parse
from kubesched.cel.syntax import CelCompileError
from kubesched.cel.values import NONE, CelError, CostLimitExceededError, Optional, UInt, type_name
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7.0 / 2.0", 3.5),
        ("1.0 / 0.0", math.inf),
        ("-9223372036854775808", -(2**63)),
        ("--5", 5),
        ("!!true", True),
        ("0x1f", 31),
        ("5u + 6u", UInt(11)),
        ("1e3", 1000.0),
        (".5 == 0.5", True),
        ("'a' + \"b\"", "ab"),
        ("[1] + [2]", (1, 2)),
        (r"'\x41\u00e9\n\101'", "A\u00e9\nA"),
        (r"r'\n'", "\\n"),
        ("'''a\n'b'''", "a\n'b"),
        ("dyn(1) == 1.0 && dyn(1u) == 1.0", True),
        ("dyn(1) == dyn('1')", False),
        ("dyn(true) == dyn(1)", False),
        ("null == null", True),
        ("[1, 2] == [1, 2]", True),
        ("{'a': 1} == {'a': 1}", True),
        ("{true: 1, false: 2}[true]", 1),
        ("{[1]: 1} == {[1]: 1}", False),
        ("{dyn({}): 1, dyn(optional.of({})): 2, dyn([{}]): 3}.size()", 3),
        ("{1: 'a'}[dyn(1u)] + {1: 'b'}[dyn(1.0)]", "ab"),
        ("dyn(1) < dyn(1.5)", True),
        ("'a' < 'b' && false < true", True),
        ("2 in [1, 2]", True),
        ("'a' in {'a': 1}", True),
        ("true ? 1 : 2", 1),
        ("false || 1 / 0 == 1 || true", True),
        ("1 / 0 == 1 && false", False),
        ("[1, 2, 3].all(x, x > 0)", True),
        ("[1, 2, 3].exists(x, 10 / (x - 1) > 100 || x == 3)", True),
        ("[1, 2, 2].exists_one(x, x == 1)", True),
        ("[1, 2, 2].existsOne(x, x == 2)", False),
        ("[1, 2, 3].filter(x, x != 2)", (1, 3)),
        ("[1, 2, 3].map(x, x * x)", (1, 4, 9)),
        ("[1, 2, 3].map(x, x > 1, x * x)", (4, 9)),
        ("{'a': 1, 'b': 2}.map(k, k)", ("a", "b")),
        ("[5, 6].all(i, v, v == i + 5)", True),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("[3, 4].transformList(i, v, i * v)", (0, 4)),
        ("{'a': 'b'}.transformMapEntry(k, v, {v: k})", {"b": "a"}),
        ("['b', 'a'].sortBy(x, x)", ("a", "b")),
        ("cel.bind(x, 5, x + x)", 10),
        ("has({'a': 1}.a) && !has({'a': 1}.b)", True),
        ("{'a': 1}.?a", Optional(1, True)),
        ("{'a': 1}.?b", NONE),
        ("{'a': {'b': 1}}.?a.?b.orValue(2)", 1),
        ("{'a': 1}[?'b'].orValue(2)", 2),
        ("optional.none().or(optional.of(1)).value()", 1),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("optional.of(2).optMap(x, x * 3).value()", 6),
        ("optional.of(2).optFlatMap(x, optional.of(x)).value()", 2),
        ("[?optional.of(1), ?optional.none()]", (1,)),
        ("{?'a': optional.none()}", {}),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("type(1) == int && type('') == string && type(type) == type(int)", True),
        ("int('42') + int(4.9) + int(2u)", 48),
        ("string(1) + string(true) + string(1.5) + string(2.0)", "1true1.52"),
        ("double('1.5') + double(1)", 2.5),
        ("bool('true')", True),
        ("uint('3')", UInt(3)),
        ("size('h\u00e9') + size([1]) + size({}) + 'abc'.size()", 6),
        ("'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')", True),
        ("'abc'.matches('^a.c$') && matches('abc', 'b')", True),
        ("'abc\\n'.matches('c$')", False),
        ("'A1'.matches('^[[:alpha:]][[:digit:]]$')", True),
        ("'tacocat'.indexOf('a', 2) + 'tacocat'.lastIndexOf('a')", 10),
        ("'tacocat'.charAt(3) + 'x'.charAt(1)", "o"),
        ("'HeLLo\u00c4'.lowerAscii() + 'ab'.upperAscii()", "hello\u00c4AB"),
        ("'hello hello'.replace('he', 'we', 1)", "wello hello"),
        ("'a,b,c'.split(',')", ("a", "b", "c")),
        ("'a,b,c'.split(',', 2)", ("a", "b,c")),
        ("'abc'.split('')", ("a", "b", "c")),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", "cattaco"),
        ("'  x '.trim()", "x"),
        ("['a', 'b'].join('-') + ['a', 'b'].join()", "a-bab"),
        ("strings.quote('a\\n')", '"a\\n"'),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'1 2 3'.findAll('[0-9]', 2)", ("1", "2")),
        ("[1, 2].sum() + [3, 1].max() + [3, 1].min()", 7),
        ("[1, 2, 2].isSorted() && ![2, 1].isSorted()", True),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)", 2),
        ("[1, 2, 3].slice(1, 3)", (2, 3)),
        ("[[1], [2]].flatten()", (1, 2)),
        ("[3, 1, 2].sort()", (1, 2, 3)),
        ("[1, 2].reverse() + [1, 1].distinct() + lists.range(2)", (2, 1, 1, 0, 1)),
        ("sets.contains([1, 2], [1]) && !sets.intersects([1], [2])", True),
        ("sets.equivalent([1, 1], [1])", True),
        ("quantity('200M') == quantity('0.2G') && isQuantity('20Mi') && !isQuantity('20Mo')", True),
        ("quantity('50M').isLessThan(quantity('50Mi'))", True),
        ("quantity('50k').add(20).sub(quantity('100k')).asInteger()", -49980),
        ("quantity('50.703k').asApproximateFloat()", 50703.0),
        ("quantity('50.5').isInteger()", False),
        ("sign(quantity('-1'))", -1),
        ("semver('1.2.3').compareTo(semver('1.2.3-rc.1'))", 1),
        ("semver('1.2.3+a') == semver('1.2.3+b')", True),
        ("semver('v1.02', true).minor()", 2),
        ("isSemver('1.2') || isSemver('01.2.3') || !isSemver('1.2', true)", False),
        ("dyn('a').includes('a') && ['a', 'b'].includes('b')", True),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """An expression has the value that cel-go gives it, type included."""
    found = evaluate(expression)
    assert (type_name(expected), expected) == (type_name(found), found)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("{'a': 1}.b", "no such key: b"),
        ("{'a': 1}['b']", "no such key: b"),
        ("[1][5]", "index out of bounds: 5"),
        ("dyn(1) + dyn('a')", "no such overload"),
        ("dyn(true) + dyn(true)", "no such overload: _+_"),
        ("dyn('a') < dyn(1)", "no such overload"),
        ("dyn(quantity('1')) < dyn(1)", "no such overload: _<_"),
        ("dyn('a').isGreaterThan(quantity('1'))",
         "no such overload: isGreaterThan(string, kubernetes.Quantity)"),
        ("dyn(semver('1.2.3')) == dyn('1.2.3')", "no such overload"),
        ("dyn(1) && true", "no such overload"),
        ("dyn(1) ? 1 : 2", "no such overload"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("optional.none().value()", "optional.none() dereference"),
        ("quantity('10Mm')", "unable to parse quantity's suffix"),
        ("quantity('9999999999999999999999999999999999999G').asInteger()",
         "cannot convert value to integer"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("'abc'.substring(5)", "index out of range: 5"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("[].max()", "max called on empty list"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
    ],
)  # fmt: skip
def test_errors(expression: str, message: str) -> None:
    """The messages are upstream's."""
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert message == str(raised.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x + 1", "1:1: undeclared reference to 'x' (in container '')"),
        ("nope(1)", "1:5: undeclared reference to 'nope' (in container '')"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.startsWith(1)",
         "1:15: found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("isQuantity([1, 2])",
         "1:11: found no matching overload for 'isQuantity' applied to '(list(int))'"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("1 && true", "1:1: expected type 'bool' but found 'int'"),
        ("1.exists(x, x)",
         ("1:1: expression of type 'int' cannot be range of a comprehension"
         " (must be list, map, or dynamic)")),
        ("'a'.b", "1:4: type 'string' does not support field selection"),
        ("true ? 1 : 'a'",
         "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
    ],
)  # fmt: skip
def test_type_errors(expression: str, message: str) -> None:
    """Type errors are found before evaluation, with their position."""
    with pytest.raises(TypeCheckError) as raised:
        evaluate(expression)
    assert f"ERROR: <input>:{message}" == str(raised.value).split("\n")[0]


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("1 +", "1:4"),
        ("?!", "1:1"),
        ("'a", "1:1"),
        ("a.all(1, true)", "1:7"),
        ("has(a)", "1:5"),
        ("1 2", "1:3"),
        ("[1,\n 2", "2:3"),
        ("package", "1:1"),
        ("9223372036854775808", "1:1"),
        ("!-a", "1:2"),
        ("!-5u", "1:2"),
        ("(" * 300, "1:101"),
    ],
)
def test_syntax_errors(expression: str, place: str) -> None:
    """The message has the position."""
    with pytest.raises(CelCompileError) as raised:
        parse(expression)
    assert str(raised.value).startswith(f"ERROR: <input>:{place}: ")


def test_error_shows_the_line() -> None:
    """A message is followed by the line and a mark under the place."""
    with pytest.raises(TypeCheckError) as raised:
        evaluate("true &&\n  nope")
    assert (
        "ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')\n |   nope\n | ..^"
    ) == str(raised.value)


def test_types_are_inferred_through_empty_lists() -> None:
    """A list without elements fits any list."""
    expression = "[] + [1]"
    found = check(expression, parse(expression), {}, {})
    assert "list(int)" == str(found)


def test_endless_loops_end() -> None:
    """No operator absorbs that an evaluation takes too long."""
    node = parse("[1, 2, 3].all(x, [1, 2, 3].all(y, true)) || true")
    with pytest.raises(CostLimitExceededError):
        plan(node)({BUDGET: Budget(5)})


integers = st.integers(-(2**63), 2**63 - 1)


@given(integers, integers, st.sampled_from("+-*/%"))
def test_integer_arithmetic_is_of_64_bits(left: int, right: int, operator: str) -> None:
    """Exact within 64 bits, an error outside; division cuts towards zero as in Go."""
    exact: int | None
    if operator in "/%":
        quotient = abs(left) // abs(right) if right else 0
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        remainder = left - quotient * right
        exact = None if right == 0 else quotient if operator == "/" else remainder
    else:
        exact = {"+": left + right, "-": left - right, "*": left * right}[operator]
    try:
        found = evaluate(f"a {operator} b", a=left, b=right)
    except CelError:
        assert exact is None or not -(2**63) <= exact < 2**63
    else:
        assert exact == found


@given(st.booleans(), st.booleans(), st.sampled_from(["&&", "||"]), st.booleans())
def test_logic_absorbs_errors_on_either_side(
    value: bool, error_first: bool, operator: str, nested: bool
) -> None:
    """An operand that decides hides errors of the other; otherwise the error is raised."""
    constant = "true" if value else "false"
    failing = "(1 / 0 == 1)" if nested else "dyn(1)"
    operands = (failing, constant) if error_first else (constant, failing)
    expression = f" {operator} ".join(operands)
    decisive = value == (operator == "||")
    if decisive:
        assert value == evaluate(expression)
    else:
        with pytest.raises(CelError):
            evaluate(expression)
