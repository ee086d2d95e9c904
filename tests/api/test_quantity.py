"""Quantities against upstream's tables and an exact twin."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kubesched.api.quantity import (
    BINARY_SI,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    Amount,
    Quantity,
    QuantityError,
    canonical,
    milli_value,
    parse_quantity,
    value,
)

INT64_MAX = 2**63 - 1
SUFFIXES = {
    **{name: Fraction(10) ** power for name, power in zip("num", (-9, -6, -3), strict=True)},
    "": Fraction(1),
    **{name: Fraction(1000) ** (at + 1) for at, name in enumerate("kMGTPE")},
    **{f"{name}i": Fraction(1024) ** (at + 1) for at, name in enumerate("KMGTPE")},
}


@pytest.mark.parametrize(
    ("quantity", "whole", "milli"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("100m", 1, 100, id="milli"),
        pytest.param("1500m", 2, 1500, id="rounded up"),
        pytest.param("-1500m", -2, -1500, id="rounded away from zero"),
        pytest.param("0.1m", 1, 1, id="a tenth of a milli"),
        pytest.param("1n", 1, 1, id="nano"),
        pytest.param("0.1n", 1, 1, id="below nano"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="fraction of a binary unit"),
        pytest.param("1e3", 1000, 1000000, id="exponent"),
        pytest.param("1E3", 1000, 1000000, id="capital exponent"),
        pytest.param("1E", 10**18, 0, id="exa, whose milli does not fit"),
        pytest.param("10E", 0, 0, id="fast form that does not fit is 0"),
        pytest.param("8Ei", INT64_MAX, -1000, id="binary is capped, its milli wraps"),
        pytest.param("9223372036854775807", INT64_MAX, -1000, id="the largest"),
        pytest.param("1e-100", 1, 1, id="tiny"),
        pytest.param("-1e-100", 1, 1, id="tiny and negative: big numbers round up"),
        pytest.param(2, 2, 2000, id="JSON integer"),
        pytest.param(0.5, 1, 500, id="JSON number"),
        pytest.param(" 1 ", 1, 1000, id="space around"),
        pytest.param("+5", 5, 5000, id="plus"),
        pytest.param("005", 5, 5000, id="leading zeros"),
        pytest.param("1.", 1, 1000, id="point without a fraction"),
        pytest.param(".5", 1, 500, id="fraction without a whole"),
        pytest.param(".", 0, 0, id="no digit at all"),
        pytest.param("m", 0, 0, id="only a suffix"),
        pytest.param("-", 0, 0, id="only a sign"),
        pytest.param("0.000000000000000000000", 0, 0, id="long zero"),
    ],
)
def test_values_are_upstreams(quantity: Quantity, whole: int, milli: int) -> None:
    """Whole units and milli-units round away from zero, and overflow as upstream's do."""
    assert (whole, milli) == (value(quantity), milli_value(quantity))


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        pytest.param("0", "0", id="zero"),
        pytest.param("0Mi", "0", id="zero of a unit"),
        pytest.param("1024", "1024", id="decimal stays decimal"),
        pytest.param("1000", "1k", id="decimal grows"),
        pytest.param("1024Mi", "1Gi", id="binary grows"),
        pytest.param("0.5Gi", "512Mi", id="binary without a fraction"),
        pytest.param("0.1Gi", "107374182400m", id="binary that is not whole becomes decimal"),
        pytest.param("1.5", "1500m", id="decimal without a fraction"),
        pytest.param("1500m", "1500m", id="milli"),
        pytest.param("0.0001", "100u", id="micro"),
        pytest.param("1e3", "1e3", id="exponent"),
        pytest.param("1e4", "10e3", id="exponent of three"),
        pytest.param("0.5Ki", "512", id="small binary becomes decimal"),
        pytest.param("100Ki", "100Ki", id="binary, not eight"),
        pytest.param("12345678901234567890", "12345678901234567890", id="long decimal"),
        pytest.param("100Ei", "9223372036854775807", id="capped"),
        pytest.param("-1Mi", "-1Mi", id="negative"),
        pytest.param("0.1n", "1n", id="at least a nano"),
        pytest.param("+5", "+5", id="text kept as it was"),
        pytest.param("1.500", "1.500", id="text kept although not canonical"),
        pytest.param("1000E", "1", id="beyond the suffixes"),
        pytest.param("1000e18", "1e21", id="exponents go on"),
    ],
)
def test_canonical_text_is_upstreams(quantity: str, expected: str) -> None:
    """The text is what upstream's String() writes."""
    assert expected == canonical(quantity)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-"),
        *("1 ki", "1K", "1e", "1e1.5", "--1", "\u0661", "0x10", "1e1001", "9" * 5000, "NaN"),
        "1e99999999999999999999",
    ],
)
def test_invalid_quantities(text: str) -> None:
    """QuantityError names the text; parsing never hangs or raises another error."""
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize("number", [10**4000, float("nan"), float("inf")])
def test_numbers_that_no_text_has_are_refused(number: float) -> None:
    """Numbers that only Python values can represent."""
    with pytest.raises(QuantityError):
        parse_quantity(number)


