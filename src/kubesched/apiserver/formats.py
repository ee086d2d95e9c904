"""The forms of texts: names of objects, ports, variables and keys, addresses, paths.

Each function returns the rules that a text breaks, in upstream's words; none if it is well formed.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/{validation,ip}.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

from kubesched.api.go_text import go_quote
from kubesched.api.names import (
    DNS_LABEL_FORM,
    SUBDOMAIN_FORM,
    form_error,
    is_extended_resource_name,
    label_key_errors,
    label_value_errors,
)

NameRule: TypeAlias = Callable[[str], tuple[str, ...]]

_ENDS: Final = "and must start and end with an alphanumeric character"
_PORT_CHARACTERS: Final = re.compile("[-a-z0-9]+")
_LABEL_LENGTH_MAX: Final = 63
_SUBDOMAIN_LENGTH_MAX: Final = 253
_PORT_NAME_LENGTH_MAX: Final = 15
_PATH_NAMES: Final = (".", "..")


def too_long(length_max: int) -> str:
    """Return the rule about lengths."""
    return f"must be no more than {length_max} characters"


def between(least: int, most: int) -> str:
    """Return the rule about numbers."""
    return f"must be between {least} and {most}, inclusive"


def _form(rule: str, form: str, *examples: str, length_max: int = 0) -> NameRule:
    """Return a function that checks texts against a regular expression."""
    pattern, message = re.compile(form), form_error(rule, form, *examples)

    @lru_cache(maxsize=65_536)
    def check(text: str) -> tuple[str, ...]:
        is_long = length_max and len(text.encode()) > length_max
        long = (too_long(length_max),) if is_long else ()
        return long if pattern.fullmatch(text) else (*long, message)

    return check


dns_subdomain: Final = _form(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_ENDS}",
    SUBDOMAIN_FORM,
    "example.com",
    length_max=_SUBDOMAIN_LENGTH_MAX,
)
_label: Final = _form(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS}",
    DNS_LABEL_FORM,
    "my-name",
    "123-abc",
    length_max=_LABEL_LENGTH_MAX,
)


def dns_label(text: str) -> tuple[str, ...]:
    """Check a name without dots, such as namespaces have."""
    errors = _label(text)
    if "." in text and re.fullmatch(SUBDOMAIN_FORM, text):
        return (*errors[:-1], "must not contain dots")
    return errors


def config_map_key(text: str) -> tuple[str, ...]:
    """Check the key of a ConfigMap or Secret, which becomes the name of a file."""
    if text in _PATH_NAMES:
        return (*_config_key(text), f"must not be '{text}'")
    is_hidden = text.startswith("..")
    return (*_config_key(text), *(("must not start with '..'",) if is_hidden else ()))


percent: Final = _form(
    "a valid percent string must be a numeric string followed by an ending '%'",
    "[0-9]+%",
    "1%",
    "93%",
)
_config_key: Final = _form(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
    length_max=_SUBDOMAIN_LENGTH_MAX,
)
http_header_name: Final = _form(
    "a valid HTTP header must consist of alphanumeric characters or '-'",
    "[-A-Za-z0-9]+",
    "X-Header-Name",
)


search_domain: Final = _form(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
    f"'-' or '.', {_ENDS}",
    r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
    "example.com",
    length_max=_SUBDOMAIN_LENGTH_MAX,
)
condition_reason: Final = _form(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_FEATURE: Final = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*")
_FEATURE_RULE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and "
    "slashes"
)


def feature(text: str) -> tuple[str, ...]:
    """Check the name of a feature that a node declares."""
    if _FEATURE.fullmatch(text):
        return ()
    return (f"invalid feature name {go_quote(text)}: {_FEATURE_RULE}",)


def environment_variable_name(text: str) -> tuple[str, ...]:
    """Check the name of a variable: printable ASCII without `=`."""
    errors = [] if text else ["environment variable name must be non-empty"]
    if not all(" " <= character <= "~" and character != "=" for character in text):
        errors.append(
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        )
    return tuple(errors)


def port_name(text: str) -> tuple[str, ...]:
    """Check the name of a port: at most 15 characters, with at least one letter."""
    errors = []
    if len(text.encode()) > _PORT_NAME_LENGTH_MAX:
        errors.append(too_long(_PORT_NAME_LENGTH_MAX))
    if _PORT_CHARACTERS.fullmatch(text) is None:
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search("[a-z]", text) is None:
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text and "-" in (text[0], text[-1]):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def path_segment(text: str) -> tuple[str, ...]:
    """Check a name that is one segment of a path."""
    return (f"may not be '{text}'",) if text in _PATH_NAMES else _path_prefix(text)


def _path_prefix(text: str) -> tuple[str, ...]:
    return tuple(f"may not contain '{one}'" for one in ("/", "%") if one in text)


def prefix_of(rule: NameRule) -> NameRule:
    """Return the rule for the prefix of a name, which may end with a hyphen."""
    if rule is path_segment:
        return _path_prefix

    def check(text: str) -> tuple[str, ...]:
        if len(text) > 1 and text.endswith("-"):
            # Upstream masks the character before the hyphen too.
            text = f"{text[:-2]}a"
        return rule(text)

    return check


def valid_port(number: int) -> tuple[str, ...]:
    """Check the number of a port."""
    return () if 1 <= number <= 65_535 else (between(1, 65_535),)


# Addresses and networks; old fields of the API forgive leading zeros.

_ADDRESS_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_RULE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text, None if it is not one."""
    if "%" in text:
        return None
    try:
        return ip_address(text if ":" in text else _LEADING_ZEROS.sub("", text))
    except ValueError:
        return None


