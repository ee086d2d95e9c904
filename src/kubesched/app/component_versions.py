"""Component versions: the flags that ask for the behaviour of another version of Kubernetes.

Upstream: staging/src/k8s.io/component-base/compatibility/{registry,version}.go (v1.36)
Rejects:  components other than kube, patch versions, and versions out of range.
Differs:  only 1.36 is emulated. No gate of the scheduler asks for the oldest version of other
          components, so that one is only checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kubesched.config.field_errors import FieldError

_MINOR = 36
_MINOR_MIN = 33
_VERSION = re.compile(r"v?1\.(\d{1,4})(?:\.0+)?")


def version_errors(emulated: Iterable[str], compatible: Iterable[str]) -> Iterator[FieldError]:
    """Yield what is wrong with `--emulated-version` and `--min-compatibility-version`."""
    yield from _errors("--emulated-version", emulated, _MINOR)
    yield from _errors("--min-compatibility-version", compatible, _MINOR_MIN)


def _errors(flag: str, texts: Iterable[str], minor_min: int) -> Iterator[FieldError]:
    for text in texts:
        component, equals, version = text.rpartition("=")
        if equals and component.strip() != "kube":
            yield FieldError(flag, f"component not registered: {component.strip()}")
            continue
        found = _VERSION.fullmatch(version.strip())
        if found is None or not minor_min <= int(found[1]) <= _MINOR:
            allowed = f"1.{_MINOR}" if minor_min == _MINOR else f"1.{minor_min} to 1.{_MINOR}"
            yield FieldError(flag, f"{version.strip()} cannot be chosen; write {allowed}")
