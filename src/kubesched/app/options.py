"""Options are the flags of a scheduler process, and the configuration that follows from them.

`cli/run_flags.txt` describes each flag; a field has the flag's name, or the one beside it there.

Upstream: cmd/kube-scheduler/app/options,
          staging/src/k8s.io/component-base/compatibility/{registry,version}.go (v1.36)
Rejects:  versions of components other than kube, patch versions, and versions out of range.
Differs:  the content type is always JSON; only 1.36 is emulated, and the minimum compatibility
          version is only checked; certificates per name (--tls-sni-cert-key) and key exchanges
          (--tls-curve-preferences) have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.field_errors import FieldError
from kubesched.app.metrics.exposure import EVERYTHING, Exposure
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.types import Configuration, LeaderElection

SECURE_PORT_DEFAULT: Final = 10259
ALWAYS_ALLOWED_PATHS: Final = ("/healthz", "/readyz", "/livez")
_CONNECTION: Final[Mapping[str, str]] = {
    "kubeconfig": "kubeconfig",
    "kube_api_qps": "qps",
    "kube_api_burst": "burst",
}
"""The fields of ClientConnection, by the deprecated flags that set them."""


class ElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The `--leader-elect*` flags; None for a flag that was not given.

    They override the configuration file.
    """

    leader_elect: bool | None = None
    lease_duration_seconds: float | None = None
    renew_deadline_seconds: float | None = None
    retry_period_seconds: float | None = None
    resource_lock: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None


class DeprecatedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Flags that have an effect only without a configuration file; None if not given."""

    kubeconfig: str | None = None
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    profiling: bool | None = None
    contention_profiling: bool | None = None


class ServingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of the secure port; port 0 serves nothing."""

    bind_address: str = "0.0.0.0"
    secure_port: int = SECURE_PORT_DEFAULT
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    cert_dir: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    permit_port_sharing: bool = False


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The `--requestheader-*` flags: authenticating proxies and their headers.

    An empty `client_ca_file` stands for the cluster's own settings; empty `allowed_names` for any
    verified proxy.
    """

    client_ca_file: str = ""
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)


class AccessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of authentication and authorization; empty kubeconfigs are the scheduler's own."""

    authentication_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    tolerate_lookup_failure: bool = True
    token_cache_seconds: float = 10.0
    authorization_kubeconfig: str = ""
    always_allow_paths: tuple[str, ...] = ALWAYS_ALLOWED_PATHS
    client_ca_file: str = ""
    proxies: ProxyOptions = ProxyOptions()
    allowed_cache_seconds: float = 10.0
    denied_cache_seconds: float = 10.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All flags of `kubesched run`.

    Attributes:
        config_file: None for the default configuration.
        deprecated: Flags without effect beside a configuration file.
        exposure: Which metrics and label values are shown.
        seed: None draws one.
    """

    config_file: Path | None = None
    master: str = ""
    max_in_unschedulable_seconds: float = 300.0
    feature_gates: FeatureGates = FeatureGates()
    election: ElectionOptions = ElectionOptions()
    allow_removed_locks: bool = False
    deprecated: DeprecatedOptions = DeprecatedOptions()
    serving: ServingOptions = ServingOptions()
    access: AccessOptions = AccessOptions()
    exposure: Exposure = EVERYTHING
    dry_run: bool = False
    seed: int | None = None
    decision_records: int = 10_000


def with_flags(configuration: Configuration, options: Options) -> Configuration:
    """Return a configuration overridden by the flags; a file wins over the deprecated ones."""
    if options.config_file is None:
        configuration = _of_flags(configuration, options.deprecated)
    election = replace(configuration.leader_election, **_given(options.election))
    return replace(configuration, leader_election=_named(election))


def _of_flags(configuration: Configuration, flags: DeprecatedOptions) -> Configuration:
    given = _given(flags)
    connection = {field: given[flag] for flag, field in _CONNECTION.items() if flag in given}
    profiling = configuration.enable_profiling if flags.profiling is None else flags.profiling
    contention = flags.contention_profiling
    return replace(
        configuration,
        client_connection=replace(configuration.client_connection, **connection),
        enable_profiling=profiling,
        enable_contention_profiling=profiling if contention is None else contention,
    )


def _given(flags: msgspec.Struct) -> dict[str, object]:
    return {
        name: value for name, value in msgspec.structs.asdict(flags).items() if value is not None
    }


def _named(election: LeaderElection) -> LeaderElection:
    """Return the election with defaults for empty fields."""
    return replace(
        election,
        resource_lock=election.resource_lock or "leases",
        resource_name=election.resource_name or "kube-scheduler",
        resource_namespace=election.resource_namespace or "kube-system",
    )


_MINOR = 36
_MINOR_MIN = 33
_VERSION = re.compile(r"v?1\.(\d{1,4})(?:\.0+)?")


def version_errors(emulated: Iterable[str], compatible: Iterable[str]) -> Iterator[FieldError]:
    """Yield the errors of `--emulated-version` and `--min-compatibility-version`."""
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
