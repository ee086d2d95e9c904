"""Kubeconfig files: read, merge, and turn a context into connection settings.

Upstream: staging/src/k8s.io/client-go/tools/clientcmd: loader.go, client_config.go, validation.go
          (v1.36)
Differs:  *-data fields win over files beside them, where upstream refuses both; credentials are
          sent over plain HTTP to loopback addresses, for embedded API servers, and otherwise
          only over TLS, as upstream; auth-provider and SOCKS proxies are refused.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kubesched.api.codec import without_nulls
from kubesched.api.errors import SetupError
from kubesched.api.yaml_syntax import YamlError, load_documents
from kubesched.client.connection_settings import (
    ConnectionSettings,
    ExecSettings,
    Impersonation,
    TlsSettings,
    UserSettings,
    server_url,
)

_EXEC_GROUP: Final = "client.authentication.k8s.io"
_EXEC_VERSIONS: Final = (f"{_EXEC_GROUP}/v1", f"{_EXEC_GROUP}/v1beta1")
_EXEC_EXTENSION: Final = f"{_EXEC_GROUP}/exec"
_INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")
_NOTHING: Final = (
    "invalid configuration: no configuration has been provided; name a kubeconfig"
    " (clientConnection.kubeconfig of --config, or else --kubeconfig; KUBECONFIG)"
    " or a server (--master)"
)


class _Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class _Cluster(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[_Extension, ...] = ()


class _Provider(msgspec.Struct):
    name: str = ""


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    username: str = ""
    password: str = ""
    auth_provider: _Provider | None = None
    exec: ExecSettings | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


_NO_CLUSTER, _NO_USER, _NO_CONTEXT = _Cluster(), _User(), _Context()
_EMPTY: Final = {"cluster": _NO_CLUSTER, "user": _NO_USER, "context": _NO_CONTEXT}


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster = _NO_CLUSTER


class _NamedUser(msgspec.Struct):
    name: str
    user: _User = _NO_USER


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context = _NO_CONTEXT


class _File(msgspec.Struct, rename="kebab"):
    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


class _Entry(msgspec.Struct):
    """A cluster, user or context, and the file that defines it."""

    file: str
    path: str
    value: Any

    def error(self, field: str, problem: str) -> SetupError:
        return SetupError(f"{self.file}: {self.path}.{field}: {problem}")

    def resolved(self, path: str) -> str:
        """Return a path relative to the file's directory as an absolute one."""
        return str(Path(self.file).absolute().parent / path) if path else ""

    def decoded(self, field: str, text: str) -> bytes:
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.error(
                field, "is not base64; encode the PEM text with `base64 -w0`"
            ) from None


