from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from itertools import combinations
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched import plugins
from kubesched.api.core import Pod
from kubesched.config.args import ARGS_PLUGINS, complete_args
from kubesched.config.feature_gates import FeatureGates
from kubesched.framework.cluster_event import (
    ASSIGNED_POD,
    NODE,
    POD,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
)
from kubesched.framework.plugin import Plugin
from kubesched.plugins.registry import in_tree_registry, in_tree_setup
from kubesched.simulator.cluster import ClusterState
from kubesched.snapshot.pod_info import PodInfo
from kubesched.testing.builders import PodFields, make_node, make_pod, make_pod_info
from kubesched.testing.handle import FakeHandle


def _plugin_classes() -> set[type[Plugin]]:
    """Return the plugins that modules of the room define."""
    found: set[type[Plugin]] = set()
    for module in pkgutil.walk_packages(plugins.__path__, f"{plugins.__name__}."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and issubclass(item, Plugin) and "name" in vars(item):
                found.add(item)
    return found


def test_every_plugin_is_registered_under_its_class_name() -> None:
    """The name in the configuration is the name of the class."""
    registered = dict(in_tree_registry())
    assert {plugin.__name__: plugin for plugin in _plugin_classes()} == registered


def test_each_registry_is_new() -> None:
    """A change of one registry does not affect another."""
    first = in_tree_registry()
    first.register("Other", first["NodeName"])
    assert "Other" not in in_tree_registry()


@pytest.mark.parametrize("name", sorted({*ARGS_PLUGINS} - {"DynamicResources"}))
def test_defaults_of_arguments_are_those_of_a_configuration(name: str) -> None:
    """Those of DynamicResources depend on feature gates, and are left out."""
    plugin, handle = in_tree_registry()[name], FakeHandle()
    completed = complete_args(name, None, handle.feature_gates)
    assert plugin.decode_args(None, handle, "") == plugin.decode_args(completed, handle, "")


# Hints: one answer per template, and none beyond their filing.


@cache
def in_tree_plugins() -> list[Plugin]:
    """Return the plugins of the default profile."""
    cluster = ClusterState(in_tree_setup(FeatureGates()))
    return list(cluster.profiles["default-scheduler"].plugins.values())


@pytest.mark.parametrize(
    ("event", "old", "new"),
    [
        (ClusterEvent(NODE, Action.ADD), None, make_node("n", allocatable={"cpu": "4"})),
        (
            ClusterEvent(NODE, Action.UPDATE_NODE_LABEL),
            make_node("n"),
            make_node("n", labels={"zone": "a"}),
        ),
        (ClusterEvent(ASSIGNED_POD, Action.ADD), None, make_pod("x", node_name="n")),
        (ClusterEvent(ASSIGNED_POD, Action.DELETE), make_pod("x", node_name="n"), None),
    ],
)
def test_in_tree_hints_per_template_do_not_look_further(
    event: ClusterEvent, old: object, new: object
) -> None:
    """Name, uid, annotations and status of the waiting pod change no answer."""
    one = make_pod("a", requests={"cpu": "1"})
    other = make_pod(
        "b",
        requests={"cpu": "1"},
        metadata={"annotations": {"a": "b"}},
        status={"nominatedNodeName": "n"},
    )
    assert PodInfo(one).template is PodInfo(other).template
    hints = [
        each.hint
        for plugin in in_tree_plugins()
        for each in plugin.events_to_register() or ()
        if each.per_template and each.event.matches(event) and each.hint is not None
    ]
    assert hints
    assert [hint(one, old, new) for hint in hints] == [hint(other, old, new) for hint in hints]


LABELS: Final = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SELECTORS: Final = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"a": "x"}},
        {"matchLabels": {"a": "y", "b": "x"}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
    ]
)
TERMS: Final = st.lists(
    st.builds(
        lambda selector, scope: {"topologyKey": "zone", "labelSelector": selector, **scope},
        SELECTORS,
        st.sampled_from([{}, {"namespaces": ["n", "m"]}, {"namespaceSelector": {}}]),
    ),
    max_size=2,
)
CONSTRAINTS: Final = st.lists(
    st.builds(
        lambda action, selector, keys: {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": action,
            "labelSelector": selector,
            "matchLabelKeys": keys,
        },
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        SELECTORS,
        st.sampled_from([[], ["a"]]),
    ),
    max_size=2,
)


@st.composite
def pods(draw: st.DrawFn, name: str, node_name: str = "n") -> Pod:
    """A pod with affinity terms and spread constraints."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    kinds = ("podAffinity", "podAntiAffinity")
    spec: dict[str, Any] = {
        "affinity": {kind: {required: draw(TERMS)} for kind in kinds if draw(st.booleans())},
        "topologySpreadConstraints": draw(CONSTRAINTS),
    }
    namespace = draw(st.sampled_from("nnm"))
    return make_pod(
        name, uid=name, namespace=namespace, labels=draw(LABELS), node_name=node_name, spec=spec
    )


@cache
def filed_hints() -> list[ClusterEventWithHint]:
    """Return the registrations of changes of pods that have a filing."""
    return [
        each
        for plugin in in_tree_plugins()
        for each in plugin.events_to_register() or ()
        if each.filing is not None and each.event.resource == POD
    ]


@pytest.mark.parametrize("change", ["add", "update", "delete"])
@settings(max_examples=400)
@given(pods("waiting", node_name=""), pods("other"), pods("other"))
def test_a_filing_leads_to_every_pod_that_the_hint_retries(
    change: str, waiting: Pod, before: Pod, after: Pod
) -> None:
    """A change of another pod that its names do not lead to would be missed."""
    old, new = None if change == "add" else before, None if change == "delete" else after
    assert len(filed_hints()) == 2
    for each in filed_hints():
        assert each.hint is not None
        assert each.filing is not None
        if each.hint(waiting, old, new):
            names = each.filing.of_change(old, new)
            assert names is None or set(names) & set(each.filing.of_pod(waiting))


# Signs: plugins that sign the base of a template read nothing else of a pod.


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
    signing_base = [plugin for plugin in in_tree_plugins() if plugin.signs_base]
    assert len(signing_base) > 10
    signed = [
        (pod.template.base, [plugin.sign(pod) for plugin in signing_base])
        for fields in (*IN_THE_BASE, *ELSEWHERE)
        for pod in [make_pod_info(**fields)]
    ]
    assert len(IN_THE_BASE) == len({base for base, _ in signed})
    for (one, signs), (other, signs_of_other) in combinations(signed, 2):
        assert one != other or signs == signs_of_other
