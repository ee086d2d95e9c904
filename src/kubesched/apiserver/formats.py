"""The forms of texts: names of objects, ports, variables and keys, addresses, paths.

Each function returns the rules that a text breaks, in upstream's words; none if it is well formed.
Most forms are patterns, each with the rule that a text breaks if it does not match.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/{validation,ip}.go (v1.36)
Differs:  the duration of a schedule `@every` is not checked. Prefixes of names that may be any
          segment of a path are neither '.' nor '..'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.api.go_text import go_quote
from kubesched.api.names import (
    DNS_LABEL_FORM,
    ENDS,
    SUBDOMAIN_FORM,
    SUBDOMAIN_RULE,
    form_error,
    is_extended_resource_name,
    label_key_errors,
    label_value_errors,
)
from kubesched.cluster.controllers.jobs import parse_schedule

NameRule: TypeAlias = Callable[[str], tuple[str, ...]]
_Pattern: TypeAlias = tuple[str, str]

_SUBDOMAIN_LENGTH_MAX: Final = 253


def between(least: int, most: int) -> str:
    """Return the rule about numbers."""
    return f"must be between {least} and {most}, inclusive"


def _form(*patterns: _Pattern, length_max: int = 0) -> NameRule:
    """Return a function that checks the length of texts, and each pattern."""
    compiled = [(re.compile(pattern, re.DOTALL), rule) for pattern, rule in patterns]
    too_long = f"must be no more than {length_max} characters"

    @lru_cache(maxsize=65_536)
    def check(text: str) -> tuple[str, ...]:
        is_long = length_max and len(text.encode()) > length_max
        broken = (rule for pattern, rule in compiled if not pattern.fullmatch(text))
        return (*((too_long,) if is_long else ()), *broken)

    return check


def _shown(rule: str, pattern: str, *examples: str) -> _Pattern:
    """Return a pattern whose rule shows it, after examples."""
    return pattern, form_error(rule, pattern, *examples)


# Names.

dns_subdomain: Final = _form((SUBDOMAIN_FORM, SUBDOMAIN_RULE), length_max=_SUBDOMAIN_LENGTH_MAX)
_label: Final = _form(
    _shown(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        f"{ENDS}",
        DNS_LABEL_FORM,
        *("my-name", "123-abc"),
    ),
    length_max=63,
)


def dns_label(text: str) -> tuple[str, ...]:
    """Check a name without dots, such as namespaces have."""
    errors = _label(text)
    if "." in text and re.fullmatch(SUBDOMAIN_FORM, text):
        return (*errors[:-1], "must not contain dots")
    return errors


config_map_key: Final = _form(
    _shown(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        "[-._a-zA-Z0-9]+",
        *("key.name", "KEY_NAME", "key-name"),
    ),
    (r"(?!\.\Z).*", "must not be '.'"),
    (r"(?!\.\.\Z).*", "must not be '..'"),
    (r"(?!\.\..).*", "must not start with '..'"),
    length_max=_SUBDOMAIN_LENGTH_MAX,
)
percent: Final = _form(
    _shown(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        *("1%", "93%"),
    )
)
port_name: Final = _form(
    ("[-a-z0-9]+", "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
    (".*[a-z].*", "must contain at least one letter (a-z)"),
    ("(?!.*--).*", "must not contain consecutive hyphens"),
    ("(?!-).*(?<!-)", "must not begin or end with a hyphen"),
    length_max=15,
)
path_segment: Final = _form(
    (r"(?!\.\Z).*", "may not be '.'"),
    (r"(?!\.\.\Z).*", "may not be '..'"),
    ("[^/]*", "may not contain '/'"),
    ("[^%]*", "may not contain '%'"),
)


def prefix_of(rule: NameRule) -> NameRule:
    """Return the rule for the prefix of a name, which may end with a hyphen."""

    def check(text: str) -> tuple[str, ...]:
        if len(text) > 1 and text.endswith("-"):
            # Upstream masks the character before the hyphen too.
            text = f"{text[:-2]}a"
        return rule(text)

    return check


def valid_port(number: int) -> tuple[str, ...]:
    """Check the number of a port."""
    return () if 1 <= number <= 65_535 else (between(1, 65_535),)


_FEATURE: Final = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*")
_FEATURE_RULE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and "
    "slashes"
)


def _feature(text: str) -> tuple[str, ...]:
    if _FEATURE.fullmatch(text):
        return ()
    return (f"invalid feature name {go_quote(text)}: {_FEATURE_RULE}",)


# Addresses and networks; old fields of the API forgive leading zeros.

_ADDRESS_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_RULE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text, None if it is not one."""
    if "%" in text:
        return None
    try:
        return ip_address(_LEADING_ZEROS.sub("", text))
    except ValueError:
        return None