class Kubeconfig:
    """One or more merged kubeconfig files; the first file that defines an entry wins.

    Attributes:
        files: The files, in the order of precedence.
        current_context: The name of the default context.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self.files: list[str] = []
        self.current_context = ""
        self._entries: dict[str, dict[str, _Entry]] = {kind: {} for kind in _EMPTY}
        for file in files:
            self._add(file, _read(file))

    def _add(self, file: str, content: _File) -> None:
        self.files.append(file)
        self.current_context = self.current_context or content.current_context
        found = (
            *(("cluster", one.name, one.cluster) for one in content.clusters),
            *(("user", one.name, one.user) for one in content.users),
            *(("context", one.name, one.context) for one in content.contexts),
        )
        for kind, name, value in found:
            entry = _Entry(file, f"{kind}s[{name}].{kind}", value)
            self._entries[kind].setdefault(name, entry)

    def settings(self, context: str = "", server: str = "") -> ConnectionSettings:
        """Return the settings of a context, "" for the current one.

        `server` is an address that replaces the cluster's, "" for the cluster's own. Raises
        SetupError if an entry or field is missing or invalid.
        """
        place = self._find_context(context)
        chosen = place.value
        cluster = self._find("cluster", place, chosen.cluster)
        user = self._find("user", place, chosen.user)
        if not (server or cluster.value.server):
            raise SetupError(
                f"{cluster.file}: {cluster.path}.server: no server found for cluster"
                f" {chosen.cluster!r}; name the API server's URL"
                if chosen.cluster
                else f"{self._files}: {_NOTHING}"
            )
        settings = _connection(cluster, user, server)
        return msgspec.structs.replace(settings, namespace=chosen.namespace)

    def _find_context(self, name: str) -> _Entry:
        wanted = name or self.current_context
        contexts = self._entries["context"]
        if wanted in contexts:
            return contexts[wanted]
        if wanted:
            known = ", ".join(contexts) or "none"
            raise SetupError(
                f"{self._files}: context was not found for specified context: {wanted};"
                f" there are: {known}"
            )
        return _Entry(self._files, "contexts", _EMPTY["context"])

    def _find(self, kind: str, place: _Entry, name: str) -> _Entry:
        known = self._entries[kind]
        if name in known:
            return known[name]
        if name:
            names = ", ".join(known) or "none"
            raise place.error(kind, f"there is no {kind} named {name!r}; there are: {names}")
        return _Entry(place.file, f"{kind}s", _EMPTY[kind])

    @property
    def contexts(self) -> list[str]:
        """The names of the contexts."""
        return list(self._entries["context"])

    @property
    def _files(self) -> str:
        return os.pathsep.join(self.files) or "kubeconfig"


def _connection(cluster: _Entry, user: _Entry, server: str) -> ConnectionSettings:
    tls = _tls(cluster, user, keep_server_name=not server)
    try:
        url = server_url(server or cluster.value.server, tls=tls)
    except ValueError as error:
        if server:
            raise SetupError(f"--master: {error}") from None
        raise cluster.error("server", str(error)) from None
    settings = ConnectionSettings(
        server=url, tls=tls, user=_user(cluster, user), proxy_url=_proxy(cluster)
    )
    if settings.may_carry_credentials:
        return settings
    # Without TLS no secrets are sent, only impersonation headers.
    anonymous = UserSettings(impersonation=settings.user.impersonation)
    return msgspec.structs.replace(settings, user=anonymous, tls=TlsSettings())


def _proxy(cluster: _Entry) -> str:
    url: str = cluster.value.proxy_url
    scheme = url.partition("://")[0]
    if url and scheme not in {"http", "https"}:
        problem = f"unsupported scheme {scheme!r} of {url!r}, must be http or https"
        raise cluster.error("proxy-url", problem)
    return url


def _tls(cluster: _Entry, user: _Entry, *, keep_server_name: bool) -> TlsSettings:
    value: _Cluster = cluster.value
    person: _User = user.value
    ca_pem = cluster.decoded("certificate-authority-data", value.certificate_authority_data)
    certificate = user.decoded("client-certificate-data", person.client_certificate_data)
    settings = TlsSettings(
        ca_file=cluster.resolved(value.certificate_authority),
        ca_pem=ca_pem,
        server_name=value.tls_server_name if keep_server_name else "",
        is_insecure=value.insecure_skip_tls_verify,
        certificate_file=user.resolved(person.client_certificate),
        certificate_pem=certificate,
        key_file=user.resolved(person.client_key),
        key_pem=user.decoded("client-key-data", person.client_key_data),
    )
    _check_tls(settings, cluster, user)
    return settings


def _check_tls(settings: TlsSettings, cluster: _Entry, user: _Entry) -> None:
    if settings.is_insecure and settings.has_authority:
        problem = "is not allowed together with a certificate authority; remove one of them"
        raise cluster.error("insecure-skip-tls-verify", problem)
    if not settings.ca_pem:
        _check_readable(cluster, "certificate-authority", settings.ca_file)
    if not settings.has_certificate:
        return
    if not (settings.key_file or settings.key_pem):
        problem = "client-key-data or client-key must be specified with a client certificate"
        raise user.error("client-key", problem)
    if not settings.certificate_pem:
        _check_readable(user, "client-certificate", settings.certificate_file)
    if not settings.key_pem:
        _check_readable(user, "client-key", settings.key_file)


def _check_readable(entry: _Entry, field: str, path: str) -> None:
    if not path:
        return
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise entry.error(field, f"unable to read {path}: {error.strerror}") from None


def _user(cluster: _Entry, user: _Entry) -> UserSettings:
    person: _User = user.value
    if person.auth_provider is not None:
        problem = f"the auth provider {person.auth_provider.name!r} was removed from Kubernetes"
        raise user.error("auth-provider", f"{problem}; use an exec plugin instead")
    if person.token and (person.username or person.password):
        problem = "more than one authentication method found: [token basicAuth]"
        raise user.error("token", f"{problem}; only one is allowed")
    has_others = person.as_uid or person.as_groups or person.as_user_extra
    if has_others and not person.as_:
        problem = "requesting uid, groups or user-extra without impersonating a user"
        raise user.error("as", f"{problem}; name the user")
    token_file = user.resolved(person.token_file)
    if not person.token:
        _check_readable(user, "tokenFile", token_file)
    return UserSettings(
        token=person.token,
        token_file=token_file,
        username=person.username,
        password=person.password,
        exec=None if person.exec is None else _exec(cluster, user, person.exec),
        impersonation=Impersonation(
            user_name=person.as_,
            uid=person.as_uid,
            groups=person.as_groups,
            extra=person.as_user_extra,
        ),
    )


def _exec(cluster: _Entry, user: _Entry, plugin: ExecSettings) -> ExecSettings:
    _check_exec(user, plugin)
    command = plugin.command
    return msgspec.structs.replace(
        plugin,
        # A bare name is looked up in PATH; a path is relative to the kubeconfig.
        command=user.resolved(command) if os.sep in command else command,
        cluster=_cluster_info(cluster) if plugin.provide_cluster_info else None,
    )


def _check_exec(user: _Entry, plugin: ExecSettings) -> None:
    if not plugin.command:
        raise user.error("exec.command", "must be specified to use an exec plugin")
    if plugin.api_version not in _EXEC_VERSIONS:
        problem = f"invalid apiVersion {plugin.api_version!r}, must be one of: "
        raise user.error("exec.apiVersion", problem + ", ".join(_EXEC_VERSIONS))
    for index, variable in enumerate(plugin.env):
        if not variable.name:
            raise user.error(f"exec.env[{index}].name", "must be specified")
    if not plugin.interactive_mode and plugin.api_version == _EXEC_VERSIONS[0]:
        problem = "must be specified, one of: " + ", ".join(_INTERACTIVE_MODES)
        raise user.error("exec.interactiveMode", problem)
    if plugin.interactive_mode not in {"", *_INTERACTIVE_MODES}:
        problem = f"invalid {plugin.interactive_mode!r}, must be one of: "
        raise user.error("exec.interactiveMode", problem + ", ".join(_INTERACTIVE_MODES))


def _cluster_info(cluster: _Entry) -> dict[str, Any]:
    """Return the cluster's settings as an exec plugin gets them."""
    value: _Cluster = cluster.value
    pem = cluster.decoded("certificate-authority-data", value.certificate_authority_data)
    if not pem and value.certificate_authority:
        # That it can be read was checked with the TLS settings.
        pem = Path(cluster.resolved(value.certificate_authority)).read_bytes()
    data = base64.b64encode(pem).decode()
    shown = msgspec.structs.replace(
        value, certificate_authority="", certificate_authority_data=data, extensions=()
    )
    info: dict[str, Any] = {"server": value.server} | msgspec.to_builtins(shown)
    for extension in value.extensions:
        if extension.name == _EXEC_EXTENSION:
            info["config"] = extension.extension
    return info


