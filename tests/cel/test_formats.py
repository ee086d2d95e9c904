"""Named formats of text: facts about upstream's validation."""

import pytest

from kubesched.cel.values import NONE, Optional
from tests.cel.evaluation import evaluate


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('format.dns1123Label().validate("a-b").hasValue()', False),
        ('format.named("dns1123Label").value().validate("A").hasValue()', True),
        ('format.named("nope").hasValue()', False),
        ('format.uuid().validate("x").value() == ["does not match the UUID format"]', True),
        ('format.dns1123Subdomain().validate("A").value().size() == 1', True),
        ('format.labelValue().validate("a b").hasValue()', True),
        ('format.qualifiedName().validate("a/b").hasValue()', False),
        ('format.uri().validate("http://a").hasValue()', False),
        ('format.date().validate("2026-01-01").hasValue()', False),
        ('format.datetime().validate("x").hasValue()', True),
        ('format.byte().validate("YQ==").hasValue()', False),
        ('format.dns1035Label().validate("1a").hasValue()', True),
        ('format.dns1123LabelPrefix().validate("a-").hasValue()', False),
        ('format.dns1123Label().validate("a.b")', Optional(("must not contain dots",), True)),
        (
            'format.dns1123Label().validate("-a")',
            Optional(
                (
                    (
                        "a lowercase RFC 1123 label must consist of lower case alphanumeric "
                        "characters or '-', and must start and end with an alphanumeric "
                        "character (e.g. 'my-name',  or '123-abc', regex used for validation "
                        "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                    ),
                ),
                True,
            ),
        ),
        (
            (
                'format.dns1123Label().validate("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
                'aaaaaaaaaaaaaaaaaaaaaaaaaa")'
            ),
            Optional(("must be no more than 63 characters",), True),
        ),
        ('format.dns1123LabelPrefix().validate("a--")', NONE),
        (
            'format.dns1123LabelPrefix().validate("-")',
            Optional(
                (
                    (
                        "a lowercase RFC 1123 label must consist of lower case alphanumeric "
                        "characters or '-', and must start and end with an alphanumeric "
                        "character (e.g. 'my-name',  or '123-abc', regex used for validation "
                        "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                    ),
                ),
                True,
            ),
        ),
        (
            'format.dns1123Subdomain().validate("a..b")',
            Optional(
                (
                    (
                        "a lowercase RFC 1123 subdomain must consist of lower case "
                        "alphanumeric characters, '-' or '.', and must start and end with an "
                        "alphanumeric character (e.g. 'example.com', regex used for validation "
                        "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                    ),
                ),
                True,
            ),
        ),
        ('format.dns1123SubdomainPrefix().validate("a.b-")', NONE),
        (
            'format.dns1035Label().validate("1a")',
            Optional(
                (
                    (
                        "a DNS-1035 label must consist of lower case alphanumeric characters "
                        "or '-', start with an alphabetic character, and end with an "
                        "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
                        "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                    ),
                ),
                True,
            ),
        ),
        ('format.dns1035LabelPrefix().validate("a-")', NONE),
        (
            'format.qualifiedName().validate("a/b/c")',
            Optional(
                (
                    (
                        "a valid label key must consist of alphanumeric characters, '-', '_' "
                        "or '.', and must start and end with an alphanumeric character (e.g. "
                        "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
                        "subdomain prefix and '/' (e.g. 'example.com/MyName')"
                    ),
                ),
                True,
            ),
        ),
        (
            'format.qualifiedName().validate("/b")',
            Optional(("prefix part must be non-empty",), True),
        ),
        (
            'format.labelValue().validate("-")',
            Optional(
                (
                    (
                        "a valid label must be an empty string or consist of alphanumeric "
                        "characters, '-', '_' or '.', and must start and end with an "
                        "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
                        "regex used for validation is "
                        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                    ),
                ),
                True,
            ),
        ),
        ('format.labelValue().validate("")', NONE),
        ('format.uri().validate("/p")', NONE),
        ('format.uri().validate("a b")', Optional(('parse "a b": invalid URI for request',), True)),
        ('format.uuid().validate("123E4567e89b12d3-a456426614174000")', NONE),
        ('format.byte().validate("YQ=")', Optional(("invalid base64",), True)),
        ('format.byte().validate("")', Optional(("invalid base64",), True)),
        ('format.date().validate("2026-02-29")', Optional(("invalid date",), True)),
        ('format.date().validate("0000-02-29")', NONE),
        ('format.date().validate("2026-1-1")', Optional(("invalid date",), True)),
        ('format.datetime().validate("2026-01-01T10:00:00Z")', NONE),
        ('format.datetime().validate("2026-01-01t10:00:00.5+99:99")', NONE),
        ('format.datetime().validate("2026-01-01T10:00:00ZTx")', NONE),
        (
            'format.datetime().validate("2026-01-01T24:00:00Z")',
            Optional(("invalid datetime",), True),
        ),
        ('format.named("uuid") == optional.of(format.uuid())', True),
    ],
)
def test_values(expression: str, expected: object) -> None:
    """A text is of a format, or upstream's words say what it lacks."""
    assert expected == evaluate(expression)
