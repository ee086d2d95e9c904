"""Defaults of workloads and autoscalers that depend on other fields.

Upstream: pkg/apis/{apps,batch}/v1/defaults.go, pkg/apis/autoscaling/v2/defaults.go (v1.36)
Differs:  nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.apiserver.plain import Plain

_ROLLING_UPDATE: Final = "RollingUpdate"
_BACKOFF_LIMIT: Final = 6
_BACKOFF_LIMIT_PER_INDEX: Final = 2**31 - 1
_SCALE_UP: Final[Plain] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final[Plain] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_METRIC: Final[Plain] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def _rolling_update(strategy: Plain) -> None:
    if (strategy.get("type") or _ROLLING_UPDATE) == _ROLLING_UPDATE:
        strategy.setdefault("rollingUpdate", {})


def _stateful_set_strategy(strategy: Plain) -> None:
    if not strategy.get("type"):
        strategy["type"] = _ROLLING_UPDATE
        strategy.setdefault("rollingUpdate", {})


def _job(job: Plain) -> None:
    spec: Plain = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", _BACKOFF_LIMIT_PER_INDEX if per_index else _BACKOFF_LIMIT)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        job["metadata"].setdefault("labels", dict(labels))
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _autoscaler_spec(spec: Plain) -> None:
    spec.setdefault("metrics", [_METRIC])
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = {**_SCALE_UP, **behavior.get("scaleUp", {})}
        behavior["scaleDown"] = {**_SCALE_DOWN, **behavior.get("scaleDown", {})}


DEFAULTS: Final[Mapping[str, Callable[[Plain], None]]] = {
    "apps_v1/DaemonSetUpdateStrategy": _rolling_update,
    "apps_v1/DeploymentStrategy": _rolling_update,
    "apps_v1/StatefulSetUpdateStrategy": _stateful_set_strategy,
    "autoscaling_v2/HorizontalPodAutoscalerSpec": _autoscaler_spec,
    "batch_v1/Job": _job,
}