def load_kubeconfig(path: str) -> Kubeconfig:
    """Read one file; raises SetupError if it is missing or not a kubeconfig."""
    return Kubeconfig((path,))


def merged_kubeconfig(environ: Mapping[str, str]) -> Kubeconfig:
    """Read the files that kubectl reads: those of $KUBECONFIG, or ~/.kube/config without it.

    Missing files are skipped. Raises SetupError if a file is not a kubeconfig.
    """
    listed = environ.get("KUBECONFIG", "")
    paths = listed.split(os.pathsep) if listed else [str(Path.home() / ".kube" / "config")]
    files = dict.fromkeys(path for path in paths if path)
    return Kubeconfig(path for path in files if Path(path).exists())


def master_settings(server: str) -> ConnectionSettings:
    """Return the settings for a bare address that `--master` gives without a kubeconfig.

    Raises SetupError if it is invalid.
    """
    try:
        return ConnectionSettings(server=server_url(server))
    except ValueError as error:
        raise SetupError(f"--master: {error}") from None


def _read(file: str) -> _File:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SetupError(f"stat {file}: no such file or directory") from None
    except OSError as error:
        problem = f"error loading config file {file!r}: {error.strerror}"
        raise SetupError(problem) from None
    except UnicodeDecodeError:
        raise SetupError(f"error loading config file {file!r}: it is not UTF-8 text") from None
    try:
        document: object = next((value for _, value in load_documents(text)), {})
    except YamlError as error:
        where = f"{file}:{error.line}" if error.line else file
        raise SetupError(f"error loading config file {where}: {error}") from None
    return _file_of(document, file)


def _file_of(document: object, file: str) -> _File:
    if not isinstance(document, dict):
        raise SetupError(f"error loading config file {file!r}: it is not a kubeconfig")
    try:
        content = msgspec.convert(without_nulls(document), _File)
    except msgspec.ValidationError as error:
        raise SetupError(f"error loading config file {file!r}: {error}") from None
    if (content.kind or "Config", content.api_version or "v1") != ("Config", "v1"):
        problem = f"it is a {content.kind!r} of {content.api_version!r}, not a Config of v1"
        raise SetupError(f"error loading config file {file!r}: {problem}")
    return content


def missing_configuration(listed: str) -> SetupError:
    """Return the error if no server is configured, and none of the files in KUBECONFIG exists."""
    missing = f"; KUBECONFIG lists no file that exists: {listed}" if listed else ""
    return SetupError(_NOTHING + missing)
