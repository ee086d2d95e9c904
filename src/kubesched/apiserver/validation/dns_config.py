"""How pods look names up.

Upstream: pkg/apis/core/validation/validation.go (validatePodDNSConfig, v1.36)
Differs:  nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubesched.apiserver.field_fault import FieldFault, each, invalid, required
from kubesched.apiserver.ip_addresses import address_faults
from kubesched.apiserver.names import form_error, too_long
from kubesched.apiserver.plain import Plain

_SERVERS_MAX: Final = 3
_SEARCHES_MAX: Final = 32
_SEARCH_LENGTH_MAX: Final = 2048
_NAME_LENGTH_MAX: Final = 253
_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NAME_FORM: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME: Final = re.compile(_NAME_FORM)
_NAME_RULE: Final = form_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
    "'-' or '.', and must start and end with an alphanumeric character",
    _NAME_FORM,
    "example.com",
)


def dns_config_faults(config: Plain | None, policy: str, path: str) -> Iterator[FieldFault]:
    """Yield what is wrong with how a pod looks names up."""
    if policy == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", detail)
            return
    if config is None:
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > _SERVERS_MAX:
        detail = f"must not have more than {_SERVERS_MAX} nameservers"
        yield invalid(f"{path}.nameservers", servers, detail)
    for index, server in enumerate(servers):
        yield from address_faults(server, f"{path}.nameservers[{index}]")
    yield from _search_faults(searches, f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _search_faults(searches: list[str], path: str) -> Iterator[FieldFault]:
    if len(searches) > _SEARCHES_MAX:
        yield invalid(path, searches, f"must not have more than {_SEARCHES_MAX} search paths")
    if len(" ".join(searches).encode()) > _SEARCH_LENGTH_MAX:
        detail = (
            f"must not have more than {_SEARCH_LENGTH_MAX} characters (including spaces) "
            "in the search list"
        )
        yield invalid(path, searches, detail)
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        if search == ".":
            continue
        errors = [too_long(_NAME_LENGTH_MAX)] if len(name.encode()) > _NAME_LENGTH_MAX else []
        if _NAME.fullmatch(name) is None:
            errors.append(_NAME_RULE)
        yield from each(f"{path}[{index}]", name, errors)