def address(text: str) -> tuple[str, ...]:
    """Check an IP address."""
    return () if parsed_address(text) is not None else (_ADDRESS_RULE,)


def network(text: str) -> tuple[str, ...]:
    """Check a network: an address, a slash, and a number of bits."""
    bits = text.rpartition("/")[2]
    try:
        ip_network(_LEADING_ZEROS.sub("", text), strict=False)
    except ValueError:
        return (_NETWORK_RULE,)
    return () if "/" in text and bits.isdecimal() and "%" not in text else (_NETWORK_RULE,)


_NO_BACKSTEPS: Final = (r"(?!(.*/)?\.\.(/|\Z)).*", "must not contain '..'")
_RELATIVE: Final = ("(?!/).*", "must be a relative path")
_SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_VARIABLE_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='"
)
no_backsteps: Final = _form(_NO_BACKSTEPS)


def cron_schedule(text: str) -> tuple[str, ...]:
    """Check the schedule of a CronJob; its controller does not run one that is `@every`."""
    try:
        if not re.fullmatch(r"@every \S+", text):
            parse_schedule(text)
    except ValueError as error:
        return (str(error),)
    return ()


def time_zone(text: str) -> tuple[str, ...]:
    """Check the name of a time zone; the first part of one, such as Europe, is a directory."""
    try:
        ZoneInfo(text)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return (f"unknown time zone {text}",)
    return ()


FORMS: Final[Mapping[str, NameRule]] = {
    "absolute_path": _form(("/.*", "must be an absolute path")),
    "address": address,
    "attribute": _form(("[^/]+/.+", "must be a domain and a name separated by a slash")),
    "config_key": config_map_key,
    "cron_schedule": cron_schedule,
    "driver": lambda text: dns_subdomain(text.lower()),
    "env_name": _form(
        (".+", "environment variable name must be non-empty"),
        ("[ -<>-~]*", _VARIABLE_RULE),
    ),
    "extended_resource": lambda text: (
        () if is_extended_resource_name(text) else ("must be a valid extended resource name",)
    ),
    "feature": _feature,
    "file_path": _form(_RELATIVE, _NO_BACKSTEPS, (r"(?!\.\.(?!/)).*", "must not start with '..'")),
    "header": _form(
        _shown(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            "X-Header-Name",
        )
    ),
    "label": dns_label,
    "label_key": label_key_errors,
    "label_value": label_value_errors,
    "network": network,
    "no_backsteps": no_backsteps,
    "not_padded": _form((r"(?!\s).*(?<!\s)", "must not have leading or trailing whitespace")),
    "path_segment": path_segment,
    "port_name": port_name,
    "prefix": prefix_of(dns_subdomain),
    "qualified": lambda text: label_key_errors(text.lower()),
    "reason": _form(
        _shown(
            "a condition reason must start with alphabetic character, optionally followed by a "
            "string of alphanumeric characters or '_,:', and must end with an alphanumeric "
            "character or '_'",
            "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
            *("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"),
        )
    ),
    "relative_path": _form(_RELATIVE, _NO_BACKSTEPS),
    "search_domain": _form(
        _shown(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            f"'_', '-' or '.', {ENDS}",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            "example.com",
        ),
        length_max=_SUBDOMAIN_LENGTH_MAX,
    ),
    "subdomain": dns_subdomain,
    "sysctl": _form(
        (
            rf"(?=.{{,{_SUBDOMAIN_LENGTH_MAX}}}\Z){_SYSCTL}",
            f"must have at most 253 characters and match regex ^{_SYSCTL}$",
        )
    ),
    "time_zone": time_zone,
}
"""The forms, by their names in the tables."""
