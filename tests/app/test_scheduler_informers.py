"""What a scheduler watches, as recorded, and what it does without."""

from random import Random

import pytest

from kubesched.api.core import Node, Pod
from kubesched.app.scheduler_informers import watched_kinds
from kubesched.config.feature_gates import FeatureGates
from kubesched.config.load import default_configuration, load_configuration
from kubesched.framework.plugin import Plugin
from kubesched.plugins.registry import in_tree_setup
from kubesched.scheduler.profile_building import build_profiles

RECORDED = """
csidrivers csinodes csistoragecapacities deviceclasses namespaces nodes persistentvolumeclaims
persistentvolumes poddisruptionbudgets pods replicasets replicationcontrollers resourceclaims
resourceslices services statefulsets storageclasses volumeattachments
"""
_VOLUMES = {
    "csidrivers",
    "csinodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
}
_OWNERS = {"services", "replicationcontrollers", "replicasets", "statefulsets"}


def plugins_of(text: str, gates: FeatureGates) -> list[Plugin]:
    """Return the plugins of a configuration."""
    configuration = load_configuration(text, gates) if text else default_configuration(gates)
    profiles = build_profiles(in_tree_setup(gates, configuration), Random(0))
    return [plugin for profile in profiles.values() for plugin in profile.plugins.values()]


def test_the_default_configuration_watches_what_was_recorded() -> None:
    """The same eighteen kinds as kube-scheduler, pods last."""
    gates = FeatureGates()
    found = [kind.plural for kind in watched_kinds(plugins_of("", gates), gates)]
    assert RECORDED.split() == sorted(found)
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
    gates = FeatureGates.of({"DRAExtendedResource": False})
    plugins = plugins_of(_with("disabled: [{name: DynamicResources}]"), gates)
    groups = {kind.group for kind in watched_kinds(plugins, gates)}
    assert "storage.k8s.io" in groups
    assert "resource.k8s.io" not in groups


def test_kinds_that_no_plugin_reads_are_left_alone() -> None:
    """A profile of two plugins needs nodes, namespaces and pods."""
    gates = FeatureGates()
    text = _with("disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]")
    kinds = [kind.type for kind in watched_kinds(plugins_of(text, gates), gates)]
    assert (Node, Pod, 3) == (kinds[0], kinds[-1], len(kinds))


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        pytest.param("NodeVolumeLimits", _VOLUMES | {"volumeattachments"}, id="limits"),
        pytest.param("VolumeBinding", _VOLUMES | {"csistoragecapacities"}, id="binding"),
        pytest.param("PodTopologySpread", _OWNERS, id="spread"),
        pytest.param("DefaultPreemption", {"poddisruptionbudgets"}, id="preemption"),
        pytest.param("NodeResourcesFit", {"deviceclasses"}, id="fit"),
    ],
)
def test_kinds_of_one_plugin(plugin: str, expected: set[str]) -> None:
    """Those that it reads, whether or not it registers for their events."""
    gates = FeatureGates()
    text = _with(
        "disabled: [{name: '*'}], "
        f"enabled: [{{name: PrioritySort}}, {{name: DefaultBinder}}, {{name: {plugin}}}]"
    )
    found = {kind.plural for kind in watched_kinds(plugins_of(text, gates), gates)}
    assert expected == found - {"nodes", "namespaces", "pods"}


def _with(multi_point: str) -> str:
    """Return a configuration with this set of plugins at multiPoint."""
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {{{multi_point}}}
"""
