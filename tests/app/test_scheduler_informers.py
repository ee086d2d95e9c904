"""What a scheduler watches, as recorded, and what it does without."""

from random import Random

from kubesched.api.core import Node, Pod
from kubesched.app.scheduler_informers import watched_kinds
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.framework.plugin import Plugin
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.profile_building import build_profiles

RECORDED = [
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "deviceclasses",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets",
    "pods",
    "replicasets",
    "replicationcontrollers",
    "resourceclaims",
    "resourceslices",
    "services",
    "statefulsets",
    "storageclasses",
    "volumeattachments",
]


def plugins_of(text: str, gates: FeatureGates) -> list[Plugin]:
    """Return the plugins of a configuration."""
    configuration = load_configuration(text, gates) if text else default_configuration(gates)
    profiles = build_profiles(in_tree_setup(gates, configuration), Random(0))
    return [plugin for profile in profiles.values() for plugin in profile.plugins.values()]


def test_the_default_configuration_watches_what_was_recorded() -> None:
    """The same eighteen kinds as kube-scheduler, pods last."""
    gates = FeatureGates()
    found = [kind.plural for kind in watched_kinds(plugins_of("", gates), gates)]
    assert RECORDED == sorted(found)
    assert "pods" == found[-1]


def test_pod_groups_are_watched_behind_their_gate() -> None:
    """The kind is watched only with GenericWorkload."""
    gates = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True})
    kinds = watched_kinds(plugins_of("", gates), gates)
    assert "podgroups" in [kind.plural for kind in kinds]


def test_taint_rules_are_watched_behind_their_gate() -> None:
    """With DRADeviceTaintRules, the beta version of 1.36 is watched."""
    gates = FeatureGates.of({"DRADeviceTaintRules": True})
    kinds = watched_kinds(plugins_of("", gates), gates)
    found = [(kind.plural, kind.versions[0]) for kind in kinds if "taint" in kind.plural]
    assert [("devicetaintrules", "v1beta2")] == found


def test_a_cluster_without_devices() -> None:
    """Without DynamicResources and its gate, no kind of resource.k8s.io is watched."""
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: DynamicResources}]
"""
    gates = FeatureGates.of({"DRAExtendedResource": False})
    groups = {kind.group for kind in watched_kinds(plugins_of(text, gates), gates)}
    assert "storage.k8s.io" in groups
    assert "resource.k8s.io" not in groups


def test_kinds_that_no_plugin_reads_are_left_alone() -> None:
    """A profile of two plugins needs nodes, namespaces and pods."""
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}]
"""
    gates = FeatureGates()
    kinds = [kind.type for kind in watched_kinds(plugins_of(text, gates), gates)]
    assert (Node, Pod, 3) == (kinds[0], kinds[-1], len(kinds))