def _exact(amount: Amount) -> Fraction:
    return amount.unscaled * Fraction(10) ** amount.exponent


def _away_from_zero(number: Fraction) -> int:
    return -(-number // 1) if number > 0 else number // 1


_digits = st.text("0123456789", max_size=9)


@given(st.sampled_from(["", "+", "-"]), _digits, _digits, st.sampled_from(sorted(SUFFIXES)))
def test_quantities_equal_exact_fractions(
    sign: str, whole: str, fraction: str, suffix: str
) -> None:
    """Within an int64 and with up to 18 digits, nothing is lost down to nano-units."""
    assume(whole or fraction)
    text = f"{sign}{whole}.{fraction}{suffix}"
    exact = Fraction(f"{sign}{whole or 0}.{fraction or 0}") * SUFFIXES[suffix]
    nano = _away_from_zero(exact * 10**9)
    amount = parse_quantity(text)
    is_capped = suffix.endswith("i") and abs(exact) > INT64_MAX
    expected = Fraction(nano, 10**9)
    assert (INT64_MAX if exact > 0 else -INT64_MAX) if is_capped else expected == _exact(amount)
    if abs(expected) * 1000 < 2**63 and (not amount.is_big or expected >= 0):
        assert _away_from_zero(expected) == value(text)
        assert _away_from_zero(expected * 1000) == milli_value(text)


@given(_digits, _digits, st.sampled_from(sorted(SUFFIXES)))
def test_canonical_text_means_the_same(whole: str, fraction: str, suffix: str) -> None:
    """Writing and reading again changes nothing, and writing twice is writing once."""
    text = f"{whole}.{fraction}{suffix}"
    amount = parse_quantity(text)
    assume(_exact(amount) < 10**20)
    again = parse_quantity(str(amount))
    assert 0 == amount.compare(again)
    assert str(amount) == str(again)


_amounts = st.builds(
    Amount,
    st.integers(-(2**63), INT64_MAX),
    st.integers(-9, 21),
    st.booleans(),
    st.sampled_from([DECIMAL_SI, DECIMAL_EXPONENT, BINARY_SI]),
)


@given(_amounts, _amounts)
def test_sums_and_comparisons_are_exact(left: Amount, right: Amount) -> None:
    """Adding and comparing amounts of different exponents is exact."""
    total = left.add(right)
    assert _exact(left) + _exact(right) == _exact(total)
    difference = _exact(left) - _exact(right)
    assert (difference > 0) - (difference < 0) == left.compare(right)
    if not total.is_big:
        assert -(2**63) <= total.unscaled <= INT64_MAX


@given(_amounts)
def test_values_are_int64(amount: Amount) -> None:
    """On any overflow the result is an int64."""
    for number in (amount.value(), amount.milli_value()):
        assert -(2**63) <= number < 2**63


def test_sum_takes_the_format_of_what_is_not_zero() -> None:
    """A zero does not affect the format of a sum."""
    assert "1Gi" == str(parse_quantity("0").add(parse_quantity("1Gi")))
    assert "1073741824" == str(parse_quantity("1").add(parse_quantity("1073741823")))
