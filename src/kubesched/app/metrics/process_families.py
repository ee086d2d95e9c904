"""The metric families of any Kubernetes component: requests, election, health, build, features.

Upstream: component-base/metrics/prometheus (v1.36)
Differs:  workqueue_*, apiserver_*, authentication_*, go_* and transport caches are missing: what
          they measure does not exist here.
"""

from __future__ import annotations

from typing import Final

from kubesched.app.metrics.family import Family, MetricType

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262144.0,
    1048576.0,
    4194304.0,
    16777216.0,
)

REQUEST_DURATION: Final = Family(
    "rest_client_request_duration_seconds",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
    _SECONDS,
)
RATE_LIMITER_DURATION: Final = Family(
    "rest_client_rate_limiter_duration_seconds",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and host.",
    _SECONDS,
)
REQUEST_SIZE: Final = Family(
    "rest_client_request_size_bytes",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Request size in bytes. Broken down by verb and host.",
    _BYTES,
)
RESPONSE_SIZE: Final = Family(
    "rest_client_response_size_bytes",
    MetricType.HISTOGRAM,
    ("verb", "host"),
    "[ALPHA] Response size in bytes. Broken down by verb and host.",
    _BYTES,
)
REQUESTS: Final = Family(
    "rest_client_requests_total",
    MetricType.COUNTER,
    ("code", "method", "host"),
    "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
)
REQUEST_RETRIES: Final = Family(
    "rest_client_request_retries_total",
    MetricType.COUNTER,
    ("code", "verb", "host"),
    "[ALPHA] Number of request retries, partitioned by status code, verb, and host.",
)
MASTER_STATUS: Final = Family(
    "leader_election_master_status",
    MetricType.GAUGE,
    ("name",),
    "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates "
    "backup, 1 indicates master. 'name' is the string used to identify the lease. Please make "
    "sure to group by name.",
)
SLOWPATH: Final = Family(
    "leader_election_slowpath_total",
    MetricType.COUNTER,
    ("name",),
    "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the string "
    "used to identify the lease. Please make sure to group by name.",
)
HEALTHCHECK: Final = Family(
    "kubernetes_healthcheck",
    MetricType.GAUGE,
    ("name", "type"),
    "[STABLE] This metric records the result of a single healthcheck.",
)
HEALTHCHECKS: Final = Family(
    "kubernetes_healthchecks_total",
    MetricType.COUNTER,
    ("name", "type", "status"),
    "[STABLE] This metric records the results of all healthcheck.",
)
BUILD_INFO: Final = Family(
    "kubernetes_build_info",
    MetricType.GAUGE,
    (
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ),
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, "
    "git tree state, build date, Go version, and compiler from which Kubernetes was built, and "
    "platform on which it is running.",
)
FEATURE_ENABLED: Final = Family(
    "kubernetes_feature_enabled",
    MetricType.GAUGE,
    ("name", "stage"),
    "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
)
FOLDED: Final = Family(
    "cardinality_enforcement_unexpected_categorizations_total",
    MetricType.COUNTER,
    (),
    "[ALPHA] The count of unexpected categorizations during cardinality enforcement.",
)
DISABLED: Final = Family(
    "disabled_metrics_total",
    MetricType.COUNTER,
    (),
    "[BETA] The count of disabled metrics.",
)
HIDDEN: Final = Family(
    "hidden_metrics_total",
    MetricType.COUNTER,
    (),
    "[BETA] The count of hidden metrics.",
)
POD_REQUEST: Final = Family(
    "kube_pod_resource_request",
    MetricType.GAUGE,
    ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit"),
    "[STABLE] Resources requested by workloads on the cluster, broken down by pod. This shows the "
    "resource usage the scheduler and kubelet expect per pod for resources along with the unit "
    "for the resource if any.",
)
POD_LIMIT: Final = Family(
    "kube_pod_resource_limit",
    MetricType.GAUGE,
    POD_REQUEST.labels,
    "[STABLE] Resources limit for workloads on the cluster, broken down by pod. This shows the "
    "resource usage the scheduler and kubelet expect per pod for resources along with the unit "
    "for the resource if any.",
)