def address(text: str) -> tuple[str, ...]:
    """Check an IP address."""
    return () if parsed_address(text) is not None else (_ADDRESS_RULE,)


def network(text: str) -> tuple[str, ...]:
    """Check a network: an address, a slash, and a number of bits."""
    bits = text.rpartition("/")[2]
    try:
        ip_network(text if ":" in text else _LEADING_ZEROS.sub("", text), strict=False)
    except ValueError:
        return (_NETWORK_RULE,)
    return () if "/" in text and bits.isdecimal() and "%" not in text else (_NETWORK_RULE,)


# Paths.


def no_backsteps(text: str) -> tuple[str, ...]:
    """Check that a path has no `..`."""
    return ("must not contain '..'",) if ".." in text.split("/") else ()


def relative_path(text: str) -> tuple[str, ...]:
    """Check that a path neither begins at the root nor has `..`."""
    absolute = ("must be a relative path",) if text.startswith("/") else ()
    return (*absolute, *no_backsteps(text))


def file_path(text: str) -> tuple[str, ...]:
    """Check that a path stays in its directory, and has no reserved name."""
    is_reserved = text.startswith("..") and not text.startswith("../")
    return (*relative_path(text), *(("must not start with '..'",) if is_reserved else ()))


def _unless(is_sound: Callable[[str], object], rule: str) -> NameRule:
    """Return a function that checks texts with a predicate."""
    return lambda text: () if is_sound(text) else (rule,)


def _is_attribute(text: str) -> bool:
    """Return whether a text is a domain, a slash and a name."""
    domain, _, name = text.partition("/")
    return bool(domain and name)


FORMS: Final[Mapping[str, NameRule]] = {
    "absolute_path": _unless(lambda text: text.startswith("/"), "must be an absolute path"),
    "address": address,
    "attribute": _unless(_is_attribute, "must be a domain and a name separated by a slash"),
    "config_key": config_map_key,
    "driver": lambda text: dns_subdomain(text.lower()),
    "env_name": environment_variable_name,
    "extended_resource": _unless(
        is_extended_resource_name, "must be a valid extended resource name"
    ),
    "feature": feature,
    "file_path": file_path,
    "header": http_header_name,
    "label": dns_label,
    "label_key": lambda text: tuple(label_key_errors(text)),
    "label_value": lambda text: tuple(label_value_errors(text)),
    "network": network,
    "no_backsteps": no_backsteps,
    "not_padded": _unless(
        lambda text: text == text.strip(), "must not have leading or trailing whitespace"
    ),
    "path_segment": path_segment,
    "port_name": port_name,
    "prefix": prefix_of(dns_subdomain),
    "qualified": lambda text: tuple(label_key_errors(text.lower())),
    "reason": condition_reason,
    "relative_path": relative_path,
    "search_domain": search_domain,
    "subdomain": dns_subdomain,
    "sysctl": _unless(
        lambda text: len(text) <= _SUBDOMAIN_LENGTH_MAX and _SYSCTL.fullmatch(text),
        f"must have at most 253 characters and match regex ^{_SYSCTL.pattern}$",
    ),
}
"""The forms, by their names in the tables."""
