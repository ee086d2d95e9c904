"""Tolerations against a table of upstream's facts and a twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Taint, Toleration
from kubesched.api.tolerations import find_untolerated, tolerates

TAINT = Taint(key="k", value="5", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key="k", value="5"), True, id="equal by default"),
        pytest.param(Toleration(key="k", operator="Equal", value="4"), False, id="other value"),
        pytest.param(Toleration(operator="Equal", value="5"), True, id="empty key, same value"),
        pytest.param(Toleration(), False, id="empty: compared by value"),
        pytest.param(Toleration(operator="Exists"), True, id="exists for all keys"),
        pytest.param(Toleration(key="k", operator="Exists", value="x"), True, id="exists"),
        pytest.param(Toleration(key="q", operator="Exists"), False, id="other key"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), False, id="other effect"),
        pytest.param(Toleration(key="k", operator="Lt", value="6"), False, id="gate is off"),
        pytest.param(Toleration(key="k", operator="Foo", value="5"), False, id="unknown operator"),
    ],
)
def test_toleration(toleration: Toleration, expected: bool) -> None:
    """A toleration matches a taint as upstream."""
    assert expected == tolerates(toleration, TAINT)


@pytest.mark.parametrize(
    ("operator", "bound", "number", "expected"),
    [
        pytest.param("Lt", "6", "5", True, id="less"),
        pytest.param("Lt", "5", "5", False, id="equal is not less"),
        pytest.param("Gt", "-7", "-5", True, id="more"),
        pytest.param("Gt", "05", "6", False, id="leading zero"),
        pytest.param("Gt", "5", "+6", False, id="plus"),
        pytest.param("Gt", "-0", "6", False, id="minus zero"),
        pytest.param("Gt", "5", "9223372036854775808", False, id="beyond int64"),
        pytest.param("Gt", "", "6", False, id="empty"),
    ],
)
def test_comparison(operator: str, bound: str, number: str, expected: bool) -> None:
    """Only canonical integers are compared, the taint's with the toleration's."""
    toleration = Toleration(operator=operator, value=bound)
    assert expected == tolerates(toleration, Taint(value=number), comparison_operators=True)


def test_the_first_untolerated_taint_is_found() -> None:
    """The first untolerated taint with one of the effects is returned."""
    soft = Taint(key="s", effect="PreferNoSchedule")
    other = Taint(key="o", effect="NoExecute")
    toleration = Toleration(key="k", operator="Exists")
    assert other == find_untolerated((soft, TAINT, other), (toleration,))
    assert soft == find_untolerated((TAINT, soft), (toleration,), ("PreferNoSchedule",))
    assert find_untolerated((TAINT,), (toleration,)) is None


_words = st.sampled_from(["", "a", "b"])
_effects = st.sampled_from(["", "NoSchedule", "NoExecute"])
_tolerations = st.builds(
    Toleration,
    key=_words,
    value=_words,
    effect=_effects,
    operator=st.sampled_from(["", "Equal", "Exists", "Lt", "x"]),
)
_taints = st.builds(Taint, key=_words, value=_words, effect=_effects)


@given(_tolerations, _taints)
def test_toleration_equals_its_twin(toleration: Toleration, taint: Taint) -> None:
    """The specification, word by word."""
    expected = (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (
            toleration.operator == "Exists"
            or (toleration.operator in ("", "Equal") and toleration.value == taint.value)
        )
    )
    assert expected == tolerates(toleration, taint)
