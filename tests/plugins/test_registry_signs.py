"""Plugins that sign the base of a template read nothing else of a pod."""

from __future__ import annotations

from itertools import combinations
from typing import Final

from kubesched.config.feature_gates import FeatureGates
from kubesched.plugins.registry import in_tree_setup
from kubesched.simulator.cluster import ClusterState
from kubesched.testing.builders import PodFields, make_pod_info

_TERM: Final = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
_IN: Final = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
_REQUIRED: Final = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_IN]}}
_PREFERRED: Final = {
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _IN}]
}
_RESTART_ALL: Final = {
    "action": "RestartAllContainers",
    "exitCodes": {"operator": "In", "values": [1]},
}
_CONTAINER: Final = {"name": "container", "image": "app:1"}

IN_THE_BASE: Final[tuple[PodFields, ...]] = (
    {},
    {"spec": {"containers": [{**_CONTAINER, "image": "other:1"}]}},
    {"spec": {"containers": [_CONTAINER], "initContainers": [_CONTAINER]}},
    {"spec": {"containers": [{**_CONTAINER, "restartPolicyRules": [_RESTART_ALL]}]}},
    {"host_ports": [80]},
    {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "x"}}]},
    {"volumes": [{"name": "a", "ephemeral": {}}]},
    {"volumes": [{"name": "a", "csi": {"driver": "x"}}]},
    {"volumes": [{"name": "a", "image": {"reference": "model:1"}}]},
    {"volumes": [{"name": "a", "gcePersistentDisk": {"pdName": "x"}}]},
    {"tolerations": [{"operator": "Exists"}]},
    {"node_selector": {"pool": "a"}},
    {"node_affinity": _REQUIRED},
    {"node_affinity": _PREFERRED},
    {"spec": {"hostNetwork": True, "hostUsers": False}},
)
ELSEWHERE: Final[tuple[PodFields, ...]] = (
    {},
    {"namespace": "other"},
    {"labels": {"app": "web"}},
    {"requests": {"cpu": "1", "memory": "1Gi"}},
    {"priority": 7},
    {"scheduling_gates": ["wait"]},
    {"pod_affinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}},
    {"metadata": {"ownerReferences": [{"name": "x", "controller": True}]}},
    {"status": {"nominatedNodeName": "n"}},
)


def test_pods_of_equal_base_have_equal_signs() -> None:
    """A sign that differs comes from a base that differs."""
    gates = FeatureGates()
    cluster = ClusterState(in_tree_setup(gates))
    plugins = cluster.profiles["default-scheduler"].plugins.values()
    signing_base = [plugin for plugin in plugins if plugin.signs_base]
    assert len(signing_base) > 10
    signed = [
        (pod.template.base, [plugin.sign(pod) for plugin in signing_base])
        for fields in (*IN_THE_BASE, *ELSEWHERE)
        for pod in [make_pod_info(**fields)]
    ]
    assert len(IN_THE_BASE) == len({base for base, _ in signed})
    for (one, signs), (other, signs_of_other) in combinations(signed, 2):
        assert one != other or signs == signs_of_other
