"""Timestamps and durations: facts about their parts and texts."""

import pytest

from kubesched.cel.values import NONE, CelError, Duration, Optional, Timestamp, UInt
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('duration("1h").getHours() == 1', True),
        ('duration("90s").getMinutes() == 1', True),
        ('duration("1.5s").getMilliseconds() == 500', False),
        ('timestamp("2026-01-02T03:04:05Z").getFullYear() == 2026', True),
        ('timestamp("2026-01-02T03:04:05Z").getMonth() == 0', True),
        ('timestamp("2026-01-02T03:04:05Z").getDate() == 2', True),
        ('timestamp("2026-01-02T03:04:05Z").getDayOfWeek() == 5', True),
        ('timestamp("2026-01-02T03:04:05Z").getHours("+02:00") == 5', True),
        ('timestamp("2026-01-02T03:04:05Z").getHours("America/New_York") == 22', True),
        ('string(timestamp("2026-01-02T03:04:05Z")) == "2026-01-02T03:04:05Z"', True),
        ('string(duration("1ns"))', "0.000000001s"),
        ('string(duration("1h0.1s"))', "3600.1s"),
        ('string(duration("-2562047h"))', "-9223369200s"),
        ('string(timestamp("2026-01-02T03:04:05+02:00"))', "2026-01-02T03:04:05+02:00"),
        ('string(timestamp("2026-01-02T03:04:05.120+02:00"))', "2026-01-02T03:04:05.12+02:00"),
        (
            'string(timestamp("2026-01-02T03:04:05+02:00") + duration("1s"))',
            "2026-01-02T03:04:06+02:00",
        ),
        (
            'string(timestamp("2026-01-02T03:04:05+02:00") - duration("1s"))',
            "2026-01-02T03:04:04+02:00",
        ),
        ("string(timestamp(5))", "1970-01-01T00:00:05Z"),
        ('timestamp("2026-01-02T03:04:05+02:00").getHours()', 1),
        ('timestamp(0).getHours("")', 0),
        ('timestamp(0).getHours("Local")', 0),
        ('timestamp(0).getHours("UTC")', 0),
        ('timestamp(0).getHours("-0:30")', 23),
        ('timestamp(0).getHours("-00:30")', 23),
        ('timestamp(0).getMinutes("-00:30")', 30),
        ('timestamp(0).getHours("+25:00")', 1),
        ('timestamp(0).getHours("99999999:00")', 23),
        ('timestamp(0).getHours("5:00")', 5),
        ('timestamp(0).getHours("1:-5")', 0),
        ('timestamp(0).getMinutes("1:-5")', 55),
        ('timestamp(0).getHours("EST")', 19),
        ('timestamp("1800-01-01T00:00:00Z").getMinutes("America/New_York")', 3),
        ('timestamp("2100-07-01T00:00:00Z").getHours("America/New_York")', 20),
        ('timestamp("0001-01-01T00:00:00Z").getFullYear("-01:00")', 0),
        ('timestamp("9999-12-31T23:59:59Z").getFullYear("+01:00")', 10000),
        ('timestamp("2026-01-02T03:04:05.999999999Z").getMilliseconds()', 999),
        ('timestamp("1969-12-31T23:59:59.5Z").getMilliseconds()', 500),
        ('timestamp("1969-12-31T23:59:59.5Z").getSeconds()', 59),
        ('int(timestamp("1969-12-31T23:59:59.5Z"))', -1),
        ('duration("-1.5s").getSeconds()', -1),
        ('duration("-1.5s").getMilliseconds()', -1500),
        ('duration("-90m").getHours()', -1),
        ('dyn(timestamp(0)).getHours("UTC")', 0),
        ("timestamp(0).getDayOfMonth()", 0),
        ("timestamp(0).getDayOfYear()", 0),
        ("optional.ofNonZeroValue(timestamp(0))", Optional(Timestamp(0), True)),
        ('optional.ofNonZeroValue(timestamp("0001-01-01T00:00:00Z"))', NONE),
        ('string(duration("0s"))', "0s"),
        ('string(timestamp(dyn("2026-01-02T3:04:05Z")))', "2026-01-02T03:04:05Z"),
        ('string(timestamp(dyn("2026-01-02T03:04:05,5Z")))', "2026-01-02T03:04:05.5Z"),
        (
            'string(timestamp(dyn("2026-01-02T03:04:05.1234567891Z")))',
            "2026-01-02T03:04:05.123456789Z",
        ),
        ('string(timestamp(dyn("2026-01-02T03:04:05+24:60")))', "2026-01-02T03:04:05+25:00"),
        ('string(duration(dyn(".5s")))', "0.5s"),
        ('string(duration(dyn("1.s")))', "1s"),
        ('string(duration(dyn("9223372036854775807ns")))', "9223372036.854776s"),
        ('string(duration(dyn("-9223372036854775808ns")))', "-9223372036.854776s"),
        ('string(duration(dyn("+0")))', "0s"),
        ('timestamp("2026-03-08T06:59:59Z").getHours("America/New_York")', 1),
        ('timestamp("2026-03-08T07:00:00Z").getHours("America/New_York")', 3),
        ('timestamp("2026-01-02T03:04:05Z").getMinutes("Asia/Kathmandu")', 49),
        ('timestamp("2026-12-31T23:59:59Z").getDayOfYear("+01:00")', 0),
        ('duration("2562047h47m16.854775807s").getSeconds()', 9223372036),
        ('string(timestamp("2026-01-02T03:04:05.100-24:60"))', "2026-01-02T03:04:05.1-25:00"),
        ("[1.5].filter(x, false).sum()", 0.0),
        ('[duration("1s")].filter(x, false).sum()', Duration(0)),
        ('[duration("1m"), duration("1s")].sum() == duration("61s")', True),
        ("[1.5, 2.5].sum()", 4.0),
        ("[dyn(1.5)].sum()", 1.5),
        ("[1u, 2u].sum()", UInt(3)),
        ("[].sum()", 0),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """Parts are in UTC or the zone asked for; texts are as Go writes them."""
    assert expected == evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('timestamp(dyn("0000-01-02T03:04:05+02:00")).getHours()', "timestamp overflow"),
        ("timestamp(dyn(253402300800)).getHours()", "timestamp overflow"),
        ('timestamp(0).getHours("Nowhere/X")', "unknown time zone Nowhere/X"),
        ('timestamp(0).getHours("../x")', "time: invalid location name"),
        ('timestamp(0).getHours("a:b")', 'strconv.Atoi: parsing "a": invalid syntax'),
        ('timestamp(0).getHours("1:b")', 'strconv.Atoi: parsing "b": invalid syntax'),
        ('timestamp(0).getHours(":00")', 'strconv.Atoi: parsing "": invalid syntax'),
        (
            'timestamp(0).getHours("+99999999999999999999:00")',
            'strconv.Atoi: parsing "+99999999999999999999": value out of range',
        ),
        ('timestamp(0).getHours("america/new_york")', "unknown time zone america/new_york"),
        (
            'dyn(duration("1s")).getHours("UTC")',
            "no such overload: getHours(google.protobuf.Duration, string)",
        ),
        (
            "timestamp(0).getHours(dyn(1))",
            "no such overload: getHours(google.protobuf.Timestamp, int)",
        ),
        (
            'string(timestamp(dyn("2026-01-02t03:04:05z")))',
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            'string(timestamp(dyn("2026-01-02T03:04:60Z")))',
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            'string(timestamp(dyn("2026-01-02T24:00:00Z")))',
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            'string(timestamp(dyn("2026-01-02T03:04:05+2:00")))',
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            'string(timestamp(dyn("2026-01-02T03:04:05.Z")))',
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            'string(duration(dyn("1d")))',
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        (
            'string(duration(dyn("9223372036854775808ns")))',
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        (
            'string(duration(dyn("1h1")))',
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        (
            'string(duration(dyn("")))',
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        (
            'timestamp("0001-01-01T00:00:00Z") - duration("1ns") == timestamp(0)',
            "timestamp overflow",
        ),
        (
            'timestamp(0) - duration("-2562047h47m16.854775808s") == timestamp(0)',
            "integer overflow",
        ),
        ('duration("2562047h") + duration("1h") == duration("0s")', "integer overflow"),
    ],
)
def test_errors(expression: str, message: str) -> None:
    """Overflows and unknown zones are errors in upstream's words."""
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert message == str(raised.value)
