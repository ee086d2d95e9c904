"""KubeSchedulerConfiguration v1 as frozen values.

Upstream: kube-scheduler/config/v1/types.go, component-base/config/v1alpha1/types.go (v1.36)
Differs:  durations are in seconds; plugin args are plain mappings, which the plugins decode.
"""

from typing import Any

import msgspec
from msgspec import field

from kubesched.api.integers import Int32, Int64
from kubesched.config.decoding import DurationSeconds

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"


class ConfigStruct(msgspec.Struct, frozen=True, rename="camel"):
    """The base class of all parts: frozen, with JSON names in camelCase."""


class LeaderElection(ConfigStruct, frozen=True, kw_only=True):
    """Leader election between replicas of the scheduler.

    Attributes:
        leader_elect: Whether replicas elect a leader before they schedule.
        lease_duration_seconds: How long followers wait for a leader that does not renew its lease.
        renew_deadline_seconds: How long a leader tries to renew before it gives up; shorter than
            leaseDuration.
        retry_period_seconds: The time between two tries to acquire or renew.
        resource_lock: The kind of lock: `leases`.
        resource_name: The name of the lock.
        resource_namespace: The namespace of the lock.
    """

    leader_elect: bool = True
    lease_duration_seconds: DurationSeconds = field(default=0.0, name="leaseDuration")
    renew_deadline_seconds: DurationSeconds = field(default=0.0, name="renewDeadline")
    retry_period_seconds: DurationSeconds = field(default=0.0, name="retryPeriod")
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnection(ConfigStruct, frozen=True, kw_only=True):
    """The connection to the API server.

    Attributes:
        kubeconfig: The kubeconfig file; empty for the service account of the pod.
        accept_content_types: Checked, without effect: the content type is always JSON.
        content_type: Checked, without effect: the content type is always JSON.
        qps: The requests per second; negative for no limit.
        burst: How many requests may be sent at once above qps.
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0.0
    burst: Int32 = 0


class PluginEntry(ConfigStruct, frozen=True):
    """A plugin that is enabled or disabled.

    Attributes:
        name: The plugin's name; `*` under disabled stands for all.
        weight: Of its score, 1 if it is 0 or absent.
    """

    name: str
    weight: Int32 = 0


class PluginSet(ConfigStruct, frozen=True, omit_defaults=True):
    """The plugins of an extension point.

    Attributes:
        enabled: The plugins to run, in order, after the default ones.
        disabled: The default plugins not to run.
    """

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
    """The arguments of one plugin.

    Attributes:
        name: The plugin's name.
        args: Its arguments; see below.
    """

    name: str
    args: dict[str, Any] | None = None


class ProfileConfiguration(ConfigStruct, frozen=True, kw_only=True, omit_defaults=True):
    """A profile, which pods select by their `spec.schedulerName`.

    Attributes:
        scheduler_name: The name that pods select it by.
        percentage_of_nodes_to_score: Overrides the field of the same name for this profile.
        plugins: A set of plugins per extension point; `multiPoint` stands for all points that a
            plugin implements.
        plugin_config: The arguments of plugins.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderManagedResource(ConfigStruct, frozen=True, omit_defaults=True):
    """An extended resource that an extender manages.

    Attributes:
        name: The resource's name.
        ignored_by_scheduler: Whether NodeResourcesFit ignores it.
    """

    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(ConfigStruct, frozen=True, kw_only=True, omit_defaults=True):
    """TLS to an extender.

    Attributes:
        insecure: Whether the extender's certificate is not verified.
        server_name: The name that the certificate must have; empty for the host of the URL.
        cert_file: The client certificate, a PEM file.
        key_file: Its key, a PEM file.
        ca_file: The CA certificates, a PEM file.
        cert_data: The client certificate in base64; overrides certFile.
        key_data: Its key in base64; overrides keyFile.
        ca_data: The CA certificates in base64; overrides caFile.
    """

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = field(default="", name="caFile")
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = field(default=b"", name="caData")


class ExtenderConfiguration(ConfigStruct, frozen=True, kw_only=True, omit_defaults=True):
    """An HTTP extender; an empty verb means that it does not support the operation.

    Attributes:
        url_prefix: Where the extender is; verbs are appended to it.
        filter_verb: Appended for filtering.
        preempt_verb: Appended for preemption.
        prioritize_verb: Appended for scoring.
        weight: Of its scores; required with prioritizeVerb.
        bind_verb: Appended for binding; one extender at most may bind.
        enable_https: Whether to use HTTPS without tlsConfig.
        tls_config: TLS to the extender.
        http_timeout_seconds: The timeout of a call; 0 is 5s.
        node_cache_capable: Whether only names of nodes are sent.
        managed_resources: The resources it manages; only pods that request one of them are sent.
            Empty for all pods.
        ignorable: Whether pods are scheduled without it if it fails.
    """

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
    """A whole KubeSchedulerConfiguration.

    Attributes:
        api_version: The version of this format.
        kind: The kind of document.
        parallelism: Checked, without effect on decisions: nodes are evaluated together.
        leader_election: Leader election between replicas.
        client_connection: The connection to the API server.
        enable_profiling: Whether the secure port serves /debug/pprof.
        enable_contention_profiling: Checked, without effect.
        percentage_of_nodes_to_score: The search ends when this percentage of all nodes fits. 0
            looks at all nodes, where kube-scheduler adapts the percentage to the cluster's size.
        pod_initial_backoff_seconds: The backoff after a pod's first failed attempt; it doubles with
            each.
        pod_max_backoff_seconds: The longest backoff.
        profiles: The profiles; one at least.
        extenders: The HTTP extenders, in the order of calls.
        delay_cache_until_active: Whether a follower starts its informers only when it leads.
            Checked, without effect: followers keep their caches.
    """

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
