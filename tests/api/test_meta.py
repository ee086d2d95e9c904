"""Times, owners and immutability."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.core import Pod, Toleration
from kubesched.api.meta import ObjectMeta, OwnerReference, controller_of, parse_time


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="epoch"),
        pytest.param("1970-01-01T00:00:01.5Z", 1_500_000_000, id="fraction"),
        pytest.param("1970-01-01T00:00:00.123456Z", 123_456_000, id="micro"),
        pytest.param("1970-01-01T00:00:00.1234567899Z", 123_456_789, id="beyond nano is cut"),
        pytest.param("1970-01-01T02:00:00+02:00", 0, id="east"),
        pytest.param("1969-12-31T19:30:00-04:30", 0, id="west"),
        pytest.param("1969-12-31T23:59:59Z", -1_000_000_000, id="before the epoch"),
    ],
)
def test_a_time_is_nanoseconds_since_the_epoch(text: str, nanoseconds: int) -> None:
    """Offsets and fractions of seconds are considered."""
    assert nanoseconds == parse_time(text)


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),  # noqa: DTZ001 - the zone is added below
    st.integers(-14 * 60, 14 * 60),
)
def test_a_time_equals_datetime(naive: datetime, offset_minutes: int) -> None:
    """The parser agrees with the standard library to the microsecond."""
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    difference = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert difference // timedelta(microseconds=1) * 1000 == parse_time(moment.isoformat())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-01-01",
        "2024-01-01T00:00:00",
        "2024-13-01T00:00:00Z",
        "2024-01-01T25:00:00Z",
        "2024-01-01T00:00:00+25:00",
        "\u0662024-01-01T00:00:00Z",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """The message names the text."""
    with pytest.raises(ValueError, match="is no RFC 3339 time"):
        parse_time(text)


def test_the_controller_is_the_owner_that_says_so() -> None:
    """Only the owner marked as controller counts; None without one."""
    other, controller = OwnerReference(name="a"), OwnerReference(name="b", controller=True)
    meta = ObjectMeta(owner_references=(other, controller))
    assert controller is controller_of(meta)
    assert controller_of(ObjectMeta(owner_references=(other,))) is None


def test_objects_are_frozen_and_not_tracked() -> None:
    """Objects are immutable."""
    pod = Pod()
    with pytest.raises(AttributeError):
        pod.kind = "Node"  # type: ignore[misc]  # that is the point
    assert not Pod.__struct_config__.gc


def test_what_is_absent_differs_from_what_is_empty() -> None:
    """The types distinguish null and empty where the scheduler does."""
    empty = msgspec.json.decode(b'{"spec": {"nodeSelector": {}, "priority": 0}}', type=Pod)
    assert {} == empty.spec.node_selector
    assert Pod().spec.node_selector is None
    assert (0, None) == (empty.spec.priority, Pod().spec.priority)
    assert {Toleration(key="a"): 1} == {Toleration(key="a"): 1}
