"""Regular expressions: facts about RE2's syntax and Go's matching."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.functions import find_all, matches
from kubesched.cel.values import CelError


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param("a*", "baac", ["", "aa", ""], id="no-empty-match-after-a-match"),
        pytest.param("", "ab", ["", "", ""], id="empty-pattern"),
        pytest.param("a|ab", "ab", ["a"], id="first-choice-not-longest"),
        pytest.param("(|a)+", "aa", ["", "", ""], id="loop-over-nothing"),
        pytest.param("(|a)*", "aa", ["", "", ""], id="star-over-nothing"),
        pytest.param("(a|)*", "aa", ["aa"], id="star-over-maybe"),
        pytest.param(r"\s", "\v\f ", ["\f", " "], id="space-without-vertical-tab"),
        pytest.param(r"[[:space:]]", "\v", ["\v"], id="posix-space-with-vertical-tab"),
        pytest.param(r"[[:^digit:]]", "1a", ["a"], id="posix-negated"),
        pytest.param(r"\d", "1\u0661", ["1"], id="ascii-digits-only"),
        pytest.param(r"\w+", "a\u00e9b", ["a", "b"], id="ascii-words-only"),
        pytest.param(r"\b", "\u00e9a", ["", ""], id="ascii-boundaries"),
        pytest.param(r"\B", "", [""], id="no-boundary-in-nothing"),
        pytest.param("(?i)k", "kK\u212a", ["k", "K", "\u212a"], id="case-folds-in-unicode"),
        pytest.param("(?i)[^k]", "kK\u212ax", ["x"], id="negation-after-folding"),
        pytest.param("a(?i)b|c", "aB C", ["aB", "C"], id="flags-last-past-a-bar"),
        pytest.param("(?:(?i)a)b", "Ab AB", ["Ab"], id="flags-end-with-their-group"),
        pytest.param("(?i:a)(?-i:b)", "Ab", ["Ab"], id="flags-of-a-group"),
        pytest.param("(?U)a+", "aa", ["a", "a"], id="ungreedy"),
        pytest.param("(?U)a+?", "aa", ["aa"], id="ungreedy-of-ungreedy"),
        pytest.param("(?s).", "\n", ["\n"], id="dot-with-newline"),
        pytest.param(".", "\n", [], id="dot-without-newline"),
        pytest.param("[^a]", "\n", ["\n"], id="negated-class-has-newline"),
        pytest.param("a$", "a\n", [], id="end-is-the-very-end"),
        pytest.param("(?m)^a$", "a\na", ["a", "a"], id="lines"),
        pytest.param("a{,2}", "a{,2}", ["a{,2}"], id="no-count-is-literal"),
        pytest.param("a{2}", "aaa", ["aa"], id="count"),
        pytest.param("a{1,}?", "aa", ["a", "a"], id="lazy-count"),
        pytest.param("^*", "a", ["", ""], id="repeated-place"),
        pytest.param("[]a]+", "]a", ["]a"], id="bracket-first"),
        pytest.param("[a-]+", "a-", ["a-"], id="dash-last"),
        pytest.param("[a&&b]+", "&a", ["&a"], id="no-set-operations"),
        pytest.param(r"[\d-z]+", "1-z", ["1-z"], id="dash-after-class"),
        pytest.param(r"\Q.*\E+", ".**", [".**"], id="quoted"),
        pytest.param(r"\x41\x{42}\103\x{1F600}", "ABC\U0001f600", ["ABC\U0001f600"], id="codes"),
        pytest.param(r"\pL+", "\u00e9a1", ["\u00e9a"], id="category"),
        pytest.param(r"\p{Lu}\P{Lu}", "Aa", ["Aa"], id="category-and-its-opposite"),
        pytest.param(r"\_\-", "_-", ["_-"], id="escaped-punctuation"),
        pytest.param("(?P<n>a)(?<m>b)", "ab", ["ab"], id="named"),
        pytest.param("(?P<n>a)(?P<n>b)", "ab", ["ab"], id="one-name-twice"),
        pytest.param(r"\\C|\QC\E", r"\CC", [r"\C", "C"], id="a-letter-c-after-a-backslash"),
        pytest.param("[^a]", "\udcff\ud800", ["\udcff", "\ud800"], id="bytes-that-are-no-utf-8"),
        pytest.param("\ufffd", "\udcff", ["\udcff"], id="such-bytes-are-replacement-characters"),
    ],
)
def test_find_all(pattern: str, text: str, expected: list[str]) -> None:
    """A pattern finds what Go finds."""
    assert tuple(expected) == find_all(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|+?", "missing argument to repetition operator: `+?`"),
        ("(*)", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*+b", "invalid nested repetition operator: `*+`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?<!a)", "invalid or unsupported Perl syntax: `(?<!`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\u0041", r"invalid escape sequence: `\u`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\xg", r"invalid escape sequence: `\xg`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_errors(pattern: str, problem: str) -> None:
    """The messages are RE2's."""
    with pytest.raises(CelError, match=f"^error parsing regexp: {re.escape(problem)}$"):
        matches("", pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 200 + "b"),
        ("(a|a)*b", "a" * 2000),
        ("a*a*a*a*a*a*b", "a" * 200),
        ("(x{0,30}){0,30}y", "x" * 60),
        ("a*a*a*b", "a" * 2000),
    ],
)
def test_hostile_patterns_end(pattern: str, text: str) -> None:
    """A pattern that keeps a backtracking engine busy for ages is as fast as any."""
    assert not matches(text, pattern)


_ATOMS = st.sampled_from(["a", "\u00e9", ".", "[ab]", "[^a]", "^", r"\b", "(?i:A)"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(_ATOMS, st.sampled_from(["?", "*", "+", "??", "*?", "{2}", "{1,2}"])).map(
            lambda parts: f"(?:{parts[0]}){parts[1]}"
        ),
    ),
    max_leaves=5,
)


@given(_PATTERNS, st.text("abA\n\U0001f600", max_size=6))
def test_the_first_match_is_that_of_pythons_engine(pattern: str, text: str) -> None:
    """Where the two syntaxes agree, so do matches, also in texts of several bytes a character."""
    expected = re.compile(pattern, re.ASCII).search(text)
    assert (expected is not None) == matches(text, pattern)
    assert (() if expected is None else (expected[0],)) == find_all(text, pattern, 1)
