"""Small scenarios drawn from a seed, and the fault plans for each."""

from __future__ import annotations

from random import Random
from typing import Any, Final

Json = dict[str, Any]

_REQUEST: Final[Json] = {"conflict": 0.1, "error": 0.1, "unanswered": 0.1}

PLANS: Final[dict[str, Json]] = {
    "none": {},
    "conflicts": {kind: {"conflict": 0.3} for kind in ("bind", "status", "delete")},
    "errors": {kind: {"error": 0.3} for kind in ("bind", "status", "delete")},
    "unanswered": {kind: {"unanswered": 0.3} for kind in ("bind", "status", "delete")},
    "slow": {kind: {"slow": 0.4, "slowBy": "15s"} for kind in ("bind", "status", "delete")},
    "watches": {"watch": {"every": "20s", "outage": "8s", "expired": 0.5}},
    "deletions": {"deletedWhileBinding": 0.3},
    "extender": {
        "extender": {
            "error": 0.1,
            "unanswered": 0.1,
            "slow": 0.2,
            "slowBy": "2s",
            "every": "30s",
            "outage": "10s",
        }
    },
    "all": {
        **{
            kind: {**_REQUEST, "slow": 0.2, "slowBy": "5s"} for kind in ("bind", "status", "delete")
        },
        "watch": {"every": "30s", "outage": "5s", "expired": 0.5},
        "extender": {"error": 0.05, "unanswered": 0.05, "every": "60s", "outage": "5s"},
        "deletedWhileBinding": 0.1,
    },
}
"""What goes wrong, by the name of the plan."""

_EXTENDER: Final = "http://extender"

_ZONE: Final = "topology.kubernetes.io/zone"


def scenario(seed: int, plan: str) -> Json:
    """Return a seed's scenario under a plan; plans differ in the failures only.

    Only where an extender can fail is there one.
    """
    random = Random(f"scenario {seed}")
    extended = Random(f"extender {seed}")
    faults = PLANS[plan]
    return {
        "version": 1,
        "name": f"seed {seed}, plan {plan}",
        "seed": seed,
        "duration": "3m",
        "nodes": _nodes(random),
        "priorityClasses": [
            {"name": "high", "value": 1000},
            {"name": "polite", "value": 500, "preemptionPolicy": "Never"},
        ],
        "workloads": [
            _batch(random),
            {**_batch(random), "name": "urgent", "priorityClassName": "high"},
            {**_batch(random), "name": "polite", "priorityClassName": "polite"},
            _web(random),
            {"name": "agent", "daemonSet": {"at": "10s"}, "requests": {"cpu": "100m"}},
        ],
        "events": [_event(random) for _ in range(random.randint(1, 4))],
        "faults": faults,
        "scheduler": _scheduler(extended) if "extender" in faults else {},
        "latencies": {
            "request": random.choice(["4ms", "100ms", "1s"]),
            "watch": random.choice(["10ms", "200ms", "2s"]),
            "nodeFailureDetection": "20s",
            "podGarbageCollection": "20s",
        },
        "report": {"resolution": "10s", "checkEvery": "5s"},
    }


def _nodes(random: Random) -> list[Json]:
    early: Json = {
        "name": "early",
        "count": random.randint(1, 4),
        "allocatable": {
            "cpu": random.randint(2, 4),
            "memory": "8Gi",
            "pods": random.randint(4, 20),
        },
        "zones": ["a", "b"],
    }
    late: Json = {
        "name": "late",
        "count": random.randint(0, 2),
        "at": f"{random.randint(10, 120)}s",
        "allocatable": {"cpu": random.randint(2, 8), "memory": "8Gi"},
        "zones": ["c"],
    }
    return [early, late]


def _batch(random: Random) -> Json:
    arrivals: Json = random.choice(
        [
            {"perHour": random.randint(60, 400)},
            {"every": f"{random.randint(10, 60)}s", "burst": random.randint(1, 4)},
        ]
    )
    seconds = random.randint(5, 90)
    run_time = random.choice([{"fixed": f"{seconds}s"}, {"exponential": f"{seconds}s"}])
    return {
        "name": "batch",
        "pods": {**arrivals, "runTime": run_time, "restart": random.random() < 0.5},
        "requests": {"cpu": f"{random.choice([250, 500, 1000, 2000])}m", "memory": "512Mi"},
        "template": {"spec": _constraints(random, "batch")},
    }


def _web(random: Random) -> Json:
    scale = [
        {"at": f"{at}s", "replicas": random.randint(0, 8)}
        for at in sorted(random.sample(range(170), 2))
    ]
    return {
        "name": "web",
        "deployment": {"replicas": random.randint(1, 6), "scale": scale},
        "disruptionBudget": random.choice(
            [{"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 1}]
        ),
        "requests": {"cpu": "500m", "memory": "256Mi"},
        "template": {"spec": _constraints(random, "web")},
    }


def _scheduler(random: Random) -> Json:
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt"}
    if random.random() < 0.5:
        verbs["bindVerb"] = "bind"
    extender: Json = {
        **verbs,
        "urlPrefix": _EXTENDER,
        "weight": 1,
        "httpTimeout": "1s",
        "nodeCacheCapable": random.random() < 0.5,
        "ignorable": random.random() < 0.3,
    }
    return {
        "configuration": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [extender],
        },
        "extenders": [
            {
                "urlPrefix": _EXTENDER,
                "refuses": {"names": ["early-1"]},
                "prefers": {"labels": {_ZONE: "b"}},
                "latency": random.choice(["10ms", "500ms"]),
            }
        ],
    }


def _constraints(random: Random, name: str) -> Json:
    selector = {"matchLabels": {"app": name}}
    apart = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    spread: Json = {
        "maxSkew": 1,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": selector,
    }
    return random.choice(
        [
            {},
            {"topologySpreadConstraints": [spread]},
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
                }
            },
            {"nodeSelector": {_ZONE: random.choice(["a", "b", "c"])}},
        ]
    )


def _event(random: Random) -> Json:
    one: Json = {"names": ["early-*"], "count": 1}
    action: Json = random.choice(
        [
            {"drain": one},
            {"cordon": one},
            {"uncordon": {}},
            {"remove": one},
            {"fail": {**one, "duration": f"{random.randint(5, 60)}s"}},
            {"label": {**one, "set": {_ZONE: "c"}}},
            {"delete": {"names": ["batch-*", "web-*"], "count": random.randint(1, 4)}},
        ]
    )
    when: Json = {"at": f"{random.randint(5, 150)}s"}
    if random.random() < 0.3:
        when["every"] = f"{random.randint(20, 60)}s"
    return {**when, **action}
