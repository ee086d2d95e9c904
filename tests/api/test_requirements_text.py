"""Selectors as text, as kubectl writes them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.requirements import (
    Requirement,
    SelectorError,
    parse_field_selector,
    parse_selector,
    selector_of,
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("  ", "", id="blank"),
        pytest.param("x=a,y=b,z=c", "x=a,y=b,z=c", id="equal"),
        pytest.param("z=c,x=a", "x=a,z=c", id="sorted"),
        pytest.param("x==a", "x==a", id="twice equal"),
        pytest.param("x!=a", "x!=a", id="not equal"),
        pytest.param("x=", "x=", id="empty value"),
        pytest.param("x= ,z= ", "x=,z=", id="blank value"),
        pytest.param("x", "x", id="exists"),
        pytest.param("!x", "!x", id="does not exist"),
        pytest.param("! x , y", "!x,y", id="blanks"),
        pytest.param("x>1", "x>1", id="greater"),
        pytest.param("x<7,y", "x<7,y", id="less"),
        pytest.param("x in ()", "x in ()", id="in nothing is in the empty value"),
        pytest.param("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()", id="sets"),
        pytest.param("x in (b,a,a)", "x in (a,b)", id="set of values"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="words that are keywords"),
        pytest.param("notin=in", "notin=in", id="keywords on both sides"),
        pytest.param("x in(a)", "x in (a)", id="no blank before the parenthesis"),
        pytest.param("a.b/c=d", "a.b/c=d", id="prefix"),
    ],
)
def test_text_is_read(text: str, written: str) -> None:
    """Parsed selectors are written in a canonical form."""
    assert written == str(parse_selector(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x=a||y=b", "unable to parse requirement: values[0][x]: Invalid", id="bars"),
        pytest.param("x==a==b", "found '==', expected: ',' or 'end of string'", id="chain"),
        pytest.param("!x=a", "found '=', expected: ',' or 'end of string'", id="not and equal"),
        pytest.param("x<a", "unable to parse requirement: values[0]: Invalid", id="no integer"),
        pytest.param("x,", "found '', expected: identifier after ','", id="comma at the end"),
        pytest.param(",x", "found ',', expected: !, identifier, or 'end of string'", id="comma"),
        pytest.param("x y", "found 'y', expected: in, notin, =, ==, !=, gt, lt", id="two words"),
        pytest.param("x in a", "found 'a' expected: '('", id="no parenthesis"),
        pytest.param("x in (a", "found '', expected: ',' or ')'", id="open"),
        pytest.param("x in (=)", "found '=', expected: ',', ')' or identifier", id="operator"),
        pytest.param("x in (a,=)", "found '=', expected: ',', or identifier", id="operator later"),
        pytest.param("x=(", "found '(', expected: identifier", id="no value"),
        pytest.param("!", "found '', expected: identifier", id="no key"),
        pytest.param("a//b", '<nil>: Invalid value: "a//b": a valid label key must', id="key"),
    ],
)
def test_invalid_selectors(text: str, message: str) -> None:
    """The messages are upstream's."""
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert message in str(caught.value)


_words = st.sampled_from(["a", "b-c", "in", "notin", "5"])
_requirements = st.one_of(
    st.builds(Requirement, _words, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(Requirement, _words, st.sampled_from(["=", "==", "!="]), st.tuples(_words)),
    st.builds(
        Requirement,
        _words,
        st.sampled_from(["In", "NotIn"]),
        st.sets(_words, min_size=1).map(lambda words: tuple(sorted(words))),
    ),
)


@given(st.lists(_requirements, max_size=4))
def test_round_trip(requirements: list[Requirement]) -> None:
    """Parsing a selector's text gives an equal selector."""
    selector = selector_of(requirements)
    assert selector == parse_selector(str(selector))


@given(st.text("ab=!(),<> in/\x00\n", max_size=20))
def test_any_text(text: str) -> None:
    """Any text is parsed or raises SelectorError."""
    for parse in (parse_selector, parse_field_selector):
        with suppress(SelectorError):
            parse(text)


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("a=b", [("a", True, "b")], id="equal"),
        pytest.param("a==b", [("a", True, "b")], id="twice equal"),
        pytest.param("b!=,a=1", [("a", True, "1"), ("b", False, "")], id="sorted"),
        pytest.param(r"a=x\,y\=z\\", [("a", True, "x,y=z\\")], id="escaped"),
        pytest.param("a=b,,", [("a", True, "b")], id="empty terms"),
    ],
)
def test_field_selector(text: str, requirements: list[tuple[str, bool, str]]) -> None:
    """Field selectors support only = and !=."""
    assert tuple(requirements) == parse_field_selector(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_invalid_field_selectors(text: str, message: str) -> None:
    """The messages are upstream's."""
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert message == str(caught.value)
