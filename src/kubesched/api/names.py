"""The format of label keys and values, and the classes of resource names.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/validate/content/kube.go, dns.go,
          pkg/apis/core/v1/helper/helpers.go, pkg/scheduler/util/utils.go (v1.36)
Differs:  nothing.
"""

import re
from functools import lru_cache
from typing import Final

_NAME_LENGTH_MAX: Final = 63
_PREFIX_LENGTH_MAX: Final = 253


def form_error(rule: str, form: str, *examples: str) -> str:
    """Return a rule with examples and with the regular expression that is checked."""
    listed = "',  or '".join(examples)
    shown = f"e.g. '{listed}', " if examples else ""
    return f"{rule} ({shown}regex used for validation is '{form}')"


_NAME_FORM: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM: Final = f"({_NAME_FORM})?"
DNS_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN_FORM: Final = rf"{DNS_LABEL_FORM}(\.{DNS_LABEL_FORM})*"

_NAME: Final = re.compile(_NAME_FORM)
_VALUE: Final = re.compile(_VALUE_FORM)
_SUBDOMAIN: Final = re.compile(SUBDOMAIN_FORM)

ENDS: Final = "and must start and end with an alphanumeric character"
_NAME_RULE: Final = form_error(
    f"must consist of alphanumeric characters, '-', '_' or '.', {ENDS}",
    _NAME_FORM,
    *("MyName", "my.name", "123-abc"),
)
_VALUE_RULE: Final = form_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {ENDS}",
    _VALUE_FORM,
    *("MyValue", "my_value", "12345"),
)
SUBDOMAIN_RULE: Final = form_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {ENDS}",
    SUBDOMAIN_FORM,
    "example.com",
)
_KEY_RULE: Final = (
    f"a valid label key {_NAME_RULE} "
    "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


def _is_longer(text: str, length_max: int) -> bool:
    # JSON can contain half of a surrogate pair, which cannot be encoded otherwise.
    return len(text.encode(errors="surrogatepass")) > length_max


def _too_long(length_max: int) -> str:
    return f"must be no more than {length_max} bytes"


def _subdomain_errors(text: str) -> list[str]:
    errors = []
    if _is_longer(text, _PREFIX_LENGTH_MAX):
        errors.append(_too_long(_PREFIX_LENGTH_MAX))
    if _SUBDOMAIN.fullmatch(text) is None:
        errors.append(SUBDOMAIN_RULE)
    return errors


@lru_cache(maxsize=65_536)
def label_key_errors(key: str) -> tuple[str, ...]:
    """Return what is wrong with a label key; empty if it is valid."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        return (_KEY_RULE,)
    errors = []
    for prefix in prefixes:
        wrong = _subdomain_errors(prefix) if prefix else ["must be non-empty"]
        errors += [f"prefix part {error}" for error in wrong]
    if not name:
        errors.append("name part must be non-empty")
    elif _is_longer(name, _NAME_LENGTH_MAX):
        errors.append(f"name part {_too_long(_NAME_LENGTH_MAX)}")
    if _NAME.fullmatch(name) is None:
        errors.append(f"name part {_NAME_RULE}")
    return tuple(errors)


@lru_cache(maxsize=65_536)
def label_value_errors(value: str) -> tuple[str, ...]:
    """Return what is wrong with a label value; empty if it is valid."""
    errors = []
    if _is_longer(value, _NAME_LENGTH_MAX):
        errors.append(_too_long(_NAME_LENGTH_MAX))
    if _VALUE.fullmatch(value) is None:
        errors.append(_VALUE_RULE)
    return tuple(errors)


# Resources: native, extended, and those that the scheduler counts.

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_HUGE_PAGES_PREFIX: Final = "hugepages-"
_ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
_QUOTA_PREFIX: Final = "requests."


def is_native_resource(name: str) -> bool:
    """Whether the name has no domain or one of kubernetes.io."""
    return "/" not in name or _NATIVE_DOMAIN in name


@lru_cache(maxsize=4096)
def is_extended_resource_name(name: str) -> bool:
    """Whether the name is that of an extended resource, such as `example.com/gpu`."""
    if is_native_resource(name) or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key_errors(_QUOTA_PREFIX + name)


def is_huge_page_resource_name(name: str) -> bool:
    """Whether the name is a size of huge pages, such as `hugepages-2Mi`."""
    return name.startswith(_HUGE_PAGES_PREFIX)


def is_measured_in_bytes(name: str) -> bool:
    """Whether the amounts of a resource are bytes: of memory, ephemeral storage or huge pages."""
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_huge_page_resource_name(name)


@lru_cache(maxsize=4096)
def is_scalar_resource_name(name: str) -> bool:
    """Whether the scheduler counts it in addition to cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended_resource_name(name)
        or is_huge_page_resource_name(name)
        or _NATIVE_DOMAIN in name
        or name.startswith(_ATTACHABLE_VOLUMES_PREFIX)
    )


def is_counted_resource_name(name: str) -> bool:
    """Whether the scheduler counts requests of this resource; it ignores all others."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource_name(name)
