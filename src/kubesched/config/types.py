"""KubeSchedulerConfiguration v1 as frozen values.

Upstream: kube-scheduler/config/v1/types.go, component-base/config/v1alpha1/types.go (v1.36)
Differs:  durations are in seconds; plugin args are plain mappings, which the plugins decode.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from kubesched.config.durations import DurationSeconds

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigStruct(msgspec.Struct, frozen=True, rename="camel"):
    """The base class of all parts: frozen, with JSON names in camelCase."""


class LeaderElection(ConfigStruct, frozen=True, kw_only=True):
    """Leader election between replicas of the scheduler."""

    leader_elect: bool = True
    lease_duration_seconds: DurationSeconds = field(default=0.0, name="leaseDuration")
    renew_deadline_seconds: DurationSeconds = field(default=0.0, name="renewDeadline")
    retry_period_seconds: DurationSeconds = field(default=0.0, name="retryPeriod")
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnection(ConfigStruct, frozen=True, kw_only=True):
    """The connection to the API server; qps and burst limit the requests per second."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0.0
    burst: Int32 = 0


class PluginEntry(ConfigStruct, frozen=True):
    """A plugin's name and weight; a weight of 0 means that none was given, and counts as 1."""

    name: str
    weight: Int32 = 0


class PluginSet(ConfigStruct, frozen=True, omit_defaults=True):
    """The plugins that are enabled at an extension point, in order, and those disabled there."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(ConfigStruct, frozen=True, kw_only=True):
    """A plugin set per extension point; multi_point means all points a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(ConfigStruct, frozen=True, omit_defaults=True):
    """The arguments of one plugin as written; None if there are none."""

    name: str
    args: dict[str, Any] | None = None


class ProfileConfiguration(ConfigStruct, frozen=True, kw_only=True, omit_defaults=True):
    """A profile: the scheduler name that pods select it by, its plugins and their arguments."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderManagedResource(ConfigStruct, frozen=True, omit_defaults=True):
    """An extended resource that an extender manages."""

    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(ConfigStruct, frozen=True, kw_only=True, omit_defaults=True):
    """TLS to an extender: CA and client certificate; data fields (PEM) override the files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = field(default="", name="caFile")
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = field(default=b"", name="caData")


class ExtenderConfiguration(ConfigStruct, frozen=True, kw_only=True, omit_defaults=True):
    """An HTTP extender; an empty verb means that it does not support the operation."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = field(default=None, name="tlsConfig")
    http_timeout_seconds: DurationSeconds = field(default=0.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class Configuration(ConfigStruct, frozen=True, kw_only=True):
    """A whole KubeSchedulerConfiguration."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfiguration, ...] = ()
    extenders: tuple[ExtenderConfiguration, ...] = ()
    delay_cache_until_active: bool = False
