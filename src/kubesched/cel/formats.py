"""Named formats (`format.dns1123Label()` and others) and their validation errors.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/format.go,
          staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go,
          k8s.io/kube-openapi/pkg/validation/strfmt
Differs:  nothing.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from kubesched.api.label_format import label_key_errors, label_value_errors
from kubesched.cel.declarations import Library
from kubesched.cel.url import request_uri_error
from kubesched.cel.values import NONE, Optional

Errors = Iterable[str]

_LABEL_LENGTH_MAX: Final = 63
_SUBDOMAIN_LENGTH_MAX: Final = 253

_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_DNS_1035_FORM: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_ENDS: Final = "must start and end with an alphanumeric character"
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    f"{_ENDS} (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_FORM}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', and {_ENDS} (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_FORM}')"
)
_DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character "
    f"(e.g. 'my-name',  or 'abc-123', regex used for validation is '{_DNS_1035_FORM}')"
)

_UUID: Final = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64: Final = re.compile(
    r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A named format."""

    name: str

    type_name: ClassVar[str] = "kubernetes.NamedFormat"
    is_opaque: ClassVar[bool] = True


def _length_errors(text: str, length_max: int) -> list[str]:
    too_long = len(text.encode(errors="surrogateescape")) > length_max
    # Upstream counts bytes, though its message says characters.
    return [f"must be no more than {length_max} characters"] if too_long else []


def _dns_1123_label(text: str) -> Errors:
    errors = _length_errors(text, _LABEL_LENGTH_MAX)
    if re.fullmatch(_LABEL_FORM, text) is None:
        has_dots = re.fullmatch(_SUBDOMAIN_FORM, text) is not None
        errors.append("must not contain dots" if has_dots else _LABEL_RULE)
    return errors


def _dns_1123_subdomain(text: str) -> Errors:
    errors = _length_errors(text, _SUBDOMAIN_LENGTH_MAX)
    if re.fullmatch(_SUBDOMAIN_FORM, text) is None:
        errors.append(_SUBDOMAIN_RULE)
    return errors


def _dns_1035_label(text: str) -> Errors:
    errors = _length_errors(text, _LABEL_LENGTH_MAX)
    if re.fullmatch(_DNS_1035_FORM, text) is None:
        errors.append(_DNS_1035_RULE)
    return errors


def _prefix_of(validate: Callable[[str], Errors]) -> Callable[[str], Errors]:
    """Return the rule for a name prefix, which may end with a dash."""

    def validate_prefix(text: str) -> Errors:
        # Upstream replaces the last two bytes, which breaks a character of several bytes.
        if len(text) > 1 and text.endswith("-"):
            text = text[:-2] + ("a" if text[-2].isascii() else "\ufffda")
        return validate(text)

    return validate_prefix


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    # The year 0 has the days of the year 400, which Python's calendar knows.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 400, month)[1]


def _is_datetime(text: str) -> bool:
    """Whether the text is a time; like upstream, ignores anything after a second T."""
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _CLOCK.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _holds(is_valid: Callable[[str], bool], problem: str) -> Callable[[str], Errors]:
    return lambda text: () if is_valid(text) else (problem,)


def _is_like(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


_RULES: dict[str, tuple[str, Callable[[str], Errors]]] = {
    "dns1123Label": ("DNS1123Label", _dns_1123_label),
    "dns1123Subdomain": ("DNS1123Subdomain", _dns_1123_subdomain),
    "dns1035Label": ("DNS1035Label", _dns_1035_label),
    "qualifiedName": ("QualifiedName", label_key_errors),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", _prefix_of(_dns_1123_label)),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", _prefix_of(_dns_1123_subdomain)),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", _prefix_of(_dns_1035_label)),
    "labelValue": ("LabelValue", label_value_errors),
    "uri": ("URI", request_uri_error),
    "uuid": ("uuid", _holds(_is_like(_UUID), "does not match the UUID format")),
    "byte": ("byte", _holds(_is_like(_BASE64), "invalid base64")),
    "date": ("date", _holds(_is_date, "invalid date")),
    "datetime": ("datetime", _holds(_is_datetime, "invalid datetime")),
}
_VALIDATORS = dict(_RULES.values())


def _named(name: str) -> Optional:
    if name not in _RULES:
        return NONE
    return Optional(NamedFormat(_RULES[name][0]), has_value=True)


def _validate(named: NamedFormat, text: str) -> Optional:
    """Return the list of errors, none if the text is valid."""
    errors = tuple(_VALIDATORS[named.name](text))
    return Optional(errors, has_value=True) if errors else NONE


def _constant(name: str) -> Callable[[], NamedFormat]:
    return lambda: NamedFormat(name)


LIBRARY: Library = {
    **{f"format.{key}(): named_format": _constant(name) for key, (name, _) in _RULES.items()},
    "format.named(string): optional(named_format)": _named,
    "@validate(named_format, string): optional(list(string))": _validate,
}
